"""The tiles that a loop loads: their addresses, bounds and masks."""
