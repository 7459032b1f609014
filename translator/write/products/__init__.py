"""Matrix products and their operands."""
