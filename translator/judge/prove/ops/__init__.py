"""What each operation means to the prover: handlers that fill its table of operations."""
