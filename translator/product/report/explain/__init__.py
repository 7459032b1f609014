"""Every choice with its origin and cost."""
