"""Iterations that do the same become loops."""
