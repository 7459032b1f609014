"""Launches that a file shows: those that are read, those that are derived, and those that a program is recorded with."""
