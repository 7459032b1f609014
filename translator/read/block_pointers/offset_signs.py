"""Which integers of a function are not negative, as far as its text says: an offset that is not needs no lower bound in a mask."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any

from gluonize.read.block_pointers.builtin_calls import arguments_of, given, name_of
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.triton_api.language import constexpr

_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip


class Signs:
    """What is known of the integers of one function. constants: compile-time values of its parameters, where they are known; calls: of
    this function, with what is known where each stands."""

    def __init__(self, fn: JITFunction, tree: ast.FunctionDef, constants: Mapping[str, Any]):
        self.fn, self.constants = fn, constants
        self.calls: list[tuple[Signs, ast.Call]] = []
        self.values: dict[str, list[tuple[str, Any]]] = {}
        self.extents: set[str] = set()
        self._collect(tree.body)
        self._asked: set[str] = set()
        self.parameters = set(fn.arg_names)

    def _collect(self, body: list[ast.stmt]) -> None:
        """What each name is given, statements that these constants leave out excepted."""
        for s in body:
            if isinstance(s, ast.If) and (test := self.constant(s.test)) is not None:
                self._collect(s.body if test[0] else s.orelse)
                continue
            if isinstance(s, ast.Assign):
                for target in s.targets:
                    self._assigned(target, s.value)
            elif isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
                self._add(s.target.id, "value", s.value)
            elif isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
                grows = isinstance(s.op, ast.Add | ast.Mult | ast.FloorDiv)
                self._add(s.target.id, "value" if grows else "unknown", s.value)
            elif isinstance(s, ast.For):
                for name in (n for n in ast.walk(s.target) if isinstance(n, ast.Name)):
                    self._add(name.id, "range" if name is s.target else "unknown", s.iter)
            for call in (n for n in ast.walk(s) if name_of(n) == "make_block_ptr"):
                block = given(call).get("block_shape")
                self.extents |= {e.id for e in getattr(block, "elts", ()) if isinstance(e, ast.Name)}
            for field in ("body", "orelse"):
                self._collect(getattr(s, field, []))

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._add(target.id, "value", value)
        elif isinstance(target, ast.Tuple | ast.List):
            same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            for n, element in enumerate(target.elts):
                if same:
                    self._assigned(element, value.elts[n])  # type: ignore[attr-defined]
                else:
                    for name in (x for x in ast.walk(element) if isinstance(x, ast.Name)):
                        self._add(name.id, "unknown", value)

    def _add(self, name: str, kind: str, value: Any) -> None:
        self.values.setdefault(name, []).append((kind, value))

    def constant(self, node: ast.expr) -> tuple[Any] | None:
        """The compile-time value of an expression; None where it is not known."""
        try:
            return (self._evaluated(node),)
        except (LookupError, TypeError, ValueError, ZeroDivisionError):
            return None

    def _evaluated(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in self.values:
                raise LookupError(node.id)
            if node.id in self.constants:
                return self.constants[node.id]
            found = self.fn.__globals__.get(node.id)
            found = found.value if isinstance(found, constexpr) else found
            if node.id in self.fn.arg_names or not isinstance(found, int | float | str | tuple):
                raise LookupError(node.id)
            return found
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self._evaluated(node.operand)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._evaluated(node.operand)
        if isinstance(node, ast.BoolOp):
            values = [self._evaluated(v) for v in node.values]
            return all(values) if isinstance(node.op, ast.And) else any(values)
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](self._evaluated(node.left), self._evaluated(node.right))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return _OPERATORS[type(node.ops[0])](self._evaluated(node.left), self._evaluated(node.comparators[0]))
        raise LookupError(type(node).__name__)

    def not_negative(self, node: ast.expr) -> bool:
        """Whether an integer is known not to be negative."""
        found = self.constant(node)
        if found is not None:
            return isinstance(found[0], int) and found[0] >= 0
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.IfExp):
            return self.not_negative(node.body) and self.not_negative(node.orelse)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mod | ast.RShift):  # a remainder has the sign of the dividend
                return self.not_negative(node.left)
            if isinstance(node.op, ast.Add | ast.Mult | ast.FloorDiv):
                return self.not_negative(node.left) and self.not_negative(node.right)
            return False
        return isinstance(node, ast.Call) and self._call(node)

    def _name(self, name: str) -> bool:
        if name in self.extents and (name in self.parameters or name not in self.values):
            return True  # the extent of a tile, a compile-time constant
        if name not in self.values and name not in self.parameters:
            return False
        if name in self._asked:
            return True  # by induction over the rounds of a loop
        self._asked.add(name)
        try:
            own = all(self._given(kind, value) for kind, value in self.values.get(name, ()))
            return own and (name not in self.parameters or self._handed(name))
        finally:
            self._asked.discard(name)

    def _handed(self, name: str) -> bool:
        """Whether all calls give a parameter what is not negative."""
        for caller, call in self.calls:
            value = dict(arguments_of(self.fn, call)).get(name)
            default = self.fn.signature.parameters[name].default
            default = default.value if isinstance(default, constexpr) else default
            known = isinstance(default, int) and default >= 0 if value is None else caller.not_negative(value)
            if not known:
                return False
        return bool(self.calls)

    def _given(self, kind: str, value: Any) -> bool:
        if kind == "value":
            return value is not None and self.not_negative(value)
        return kind == "range" and self._range(value)

    def _range(self, node: ast.expr) -> bool:
        """Whether the index of a loop is not negative."""
        if name_of(node) not in ("range", "static_range") or getattr(node, "keywords", ()):
            return False
        start, stop, step = [*node.args, None, None][:3] if len(node.args) > 1 else [None, node.args[0], None]  # type: ignore[attr-defined]
        by = self.constant(step) if step is not None else (1,)
        if by is not None and isinstance(by[0], int) and by[0] < 0:
            end = self.constant(stop)  # type: ignore[arg-type]
            return end is not None and isinstance(end[0], int) and end[0] >= -1
        return (start is None or self.not_negative(start)) and (by is not None or self.not_negative(step))  # type: ignore[arg-type]

    def _call(self, node: ast.Call) -> bool:
        name = name_of(node)
        if name in ("program_id", "num_programs"):
            return True
        if name == "to" and isinstance(node.func, ast.Attribute):
            wide = len(node.args) == 1 and ast.unparse(node.args[0]).endswith("int64")
            return wide and self.not_negative(node.func.value)
        if name == "multiple_of" and node.args:
            return self.not_negative(node.args[0])
        signs = [self.not_negative(a) for a in node.args]
        if name in ("min", "max") and not isinstance(node.func, ast.Name):
            return False  # of the elements of a tensor
        if name in ("cdiv", "min", "minimum"):
            return len(signs) > 1 and all(signs)
        return name in ("max", "maximum") and any(signs)


__all__ = ["Signs"]
