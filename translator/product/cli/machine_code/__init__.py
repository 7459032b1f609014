"""The commands that read machine code."""
