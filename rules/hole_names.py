"""How holes of templates are written in their parts."""

ARGUMENTS = "arguments"  # the hole that is written `{...}`
OPERAND = "operand_"  # before the name of a hole that has to be an operand
Parts = tuple[str, ...]  # text, hole, text, hole, ..., text
