"""Variables: definitions, uses, and expressions that are equal."""
