"""What a kernel shows of its arguments: what it does with them, and how they are named."""
