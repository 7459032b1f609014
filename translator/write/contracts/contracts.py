"""What a translation relies on, as code that refuses everything else by name.

Compile-time assumptions become `gl.static_assert`s at the top of the kernel; run-time ones are checked before the launch
(`gluonize.output.contracts.launch_checks`). A kernel relies on the number of warps as soon as it has a layout, and on tile sizes and element types as soon as
a layout is tied to them (matrix operands, linear layouts).
"""

from __future__ import annotations

import ast
import functools
import json
import textwrap
from collections.abc import Callable, Container, Iterable, Sequence, Set
from dataclasses import dataclass
from types import ModuleType

import libcst as cst
from gluonize.decide.layouts.size_range import Bound, SizeRange, in_words
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import loop_bounds, trips_of
from gluonize.gluon.code import code_of
from gluonize.gluon.names import spelled_apart
from gluonize.gluon.nodes import Code
from gluonize.gluon.trees.function import LINE_LENGTH, GluonFunction, layout_made, parsed
from gluonize.gluon.trees.walk import called, children, dotted, names, walk
from gluonize.gluon.written import Written, grouped, literal
from gluonize.read.text.source_text import Edit
from gluonize.rules import gluon
from gluonize.trace.front.trace import ConstFact
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.write.contracts.configuration import (
    Configuration,
    Key,
    any_of,
    common_keys,
    functions_and_types,
    words_of,
)

_UNTRANSLATED = "was in no translated launch"
_IDLE = "has no trip in any translated launch"
# Layouts that fit one element type only, and those that fit one shape only.
_MATRIX = frozenset(op.name for op in gluon.OPS if op.fits == "type")
_SHAPED = _MATRIX | {op.name for op in gluon.OPS if op.fits == "shape"}
_QUOTED = 100  # columns of a string literal
_ASSERTED = LINE_LENGTH - 4  # columns of a statement at the top of a kernel
_ELEMENTS = ("element", "dtype")  # kinds of keys whose values are element types
_OPTIONS = ("num_warps", "num_stages")  # sizes that are no tile sizes
# Calls that take a shape, which may be written out as numbers.
_TAKE_SHAPES = frozenset(f"gl.{op.name}" for op in gluon.OPS if op.takes_shape)
_CONVERSIONS = gluon.named(gluon.Effect.CONVERTS)
# Buffer operations that store, with the place of the pointer among their arguments.
_TO_BUFFERS = {
    op.name: op.operands.index("ptr") for op in gluon.OPS if op.effect & gluon.Effect.STORES and "ptr" in op.operands
}
# Operations of modules of an architecture that take addresses, with the places of these: elements of one bit have none of them.
_OF_ADDRESSES = {
    op.name: tuple(i for i, operand in enumerate(op.operands) if operand in ("ptr", "pointer"))
    for op in gluon.OPS
    if op.effect & (gluon.Effect.LOADS | gluon.Effect.STORES) and {"ptr", "pointer"} & set(op.operands)
}
_ALLOCATIONS = gluon.named(gluon.Effect.ALLOCATES)
_OF_POINTER = ".dtype.element_ty"
_BITS = ("i1", "u1", "B")  # how launches spell elements of one bit
# Calls whose arguments give shapes.
_SHAPE_CALLS = frozenset(
    "arange zeros full reshape view broadcast_to expand_dims make_tensor_descriptor make_block_ptr ones zeros_like rand"
    " randint randn".split()
)

_OF_TENSORS = frozenset("reshape view broadcast_to expand_dims".split())  # the first argument as functions


def untranslated(fn: JITFunction, condition: str) -> str:
    """The statement that stands for code which no launch reached, under a compile-time condition.

    It names no line: a comment above would change the text of what does the same.
    """
    what = " ".join(condition.split()) or "this code"
    return f"gl.static_assert(False, {quoted(f'{fn.__name__}: `{what}` {_UNTRANSLATED}')})"


def idle_loop(facts: FunctionFacts, loop: ast.For, emit: Callable[[ast.expr], Written]) -> list[Code]:
    """The statement that refuses trips of a loop which makes none by its compile-time bounds; none for any other loop."""
    bounds = loop_bounds(facts, loop)
    if bounds is None or trips_of(facts, *bounds) != 0:
        return []
    low, high, _ = bounds
    if not any(isinstance(n, ast.Name) for bound in (low, high) if bound is not None for n in ast.walk(bound)):
        return []  # it never makes one
    first, last = literal(0) if low is None else _side(low, emit), _side(high, emit)
    fn = facts.frame.fn
    message = quoted(f"{fn.__name__}: `{loop_text(facts, loop)}` {_IDLE}")
    return [code_of("gl.static_assert(", last, " <= ", first, f", {message})")]


def loop_text(facts: FunctionFacts, loop: ast.For) -> str:
    """`for j in range(n)`, as the author wrote it."""
    return f"for {facts.source.of(loop.target)} in {facts.source.of(loop.iter)}"


def _side(node: ast.expr, emit: Callable[[ast.expr], Written]) -> Written:
    """One side of a comparison."""
    loose = isinstance(node, (ast.Compare, ast.BoolOp, ast.IfExp, ast.UnaryOp, ast.NamedExpr))
    return grouped(emit(node)) if loose else emit(node)


def missing_side(facts: FunctionFacts, owned: Container[ast.AST], s: ast.If) -> list[Edit]:
    """The edit that refuses the side which a compile-time conditional does not have; none where nothing rests on the other.

    owned: statements of pipelined loops. Copies and waits of such a loop are those of a body that has these.
    """
    fact, end = facts.fact(s.test), facts.source.line_end(s)
    decided = isinstance(fact, ConstFact) and fact.value and not s.orelse
    if not decided or not any(n in owned for inner in s.body for n in ast.walk(inner)):
        return []
    refusal, indent = untranslated(facts.frame.fn, negated(facts.source.of(s.test))), facts.source.indent(s)
    return [(end, end, f"\n{indent}else:\n{indent}    {refusal}")]


def negated(condition: str) -> str:
    """The opposite of a condition, as source text."""
    if condition.startswith("not ") and condition[4:].isidentifier():
        return condition[4:]
    return f"not {condition}" if condition.isidentifier() else f"not ({condition})"


def is_untranslated(node: cst.CSTNode) -> bool:
    """Whether the statement or expression is what `untranslated` wrote."""
    return _UNTRANSLATED in _refusal(node)


def is_idle_loop(node: cst.CSTNode) -> bool:
    """Whether the statement is what `idle_loop` wrote."""
    return _IDLE in _refusal(node)


def _refusal(node: cst.CSTNode) -> str:
    """What a `gl.static_assert` says, a statement or an expression; "" of anything else."""
    if isinstance(node, cst.SimpleStatementLine):
        node = node.body[0]
    call = node.value if isinstance(node, cst.Expr) else node
    if not isinstance(call, cst.Call) or dotted(call.func) != "gl.static_assert" or len(call.args) != 2:
        return ""
    message = call.args[1].value
    said = message.evaluated_value if isinstance(message, cst.SimpleString | cst.ConcatenatedString) else None
    return said if isinstance(said, str) else ""


def quoted(text: str) -> str:
    """A string literal in double quotes; of a long text several, which are one string."""
    pieces = textwrap.wrap(text, _QUOTED, drop_whitespace=False, break_long_words=False, break_on_hyphens=False)
    return " ".join(json.dumps(piece, ensure_ascii=False) for piece in pieces or [""])


@dataclass(frozen=True)
class Needs:
    """Which facts about a launch the text of a kernel is tied to."""

    num_warps: bool
    shapes: frozenset[str]  # constexpr parameters on which tensor shapes depend
    elements: bool  # element types of all pointers
    stored: frozenset[str] = frozenset()  # pointers whose element type a store relies on
    fixed: frozenset[str] = frozenset()  # constexpr parameters whose values stand in the text without their names
    addressed: frozenset[str] = frozenset()  # pointers behind operations that have no elements of one bit

    def wants(self, key: Key) -> bool:
        if key.kind in ("num_warps", "num_ctas"):
            return self.num_warps
        if key.kind == "constexpr":
            return key.name in self.shapes or key.name in self.fixed
        return key.kind in ("element", "dtype") and (self.elements or key.name in self.stored)


def needs(
    fn: JITFunction, functions: Sequence[GluonFunction], read: Set[str], configurations: Sequence[Configuration]
) -> Needs:
    """What a translated kernel and its helpers, in this order, are tied to.

    read: the parameters that the source depends on. configurations: of the launches that it serves.
    """
    uses = [uses_of(function) for function in functions]
    made = frozenset().union(*(use.layouts for use in uses))
    shaped = bool(made & _SHAPED) or any(use.literal_shapes for use in uses)
    # What a helper stores to is not looked into: then the types of all pointers count.
    elements = bool(made & _MATRIX) or any(use.stored for use in uses[1:])
    shapes = shape_parameters(fn) if shaped else frozenset()
    # A parameter that the translation does not name is fixed in it; of a function, it has what is called.
    called, types = functions_and_types(configurations)
    fixed = read - functions[0].variables.keys() | read & called
    shapes -= types - fixed
    fixed = frozenset(fixed | (read & types if elements else set()))
    return Needs(bool(made), shapes, elements, uses[0].stored, fixed, _addressed(functions))


def _addressed(functions: Sequence[GluonFunction]) -> frozenset[str]:
    """The names of the first function, a kernel, behind operations that have no elements of one bit, its own and those of helpers."""
    found: dict[str, frozenset[str]] = {}
    for function in functions:  # several of one name are translations for several launches
        found[function.name] = found.get(function.name, frozenset()) | uses_of(function).addressed
    parameters = {f.name: [p.name.value for p in f.parameters] for f in functions}
    while True:  # a helper's parameters are arguments of who calls it
        before = dict(found)
        for function in functions:
            handed: set[str] = set()
            for call in uses_of(function).calls:
                name = called(call)
                for i, argument in enumerate(call.args) if found.get(name) else ():
                    bound = argument.keyword.value if argument.keyword else (parameters[name][i:] or [""])[0]
                    handed |= _shaping(argument.value) if bound in found[name] or argument.star else set()
            found[function.name] |= _reached(handed, _sources(function.node)) if handed else handed
        if found == before:
            return frozenset(found[functions[0].name])


@dataclass(frozen=True)
class Uses:
    """layouts: constructors that a function calls; literal_shapes: whether it writes a shape out as numbers; stored: the names
    behind the pointers of buffer stores and atomics whose value is not cast to the pointer's own type; addressed: those behind
    all addresses of buffer operations and copies, and behind the element types of LDS; calls: all that it calls."""

    layouts: frozenset[str]
    literal_shapes: bool
    stored: frozenset[str]
    addressed: frozenset[str]
    calls: tuple[cst.Call, ...]


@functools.lru_cache(maxsize=1024)
def uses_of(function: GluonFunction) -> Uses:
    calls = [n for n in walk(function.node) if isinstance(n, cst.Call)]
    stored: set[str] = set()
    addressed: set[str] = set()
    for call in calls:
        name = called(call)
        if name in _TO_BUFFERS:
            at = _TO_BUFFERS[name]
            if not at or not _is_cast(call.args[0].value):  # what is stored stands before where
                stored |= names(call.args[at])
        for at in _OF_ADDRESSES.get(name, ()):
            addressed |= _shaping(call.args[at]) if at < len(call.args) else set()
        if name in _ALLOCATIONS and call.args and dotted(call.args[0].value).endswith(_OF_POINTER):
            addressed |= names(call.args[0])
    sources = _sources(function.node) if addressed else {}
    return Uses(
        frozenset(made for call in calls if (made := layout_made(call))),
        any(_has_literal_shape(call) for call in calls),
        frozenset(_reached(stored, sources)),
        frozenset(_reached(addressed, sources)),
        tuple(calls),
    )


def _has_literal_shape(call: cst.Call) -> bool:
    lists = [a.value for a in call.args if isinstance(a.value, cst.List)] if dotted(call.func) in _TAKE_SHAPES else []
    return any(isinstance(element.value, cst.Integer) for shape in lists for element in shape.elements)


def _is_cast(value: cst.BaseExpression) -> bool:
    """`x.to(ptr.dtype.element_ty)`, perhaps converted to another layout."""
    if called(value) in _CONVERSIONS:
        return _is_cast(value.args[0].value)  # type: ignore[attr-defined]
    return called(value) == "to" and dotted(value.args[0].value).endswith(_OF_POINTER)  # type: ignore[attr-defined]


def _sources(tree: cst.CSTNode) -> dict[str, set[str]]:
    """The names in what is assigned to each name."""
    out: dict[str, set[str]] = {}
    for node in walk(tree):
        targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else []
        targets = [node.target] if isinstance(node, cst.AnnAssign) and node.value is not None else targets
        for target in targets:
            for name, value in _bound(target, node.value):
                out.setdefault(name, set()).update(_shaping(value))
    return out


def _bound(target: cst.CSTNode, value: cst.CSTNode) -> list[tuple[str, cst.CSTNode]]:
    """The names that an assignment binds, each with what it is part of."""
    if isinstance(target, cst.Name):
        return [(target.value, value)]
    if not isinstance(target, (cst.Tuple, cst.List)):
        return []
    parts = [value] * len(target.elements)
    if isinstance(value, cst.Tuple) and len(value.elements) == len(parts):
        parts = [element.value for element in value.elements]
    return [pair for element, part in zip(target.elements, parts) for pair in _bound(element.value, part)]


def _reached(found: set[str], sources: dict[str, set[str]]) -> set[str]:
    """The names, and all that they are made of."""
    todo, reached = set(found), set()
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo |= sources.get(name, set())
    return reached


def shape_parameters(fn: JITFunction, _busy: frozenset[int] = frozenset()) -> frozenset[str]:
    """The parameters of a source function on which the shapes of its tensors depend."""
    tree = parsed(fn.src).node
    wanted: set[str] = set()
    for node in walk(tree):
        if isinstance(node, cst.Call):
            wanted |= _shape_names(fn, node, _busy | {id(fn)})
    reached = _reached(wanted, _sources(tree))
    return frozenset(p.name for p in fn.params if p.name in reached)


def _shape_names(fn: JITFunction, call: cst.Call, busy: frozenset[int]) -> set[str]:
    """The names in those arguments of a call that decide shapes."""
    name = called(call)
    if name in _SHAPE_CALLS and isinstance(call.func, cst.Attribute):
        module = isinstance(call.func.value, cst.Name) and isinstance(
            fn.__globals__.get(call.func.value.value), ModuleType
        )
        return set().union(*map(_shaping, call.args[1:] if module and name in _OF_TENSORS else call.args))
    helper = fn.__globals__.get(name)
    if not isinstance(helper, JITFunction) or id(helper) in busy or helper.__module__.startswith("triton."):
        return set()
    shapes = shape_parameters(helper, busy)
    positional = [a for a in call.args if a.keyword is None]
    bound = dict(zip((p.name for p in helper.params), positional)) | {
        a.keyword.value: a for a in call.args if a.keyword
    }
    return set().union(*(_shaping(value) for parameter, value in bound.items() if parameter in shapes))


def _shaping(node: cst.CSTNode) -> set[str]:
    """The names in an expression, but for those of which it takes the type alone, or the shape: that follows from the calls that make them."""
    if isinstance(node, cst.Attribute) and node.attr.value in ("shape", "dtype"):
        return set()
    return {node.value} if isinstance(node, cst.Name) else set().union(*map(_shaping, children(node)))


def within(kernel: str, limits: Sequence[SizeRange | Bound]) -> list[str]:
    """The statement that refuses sizes outside the ranges and bounds that layouts were tried for."""
    if not limits:
        return []
    options = [limit for limit in limits if isinstance(limit, SizeRange) and limit.name in _OPTIONS]
    tiles = [limit for limit in limits if isinstance(limit, SizeRange) and limit not in options]
    groups = [tiles, options, *([limit] for limit in limits if not isinstance(limit, SizeRange))]
    tests = [" and ".join(conditions(group)) for group in groups if group]
    message = f"{kernel} is translated for {in_words(limits)}"
    return [f"gl.static_assert({' and '.join(tests)}, {quoted(message)})"]


def conditions(limits: Sequence[SizeRange | Bound]) -> list[str]:
    """Limits as expressions of device code."""
    return [limit.condition(_size) for limit in limits]


def _size(name: str) -> str:
    return Key("num_warps", name).expression if name == "num_warps" else name


def assertions(
    kernel: str, needed: Needs, configurations: Sequence[Configuration], elsewhere: Sequence[Key] = ()
) -> list[str]:
    """Statements that refuse every configuration but the given ones.

    elsewhere: the keys that are checked in another place.
    """
    keys = [key for key in common_keys(configurations) if needed.wants(key) and key not in elsewhere]
    rows = list(dict.fromkeys(tuple(c[key] for key in keys) for c in configurations))
    fixed = [i for i in range(len(keys)) if len({repr(row[i]) for row in rows}) == 1]
    of_type = [i for i in fixed if keys[i].kind in _ELEMENTS]
    values = sorted((i for i in fixed if i not in of_type), key=lambda i: keys[i].kind == "constexpr")
    out = stated([keys[i].condition(rows[0][i]) for i in values])
    out += stated([keys[i].condition(rows[0][i]) for i in of_type])
    varying = [key for i, key in enumerate(keys) if i not in fixed]
    alike, varying = pointers_alike(varying, elsewhere, configurations)
    rows = list(dict.fromkeys(tuple(c[key] for key in varying) for c in configurations))
    if varying:
        out += one_of(kernel, varying, rows)
    return out + stated([test for names in alike for test in _same_type(names)])


def one_of(kernel: str, keys: Sequence[Key], rows: Sequence[tuple]) -> list[str]:
    """The statement that refuses all but some rows of values. Triton's message shows the line on which it begins, so one of several lines
    says what it is about."""
    line = f"gl.static_assert({any_of(keys, rows)})"
    if len(line) <= _ASSERTED:
        return [line]
    named = list(dict.fromkeys(key.name for key in keys))
    said = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
    return [f"{line[:-1]}, {quoted(f'{kernel} is not translated for this {said}')})"]


def stated(tests: Iterable[str]) -> list[str]:
    """Statements that conditions hold, of which each takes as many as one line has room for: Triton's message shows that line."""
    lines: list[str] = []
    for test in tests:
        longer = f"{lines[-1][:-1]} and {test})" if lines else ""
        if lines and len(longer) <= _ASSERTED:
            lines[-1] = longer
        else:
            lines.append(f"gl.static_assert({test})")
    return lines


def bits_refused(needed: Iterable[Needs], configurations: Sequence[Configuration]) -> list[str]:
    """Statements that refuse elements of one bit behind pointers whose types no other assertion speaks of, and no launch has so: the
    compiler aborts where an operation has no such elements."""
    needed = list(needed)
    keys = dict.fromkeys(key for c in configurations for key in c if key.kind == "element")
    open_ = [
        key
        for key in keys
        if any(key.name in n.addressed for n in needed)
        and not any(n.wants(key) for n in needed)
        and not any(c.get(key) in _BITS for c in configurations)
    ]
    always = [all(key in c for c in configurations) for key in open_]
    tests = [(f"{key.expression} != gl.int1", spelled_apart(key.name), given) for key, given in zip(open_, always)]
    return stated(test if given else f"({name} is None or {test})" for test, name, given in tests)


def pointers_alike(
    keys: Sequence[Key], elsewhere: Sequence[Key], configurations: Sequence[Configuration]
) -> tuple[list[list[str]], list[Key]]:
    """Pointers that always have one type among them, and the keys without all but the first of each such group.

    A pointer whose type is checked elsewhere comes first in its group, and then none of it is left.
    """
    groups: dict[tuple, list[Key]] = {}
    for key in (*elsewhere, *keys):
        if key.kind == "element" and all(key in c for c in configurations):
            groups.setdefault(tuple(c[key] for c in configurations), []).append(key)
    groups = {column: group for column, group in groups.items() if len(group) > 1 and set(group) & set(keys)}
    implied = {key for group in groups.values() for key in group[1:]}
    return [[key.name for key in group] for group in groups.values()], [key for key in keys if key not in implied]


def _same_type(pointers: Sequence[str]) -> list[str]:
    """The conditions that pointers have the type of the first one."""
    first, *others = (f"{spelled_apart(name)}.dtype.element_ty" for name in pointers)
    return [f"{other} == {first}" for other in others]


def translated_for(kernel: str, keys: Sequence[Key], rows: Sequence[tuple]) -> str:
    """The message for a launch outside the given configurations."""
    return f"{kernel} is translated for {' or '.join(words_of(keys, row) for row in rows)}"
