"""Whether a generated file is what its source and launches give, and computes what its source does."""
