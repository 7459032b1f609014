"""The numbers of a kernel's expressions: ranges, signs, overflow."""
