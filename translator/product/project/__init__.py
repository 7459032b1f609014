"""Generated files over time: where they come from, whether they are current, and bringing edited ones up to date."""
