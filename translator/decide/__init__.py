"""What is decided before anything is written."""
