"""Bodies run in order: what a statement changes, and what stays open."""
