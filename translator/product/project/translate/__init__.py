"""What one run of `gluonize translate` does."""
