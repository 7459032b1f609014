"""Planning a loop: which loads run ahead, and by which way they are fetched."""
