"""Source and translation in step, and why lines differ."""
