"""Gluon or Triton source to machine code with no GPU, in child processes; metrics and parity of the result."""
