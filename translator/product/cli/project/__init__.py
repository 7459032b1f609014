"""The commands that keep generated files in step with what they were made from."""
