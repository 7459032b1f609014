"""Recording launch specs from a running program."""
