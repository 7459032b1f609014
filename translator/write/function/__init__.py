"""A function: its statements, and what is left out of it when it has been written."""
