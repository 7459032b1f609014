"""Nodes in text that is put together from strings: a name stands for each, and is taken for the node again."""

from __future__ import annotations

from gluonize.gluon.nodes import Code, Node

MARKS = "ꙮꙗꙙ"  # letters, so that a hole is an expression, of which the source has one at most


class Holes:
    """The nodes of one function's text; equal nodes are one hole. source: the text that no hole may be mistaken in."""

    def __init__(self, source: str):
        self.mark = next(mark for mark in MARKS if mark not in source)
        self.nodes: list[Node] = []
        self.numbers: dict[Node, int] = {}

    def put(self, node: Node) -> str:
        """What stands for `node`: a call, as no name and no parenthesis is one."""
        number = self.numbers.setdefault(node, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(node)
        return f"{self.mark}{number}{self.mark}()"

    def code(self, text: str) -> Code:
        """Text with its nodes again."""
        first, *rest = text.split(self.mark)
        out: list[str | Node] = [first]
        for number, following in zip(rest[::2], rest[1::2]):
            out += [self.nodes[int(number)], following.removeprefix("()")]
        return tuple(part for part in out if part != "") or ("",)
