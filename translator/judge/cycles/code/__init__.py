"""Assembly as streams of timed operations."""
