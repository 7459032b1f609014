"""Matrix products, with scales and without."""
