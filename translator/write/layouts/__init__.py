"""The layouts of a function's values: found from what uses want, at what cost."""
