"""What a written function relies on, and what it needs before it in the file."""
