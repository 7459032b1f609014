"""What is done to a finished kernel so that the compiler spills less, or makes less code; no value changes.

    x += i_b * T             (first used further down)          ->    moved to where `x` is first used
    acc = gl.dot(a, b, acc)                                     ->    hint.sched_barrier()
                                                                      acc = gl.dot(a, b, acc)

LLVM schedules a block as a whole, before it knows the registers: it makes addresses, masks and products far ahead of their use,
and what it then spills, no rule over the source predicts. So these are found by trying (`relieve.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

BARRIER = "hint.sched_barrier()"
IMPORT = "from triton.experimental.gluon.language.amd import hint"
WHY = "# Found by trying: LLVM spills less, or makes less code, when it schedules nothing across this."
# Statements with one of these wait for memory or for matrix instructions, or take many registers.
_HEAVY = (
    "mfma",
    "wmma",
    "mfma_scaled",
    "wmma_scaled",
    "dot_fma",
    "load",
    "buffer_load",
    "store",
    "buffer_store",
    "where",
)
_REDUCTIONS = ("sum", "max", "min", "reduce", "associative_scan", "arange")


@dataclass(frozen=True)
class Relief:
    """late: scalars are made where they are first used. barriers: numbers of the statements (`statements`), after what is
    late was moved, that have a scheduling barrier in front of them."""

    late: bool = False
    barriers: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return self != Relief()

    def words(self) -> str:
        """As provenance lines have it: `late,12,40`."""
        return ",".join(["late"] * self.late + list(map(str, self.barriers)))

    def described(self) -> str:
        parts = ["scalars are made where they are first used"] * self.late
        return " and ".join([*parts, *["the compiler schedules nothing across barriers"] * bool(self.barriers)])


def parse_relief(words: str) -> Relief:
    """The inverse of `Relief.words`. Raises: ValueError."""
    parts = words.split(",") if words else []
    return Relief("late" in parts, tuple(int(part) for part in parts if part != "late"))


def relieved(text: str, relief: Relief, barrier: list[str]) -> str:
    """The text of one function with `relief`; barrier: the lines of a scheduling barrier."""
    text = with_late_scalars(text) if relief.late else text
    lines = text.splitlines(keepends=True)
    every = list(statements(text))
    chosen = [every[n] for n in relief.barriers if n < len(every)]
    places = {_line_above(lines, s): s.col_offset for s in chosen}
    for at, column in sorted(places.items(), reverse=True):
        lines[at:at] = [f"{' ' * column}{line}\n" for line in barrier]
    return "".join(lines)


def statements(text: str) -> Iterator[ast.stmt]:
    """The statements of a function that do something, each before what it holds; layouts and assertions do nothing."""

    def within(body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for s in body:
            if not _idle(s):
                yield s
            if isinstance(s, (ast.For, ast.While, ast.If)):
                yield from within(s.body)
                yield from within(s.orelse)

    return within(_function(text).body)


def places(text: str) -> tuple[int, ...]:
    """Numbers of the statements before which a barrier is worth trying.

    The first one, those with loads, products, reductions, selections or writes of a tile to LDS, and the last of a loop.
    """
    every = list(statements(text))
    ends = {every[0], *(s.body[-1] for s in every if isinstance(s, (ast.For, ast.While)))}
    compound = (ast.For, ast.While, ast.If)
    return tuple(n for n, s in enumerate(every) if s in ends or not isinstance(s, compound) and _is_heavy(s))


def with_late_scalars(text: str) -> str:
    """The text of one function whose scalar arithmetic stands where it is first used.

    Only statements of the function's own block move, over others of it that change none of their names.
    """
    body = _function(text).body
    order, moved = list(body), set()
    for s in reversed(body):
        if not _is_scalar_arithmetic(s):
            continue
        at = order.index(s)
        name = _target(s)
        reads = {n.id for n in ast.walk(s) if isinstance(n, ast.Name)}
        to = at
        for following in order[at + 1 :]:
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(following)) or _binds(following) & reads:
                break
            to += 1
        else:
            continue
        if to > at:
            order.insert(to, order.pop(at))
            moved.add(s)
    lines = text.splitlines(keepends=True)
    chunks = {s: lines[s.lineno - 1 : s.end_lineno] for s in moved}
    before: dict[int, list[str]] = {}
    for i, s in enumerate(order):
        if s in moved:
            anchor = next(x for x in order[i + 1 :] if x not in moved)
            before.setdefault(_line_above(lines, anchor), []).extend(chunks[s])
    gone = {n for s in moved for n in range(s.lineno - 1, s.end_lineno)}
    out = []
    for n, line in enumerate(lines):
        out += before.get(n, [])
        out += [] if n in gone else [line]
    return "".join(out)


def _line_above(lines: list[str], s: ast.stmt) -> int:
    """Index of the line before which something goes that is to stand before `s`: above its comment."""
    at = s.lineno - 1
    while lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return at


def _function(text: str) -> ast.FunctionDef:
    return next(n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef))


def _idle(s: ast.stmt) -> bool:
    """Whether a statement makes no instruction: a docstring, an assertion, a constant."""
    if isinstance(s, ast.Expr):
        return isinstance(s.value, ast.Constant) or "static_assert" in _called(s)
    return isinstance(s, ast.AnnAssign) or isinstance(s, ast.Pass)


def _is_heavy(s: ast.stmt) -> bool:
    return not _called(s).isdisjoint((*_HEAVY, *_REDUCTIONS))


def _called(s: ast.stmt) -> set[str]:
    calls = [n.func for n in ast.walk(s) if isinstance(n, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else f.id for f in calls if isinstance(f, (ast.Attribute, ast.Name))}


def _is_scalar_arithmetic(s: ast.stmt) -> bool:
    """Whether a statement gives one name a value made by arithmetic on names alone."""
    if isinstance(s, ast.AugAssign):
        return isinstance(s.target, ast.Name) and _is_arithmetic(s.value)
    simple = isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
    return simple and isinstance(s.value, ast.BinOp) and _is_arithmetic(s.value)


def _is_arithmetic(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_arithmetic(node.left) and _is_arithmetic(node.right)
    if isinstance(node, ast.Call):
        cast = isinstance(node.func, ast.Attribute) and node.func.attr == "to" and len(node.args) == 1
        return cast and not node.keywords and _is_arithmetic(node.func.value)
    return isinstance(node, (ast.Name, ast.Constant))


def _target(s: ast.stmt) -> str:
    target = s.targets[0] if isinstance(s, ast.Assign) else s.target
    return target.id


def _binds(s: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
