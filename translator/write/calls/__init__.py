"""Calls by the kind of their row in `rules/`, and calls of helpers."""
