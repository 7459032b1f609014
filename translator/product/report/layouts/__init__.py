"""Layouts drawn and spelled."""
