"""Results of earlier runs, found by content."""
