"""Where files, modules and packages are."""
