"""Loops of both sides: by induction over their iterations."""
