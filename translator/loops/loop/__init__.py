"""A pipelined loop while it is written: its names, its indices, its place in the function."""
