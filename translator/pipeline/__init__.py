"""Loops whose loads run ahead: plans, rings, waits, strategies, and functions that are written with them."""
