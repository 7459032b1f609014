"""Functions and files in Gluon: expressions, statements, calls, helpers, contracts, host code."""
