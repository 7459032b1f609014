"""What is checked before each launch of a translated kernel."""
