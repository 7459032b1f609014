"""Two translations of one function, joined into one where they differ only in what compile-time conditions leave out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import libcst as cst
from gluonize.gluon.trees.function import (
    GluonFunction,
    Statement,
    code,
    constant,
    first_after_gap,
    gives_layout,
    is_blank,
)
from gluonize.gluon.trees.walk import called, dotted, mapped, same, walk
from gluonize.write.contracts.contracts import is_idle_loop, is_untranslated

_COMPOUND = (cst.If, cst.For, cst.While, cst.With)


class _Differ(Exception):
    """The two sides are not one."""


def merge(a: GluonFunction, b: GluonFunction) -> GluonFunction | None:
    """One function for both translations of it, or None if they differ in more than untaken branches."""
    if same(a.node, b.node):
        return a
    plain = merge_plain(a.plain, b.plain)
    if plain is None:
        return None
    known = {name_of(s): value_of(s) for s in a.constants}
    if any(known.get(name_of(s), value_of(s)) != value_of(s) for s in b.constants):
        return None
    more = [_without_gap(s) for s in b.constants if name_of(s) not in known]
    both = known.keys() & {name_of(s) for s in b.constants}
    if any(gives_layout(constant(s).value) for s in (*a.constants, *more) if name_of(s) not in both):
        return None  # the function may take what the other one has for something else
    body = plain.body if a.constants or not more else first_after_gap(plain.body)
    return plain.with_statements(a.constants, more, body)


def joined(functions: Iterable[GluonFunction]) -> list[GluonFunction]:
    """Translations of one function, those that can be one as one."""
    kept: list[GluonFunction] = []
    for function in functions:
        for i, known in enumerate(kept):
            if (both := merge(known, function)) is not None:
                kept[i] = both
                break
        else:
            kept.append(function)
    return kept


def merge_plain(a: GluonFunction, b: GluonFunction) -> GluonFunction | None:
    """`merge` of functions whose layouts are no constants at the top, or the same ones."""
    if same(a.node, b.node):
        return a
    if a.header != b.header:
        return None
    try:
        return a.with_statements(blocks([*a.constants, *a.body], [*b.constants, *b.body]))
    except _Differ:
        return None


def statement(a: Statement, b: Statement) -> Statement | None:
    """One statement for both, None where they differ in more than untaken branches."""
    try:
        return _statements(a, b)
    except _Differ:
        return None


def name_of(layout: Statement) -> str:
    """The name of a layout constant."""
    return constant(layout).target.value  # type: ignore[union-attr]


def value_of(layout: Statement) -> str:
    """The text of what a layout constant is."""
    return code(constant(layout).value)  # type: ignore[union-attr, arg-type]


def closed(layouts: Iterable[Statement]) -> dict[str, cst.BaseExpression]:
    """What layout constants are, by name, made of no names."""
    values: dict[str, cst.BaseExpression] = {}
    for s in layouts:
        values[name_of(s)] = filled(constant(s).value, values)  # type: ignore[union-attr]
    return values


def filled(value: cst.BaseExpression, known: Mapping[str, cst.BaseExpression]) -> cst.BaseExpression:
    """An expression with what names are in their place."""
    return mapped(value, lambda n: known.get(n.value) if isinstance(n, cst.Name) else None)


def _without_gap(s: Statement) -> Statement:
    return s.with_changes(leading_lines=[line for line in s.leading_lines if not is_blank(line)])


def _in_place_of(s: Statement, new: Statement) -> Statement:
    """`new` with the comments above `s`, where both are lines of their own."""
    return new.with_changes(leading_lines=s.leading_lines) if hasattr(s, "leading_lines") else new


def blocks(a: Sequence[Statement], b: Sequence[Statement]) -> list[Statement]:
    """What two blocks of statements are as one. Raises: _Differ."""
    a, b = _kept(a, b), _kept(b, a)
    common = 0
    while common < min(len(a), len(b)) and not is_untranslated(a[common]) and not is_untranslated(b[common]):
        common += 1
    if bool(a) != bool(b):
        raise _Differ
    found = [_statements(s, t) for s, t in zip(a[:common], b[:common])]
    rest_a, rest_b = a[common:], b[common:]
    if rest_a and rest_b and is_untranslated(rest_b[0]):
        return [*found, *rest_a]
    if rest_a and rest_b:
        return [*found, _in_place_of(rest_a[0], rest_b[0]), *rest_b[1:]]
    if rest_a or rest_b:
        raise _Differ
    return found


def _kept(mine: Sequence[Statement], other: Sequence[Statement]) -> list[Statement]:
    """The statements of one block without the refusals of trips that the other one makes."""
    idle = [s for s in other if is_idle_loop(s)]
    return [s for s in mine if not is_idle_loop(s) or any(same(s, t) for t in idle)]


def _statements(s: Statement, t: Statement) -> Statement:
    if type(s) is not type(t):
        raise _Differ
    if not isinstance(s, _COMPOUND):
        return _simple(s, t)
    # A difference in how the same code is written is none.
    if same(s, t):
        return s
    if not all(same(getattr(s, name, None), getattr(t, name, None)) for name in ("test", "target", "iter", "items")):
        raise _Differ
    changes = {"body": _body(s, t)}
    if not isinstance(s, cst.With):
        changes["orelse"] = _branches(s.orelse, t.orelse)
    return s.with_changes(**changes)


def _body(s: cst.CSTNode, t: cst.CSTNode) -> cst.BaseSuite:
    if type(s.body) is not type(t.body):
        raise _Differ
    return s.body.with_changes(body=blocks(s.body.body, t.body.body))


def _branches(a: cst.If | cst.Else | None, b: cst.If | cst.Else | None) -> cst.If | cst.Else | None:
    """What follows an `if`, where one side may have `elif` and the other `else`."""
    if a is None and b is None:
        return None
    if a is None or b is None:
        raise _Differ
    if type(a) is type(b):
        return _statements(a, b) if isinstance(a, cst.If) else a.with_changes(body=_body(a, b))
    if isinstance(a, cst.If) and is_untranslated(b.body.body[0]):
        return a
    if isinstance(b, cst.If) and is_untranslated(a.body.body[0]):
        return _in_place_of(a, b)
    raise _Differ


def _simple(s: Statement, t: Statement) -> Statement:
    """Two statements without blocks: the same, the same but for arms, or but for casts."""
    if same(s, t):
        return s
    return _arms(s, t) or _casts(s, t)


def _arms(s: Statement, t: Statement) -> Statement | None:
    """A statement that has, of conditional expressions, the arms which only the other side has; None where that does not make
    both sides the same."""
    ours, theirs = ([n for n in walk(x) if isinstance(n, cst.IfExp)] for x in (s, t))
    if len(ours) != len(theirs):
        return None
    taken: dict[cst.CSTNode, cst.CSTNode] = {}
    given: dict[cst.CSTNode, cst.CSTNode] = {}
    for mine, other in zip(ours, theirs):
        for a, b in ((mine.body, other.body), (mine.orelse, other.orelse)):
            if is_untranslated(a) and not is_untranslated(b):
                taken[a] = b
            elif is_untranslated(b) and not is_untranslated(a):
                given[b] = a
    first = mapped(s, taken.get)
    return first if (taken or given) and same(first, mapped(t, given.get)) else None


def _casts(s: Statement, t: Statement) -> Statement:
    """A store's cast to the pointer's element type is not written where the value has it; with it, it is right for all."""
    bare, cast = (mapped(x, _uncast) for x in (s, t))
    if not same(bare, cast) or (bare is not s and cast is not t):
        raise _Differ
    return s if bare is not s else _in_place_of(s, t)


def _uncast(node: cst.CSTNode) -> cst.CSTNode | None:
    """`x` for a cast to the element type of a pointer, `x.to(ptr.dtype.element_ty)`."""
    if called(node) == "to" and len(node.args) == 1 and node.args[0].keyword is None:
        if dotted(node.args[0].value).count(".") == 2 and dotted(node.args[0].value).endswith(".dtype.element_ty"):
            return mapped(node.func.value, _uncast)
    return None
