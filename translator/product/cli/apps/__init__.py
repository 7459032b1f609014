"""The commands of the program with their options, in groups."""
