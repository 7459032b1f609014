"""Passes over the body of a pipelined loop: nodes in, nodes out."""
