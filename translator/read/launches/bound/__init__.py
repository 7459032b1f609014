"""Launches in host code as bindings of a kernel's arguments: what is known of each, and what is not."""
