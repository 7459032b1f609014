"""Launches in host code, as they are written."""
