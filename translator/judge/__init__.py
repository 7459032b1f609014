"""What a translation is worth: compiled, compared, run, predicted."""
