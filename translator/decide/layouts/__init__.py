"""Layouts as expressions: constructors, names, padding, formulas of tile sizes."""
