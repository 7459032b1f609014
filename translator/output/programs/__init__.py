"""Launches whose programs have several tiles, or share the steps of tiles."""
