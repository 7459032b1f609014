"""Loops of the output as trees of frozen nodes: holes in text, what an expression is, the printer, the verifier."""
