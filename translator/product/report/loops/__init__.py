"""Pipelined loops over time."""
