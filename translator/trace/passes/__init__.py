"""Triton's passes: the layouts that they settle on, and what the workgroups of a cluster share."""
