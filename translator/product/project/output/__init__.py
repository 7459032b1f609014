"""Files that are written: whole or not at all, with where they come from in their header."""
