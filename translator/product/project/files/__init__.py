"""Which files a project has: sources, outputs, configuration."""
