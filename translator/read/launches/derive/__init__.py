"""Launches for a file of kernels when nobody gives any: proposed from all evidence, judged by Triton's front end."""
