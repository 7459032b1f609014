"""One-step mutants of a Gluon file: what a translator or an editing hand gets wrong.

Each mutant changes one place: a wait, commit, barrier, arrival, copy or store deleted; a wait count, barrier count, phase or ring
index changed; a mask, bound or fill value changed; a loop or prologue shortened; a pointer not advanced; a conversion left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

# Calls that stand alone as statements -> the category of the mutant that deletes one.
DELETED = {
    "wait_group": "wait", "async_wait": "wait", "wait": "wait", "barrier": "barrier", "init": "barrier", "arrive": "barrier",
    "mbarrier_arrive": "barrier", "commit_group": "commit", "async_load": "copy", "async_store": "copy", "async_gather": "copy",
    "async_scatter": "copy", "async_load_fused": "copy", "buffer_load_to_shared": "copy", "global_load_to_shared": "copy",
    "global_to_shared": "copy", "shared_to_global": "copy", "store": "store", "buffer_store": "store",
}  # fmt: skip
COUNTED = {"wait_group", "async_wait"}
TIGHTER = {ast.Lt: "<=", ast.GtE: ">", ast.LtE: "<", ast.Gt: ">="}
VIEWS = {"permute", "trans"}


@dataclass(frozen=True)
class Mutant:
    """`text` is the whole file after the change `what` at lines `line` to `last`, in function `function`.

    `before` is the first changed line as it was, stripped.
    """

    what: str
    category: str
    function: str
    line: int
    last: int
    before: str
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """All mutants of the jit functions of a file, in the order of the file."""
    for function in ast.parse(text).body:
        if isinstance(function, ast.FunctionDef) and function.decorator_list:
            yield from _Function(text, function).mutants()


def _name(call: ast.AST) -> str:
    if not isinstance(call, ast.Call):
        return ""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


class _Function:
    """The mutants of one function."""

    def __init__(self, text: str, function: ast.FunctionDef):
        self.text, self.function = text, function
        self.raw = text.encode()
        self.lines = [0]
        for line in self.raw.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.rings = _rings(function, self.source)
        self.masks = {
            k.value.id for n in ast.walk(function) if isinstance(n, ast.Call) for k in n.keywords if k.arg == "mask" and isinstance(k.value, ast.Name)
        }  # fmt: skip

    def source(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.raw[start:end].decode()

    def span(self, node: ast.AST) -> tuple[int, int]:
        lines = self.lines
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset

    def change(self, node: ast.AST, new: str, what: str, category: str, statement: ast.AST | None = None) -> Mutant:
        """`node` replaced by `new`. Lines that go are made up for, so that those behind keep their numbers."""
        start, end = self.span(node)
        new += "\n" * (self.source(node).count("\n") - new.count("\n"))
        place = statement or node
        before = self.text.splitlines()[place.lineno - 1].strip()
        text = (self.raw[:start] + new.encode() + self.raw[end:]).decode()
        return Mutant(what, category, self.function.name, place.lineno, place.end_lineno, before, text)

    def mutants(self) -> Iterator[Mutant]:
        for statement in ast.walk(self.function):
            if isinstance(statement, ast.stmt) and statement is not self.function:
                yield from self._statement(statement)

    def _statement(self, statement: ast.stmt) -> Iterator[Mutant]:
        source, change = self.source, self.change
        if isinstance(statement, ast.Expr) and _name(statement.value) in DELETED:
            name = _name(statement.value)
            yield change(statement, "pass", f"{name} deleted", DELETED[name])
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Add, ast.Sub)):
            yield change(statement, "pass", f"{source(statement.target)} not advanced", "advance")
        if isinstance(statement, ast.For) and _name(statement.iter) in ("range", "static_range"):
            bounds = statement.iter.args
            end = bounds[1] if len(bounds) > 1 else bounds[0]
            step = source(bounds[2]) if len(bounds) > 2 else "1"
            prologue = _name(statement.iter) == "static_range" and "NUM_BUFFERS" in source(end)
            what, category = (
                ("prologue one step shorter", "prologue") if prologue else ("loop one trip shorter", "loop")
            )
            yield change(end, f"({source(end)}) - ({step})", what, category, statement.iter)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            if statement.targets[0].id in self.masks:
                yield from self._comparisons(statement.value, statement)
        for node in _own_expressions(statement):
            yield from self._expression(node, statement)

    def _expression(self, node: ast.AST, statement: ast.stmt) -> Iterator[Mutant]:
        source = self.source

        def change(part: ast.AST, new: str, what: str, category: str) -> Mutant:
            return self.change(
                part, new, what, category, None if isinstance(statement, (ast.For, ast.If, ast.While)) else statement
            )

        if isinstance(node, ast.Attribute) and node.attr == "T":
            yield change(node, source(node.value), "transposition left out", "conversion")
        if not isinstance(node, ast.Call):
            return
        name, arguments = _name(node), node.args
        if name in COUNTED and arguments:
            yield change(arguments[0], f"({source(arguments[0])}) + 1", "wait count raised", "wait")
        if name == "wait" and len(arguments) > 1:
            yield change(arguments[1], f"({source(arguments[1])}) ^ 1", "waits for the other phase", "wait")
        if name == "init" and len(arguments) > 1:
            yield change(arguments[1], f"({source(arguments[1])}) + 1", "barrier expects one arrival more", "barrier")
            yield change(arguments[1], f"({source(arguments[1])}) - 1", "barrier expects one arrival less", "barrier")
        if name == "index" and arguments and isinstance(node.func, ast.Attribute):
            slots = self.rings.get(source(node.func.value))
            if slots:
                yield change(
                    arguments[0], f"({source(arguments[0])} + 1) % ({slots})", "next slot of the ring", "ring index"
                )
        if name == "convert_layout" and arguments:
            yield change(node, source(arguments[0]), "conversion left out", "conversion")
        if name in VIEWS and isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name):
            yield change(node, source(node.func.value), "transposition left out", "conversion")
        if name == "update_tensor_descriptor" and arguments:
            yield change(node, source(arguments[0]), "descriptor not updated", "advance")
        if name == "make_tensor_descriptor" and len(arguments) > 1 and isinstance(arguments[1], (ast.List, ast.Tuple)):
            for bound in arguments[1].elts:
                yield change(bound, f"({source(bound)}) + 1", "bound one too wide", "mask")
        if name == "where" and arguments and isinstance(arguments[0], ast.Compare):
            yield from self._comparisons(arguments[0], statement)
        for keyword in node.keywords:
            yield from self._keyword(node, keyword, statement, change)

    def _keyword(self, call: ast.Call, keyword: ast.keyword, statement: ast.stmt, change) -> Iterator[Mutant]:
        if keyword.arg == "mask":
            if any(k.arg == "other" for k in call.keywords):
                yield change(keyword.value, f"({self.source(keyword.value)}) | True", "mask dropped", "mask")
            elif not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None):
                yield change(keyword.value, "None", "mask dropped", "mask")
            yield from self._comparisons(keyword.value, statement)
        if keyword.arg == "other":
            # A one may be multiplied by the zeros of the other operand.
            is_float = re.search(r"\.|inf|nan", self.source(keyword.value))
            yield change(keyword.value, 'float("nan")' if is_float else "1", "fill value changed", "mask")
        if keyword.arg == "pred":
            yield change(keyword.value, "True", "predicate dropped", "mask")
        if keyword.arg == "mbarrier":
            yield change(keyword.value, "None", "signals no barrier", "barrier")

    def _comparisons(self, node: ast.AST, statement: ast.stmt) -> Iterator[Mutant]:
        for part in ast.walk(node):
            if isinstance(part, ast.Compare) and type(part.ops[0]) in TIGHTER:
                new = f"{self.source(part.left)} {TIGHTER[type(part.ops[0])]} {self.source(part.comparators[0])}"
                yield self.change(part, new, "mask off by one", "mask", statement)


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement without those of the statements in it."""
    todo = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while todo:
        node = todo.pop(0)
        yield node
        todo += ast.iter_child_nodes(node)


def _rings(function: ast.FunctionDef, source) -> dict[str, str]:
    """Variable -> number of slots, as text, of the shared memory that it names; one slot has no wrong index."""
    defaults = dict(zip([a.arg for a in function.args.args][::-1], function.args.defaults[::-1]))
    out: dict[str, str] = {}
    for node in ast.walk(function):
        if not (
            isinstance(node, ast.Assign) and _name(node.value) == "allocate_shared_memory" and len(node.value.args) > 1
        ):
            continue
        shape = node.value.args[1]
        if not isinstance(shape, ast.List) or len(shape.elts) < 2:
            continue
        slots = source(shape.elts[0])
        size = defaults.get(slots, shape.elts[0])
        if not (isinstance(size, ast.Constant) and size.value == 1):
            out[source(node.targets[0])] = slots
    return out


def reachable(text: str, kernel: str) -> set[str]:
    """Names that `kernel` of the file mentions, directly or through other functions and assignments of the file."""
    tree = ast.parse(text)
    bodies: dict[str, set[str]] = {}
    for node in tree.body:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bodies.setdefault(node.name, set()).update(names)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                bodies.setdefault(getattr(target, "id", ""), set()).update(names)
    found, todo = set(), [kernel]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += bodies.get(name, ())
    return found
