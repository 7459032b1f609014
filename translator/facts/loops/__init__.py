"""Loops: their ranges, masks, and what changes from one iteration to the next."""
