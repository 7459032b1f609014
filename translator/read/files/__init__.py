"""Where files, modules and packages are, and their text."""
