"""Loads, stores and atomics by pointer: addresses as a base and offsets."""
