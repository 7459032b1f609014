"""What each operation does: the rows of the reference machine's table."""
