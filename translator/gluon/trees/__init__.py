"""Functions and files of the output as concrete trees: their statements, names that are given later, and where each came from."""
