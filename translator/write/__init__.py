"""Functions in Gluon: expressions, statements, calls and accesses."""
