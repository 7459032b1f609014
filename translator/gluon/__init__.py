"""The output as values: code with nodes in it, what an expression is, the body of a loop, names; the printer, the verifier."""
