"""Edits by hand: what they started from, and merging them with a new translation."""
