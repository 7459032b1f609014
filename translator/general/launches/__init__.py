"""Launches beside those given: other sizes, flags and types, translated to compare with."""
