"""The programs of a grid: their numbers, and whether they may share work."""
