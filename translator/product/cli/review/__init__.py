"""The commands for a reader of translations."""
