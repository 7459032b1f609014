"""Launches that stand in host code: whether an output serves them."""
