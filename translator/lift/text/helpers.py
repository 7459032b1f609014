"""Functions of elements as helpers of the lifted kernel."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.lift.machine.functions import Function
from gluonize.lift.machine.spelled import node_text
from gluonize.lift.values.scalars import Expr
from gluonize.lift.values.tensors import Node


@dataclass(frozen=True)
class Helper:
    """text: of a `@triton.jit` function."""

    name: str
    text: str


def helper_of(function: Function, name: str) -> Helper:
    """The function as Triton text; what it computes more than once has a name."""
    lines: list[str] = []
    named: dict[int, str] = {}
    uses: dict[int, int] = {}

    def count(node: Node) -> None:
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1:
            for x in node.args:
                if isinstance(x, Node):
                    count(x)

    def text(x: Node | Expr) -> tuple[str, int]:
        assert isinstance(x, Node), "bug in gluonize: a function of an integer of the kernel"
        if id(x) not in named and (uses[id(x)] < 2 or not x.args):
            return node_text(x, text)
        if id(x) not in named:
            value = node_text(x, text)[0]
            named[id(x)] = f"y{len(named)}"
            lines.append(f"{named[id(x)]} = {value}")
        return named[id(x)], 10

    for result in function.results:
        count(result)
    given = ", ".join(f"x{i}" for i in range(function.params))
    lines.append(f"return {', '.join([text(x)[0] for x in function.results])}")
    body = "\n".join("    " + line for line in lines)
    return Helper(name, f"@triton.jit\ndef {name}({given}):\n{body}\n")
