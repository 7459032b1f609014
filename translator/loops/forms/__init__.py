"""The forms in which a loop is written, and a function with its loops."""
