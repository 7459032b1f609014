"""What the values of a function come from, and what the author calls them."""

from __future__ import annotations

import re

from gluonize.trace.model.module import Function
from gluonize.trace.model.op import Op
from gluonize.trace.model.op_text import author_name as named
from gluonize.trace.model.types import Type

_NUMBERED = re.compile(r"\.\d+(?=#|$)")
PRODUCTS = ("tt.dot", "tt.dot_scaled")
# What moves or casts a tensor, so that it is still called as its first operand.
_PASSED_ON = (
    *("ttg.convert_layout", "amdg.in_thread_transpose", "arith.truncf", "arith.extf", "tt.fp_to_fp", "tt.bitcast"),
    *(
        "tt.trans",
        "ttg.memdesc_trans",
        "ttg.memdesc_index",
        "ttg.memdesc_subslice",
        "ttg.local_load",
        "ttg.local_alloc",
    ),
    *("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims"),
)


def author_name(value: str) -> str:
    """The author's name of a value, "" where there is none; a value that got a name of its own here (`unique.py`) is called as before."""
    return named(_NUMBERED.sub("", value))


class Origins:
    """made: by which operation a value is; kinds: of what type; parameters: of the function, as the module calls them; operands: what the
    author calls what a product is given, where the module says the name of the product; products: where values go that only lead to one.
    """

    def __init__(self, function: Function | None):
        self.made: dict[str, Op] = {}
        self.kinds: dict[str, Type] = {}
        self.parameters: dict[str, str] = {}
        self.operands: dict[str, str] = {}
        self._first: dict[str, str] = {}  # what a loop carries, and gives -> what it begins with
        self._loops: set[tuple] = set()
        if function is None:
            return
        self.kinds |= dict(function.arguments)
        self.parameters |= zip((value for value, _ in function.arguments), function.argument_names)
        for op in function.walk():
            self.made |= dict.fromkeys(op.results, op)
            self.kinds |= zip(op.results, op.result_types)
            if op.name == "scf.for":
                self._loops |= {_where(op)} if op.place.name else set()
                for (argument, first), result, kind in zip(op.for_loop.bindings, op.results, op.result_types):
                    self._first |= {argument: first, result: first}
                    self.kinds[argument] = kind
        for op in function.walk():
            if op.name in PRODUCTS and op.place.name:
                for value in op.operands:
                    self._operand(value, op.place.name)

    def _operand(self, value: str, product: str) -> None:
        """Tell the names of what an operand of a product is made of."""
        name = self.stem(value, product)
        while (op := self.made.get(value)) is not None and op.name in _PASSED_ON and op.operands:
            if self.name(value) != product:
                break
            self.operands[value] = name
            value = op.operands[0]

    def name(self, value: str) -> str:
        """The author's name of a value. A loop is called by the compiler after something that it carries, and so is all that counts it."""
        op = self.made.get(value)
        if op is not None and op.name not in PRODUCTS and _where(op) in self._loops:
            return ""
        name = author_name(value) or (op.place.name if op else "")
        return self.operands.get(value, name)

    def stem(self, value: str, other: str = "") -> str:
        """What the author calls a tensor, or what it was before it was moved or cast; not as `other`, the result of what uses it."""
        found = ""
        while True:
            name = self.name(value)
            if name and not name.startswith("arg") and name != other:
                return name
            found, op = found or name, self.made.get(value)
            if op is not None and op.name in _PASSED_ON and op.operands:
                value = op.operands[0]
            elif value in self._first:
                value = self._first[value]
            else:
                return found

    def root(self, value: str) -> str:
        """The parameter that a pointer is made of, else what the author calls what it is made of."""
        while value not in self.parameters:
            op = self.made.get(value)
            if op is not None and op.name in _PASSED_ON:
                value = op.operands[0]
            elif value in self._first:
                value = self._first[value]
            else:
                return self.name(value)
        return self.parameters[value]


def _where(op: Op) -> tuple:
    return op.place.line, op.place.column, op.place.name
