"""Loops of the output as trees of frozen nodes: code with nodes in it, what an expression is, the printer, the verifier."""
