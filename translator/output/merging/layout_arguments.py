"""Helpers that differ in layouts alone, as one that is given them.

    def indicator(j: gl.constexpr, layout: gl.constexpr):
        return gl.arange(0, 2, layout=layout)

Who calls it has the layouts among its own, or is given them too.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst
from gluonize.gluon.trees.function import (
    INDENT,
    LINE_LENGTH,
    GluonFunction,
    Statement,
    code,
    constant,
    first_after_gap,
    gives_layout,
    is_blank,
    layout_made,
    parsed,
)
from gluonize.gluon.trees.long_lines import with_long_lines_wrapped
from gluonize.gluon.trees.references import Reference
from gluonize.gluon.trees.walk import inside, mapped, same, walk
from gluonize.gluon.trees.walk import names as names_in
from gluonize.numbered import numbered
from gluonize.output.merging.helper import Helper, place_of
from gluonize.write.contracts.contracts import is_untranslated
from gluonize.write.function import merge


@dataclass(frozen=True)
class _Given:
    """What becomes of calls of a helper: the name of that which does the same, the place of the layouts among its parameters, and what they
    are by parameter, made of no names."""

    name: str
    at: int
    parameters: tuple[str, ...]
    layouts: Mapping[str, cst.BaseExpression]


def with_layout_arguments(
    helpers: Sequence[Helper], kernels: Sequence[GluonFunction]
) -> tuple[list[Helper], list[GluonFunction], dict[str, str]]:
    """(helpers, kernels, which helper is in the place of each that is gone). helpers: each behind those that it calls."""
    callers = _Callers()
    made: dict[str, Helper] = {}
    names = {h.name for h in helpers}
    whole = {name for f in (*kernels, *(h.function for h in helpers)) for name in _not_called(f, names)}
    # What a function gives is made of the helper's own names.
    whole |= {h.name for h in helpers if any(gives_layout(constant(s).value) for s in h.function.constants)}
    for group in _in_order(helpers):
        group = [replace(h, function=callers.calling(h.function)) for h in group]
        for h in group:
            callers.know(h.function)
        for cluster in _alike([h for h in group if h.name not in whole]):
            function, found = _one(cluster)
            callers.given |= found
            made[function.name] = replace(cluster[0].helper, function=function)
        made |= {h.name: h for h in group if h.name in whole}
    kept = [made[h.name] for h in helpers if h.name in made]
    return kept, [callers.calling(k) for k in kernels], {old: g.name for old, g in callers.given.items()}


def _not_called(function: GluonFunction, helpers: set[str]) -> set[str]:
    """The helpers that a function names without calling them, or calls with arguments that are not written one by one."""
    names = [n.value for n in walk(function.node.body) if isinstance(n, cst.Name) and n.value in helpers]
    plain = [c.func.value for c in _calls(function, helpers) if not any(a.star for a in c.args)]
    return {name for name in names if names.count(name) != plain.count(name)}


def _calls(function: GluonFunction, helpers: set[str]) -> Iterator[cst.Call]:
    for n in walk(function.node.body):
        if isinstance(n, cst.Call) and isinstance(n.func, cst.Name) and n.func.value in helpers - function.bound:
            yield n


def _in_order(helpers: Sequence[Helper]) -> list[list[Helper]]:
    """The helpers of each function of the source, behind those of the functions that it calls."""
    groups: dict[tuple, list[Helper]] = {}
    for h in helpers:
        groups.setdefault((place_of(h.fn), h.noinline), []).append(h)
    of = {h.name: key for key, group in groups.items() for h in group}
    calls = {
        key: {of[c.func.value] for h in group for c in _calls(h.function, set(of))} - {key}
        for key, group in groups.items()
    }
    out: list[list[Helper]] = []
    done: set[tuple] = set()
    while len(done) < len(groups):
        key = next(k for k in groups if k not in done and calls[k] <= done)
        done.add(key)
        out.append(groups[key])
    return out


@dataclass(frozen=True)
class _Open:
    """A helper with a reference to its place for each layout in its body, and what stands there: as it is written, and made of no names;
    `_ANY` in a branch that another helper has, and this one never takes."""

    helper: Helper
    function: GluonFunction
    written: tuple[cst.CSTNode, ...]
    layouts: tuple[cst.CSTNode, ...]


def _opened(helper: Helper) -> _Open:
    function = helper.function
    known = merge.closed(function.constants)
    written: list[cst.CSTNode] = []
    layouts: list[cst.CSTNode] = []

    def change(n: cst.CSTNode) -> cst.CSTNode | None:
        if n is not _ANY and not (isinstance(n, cst.Name) and n.value in known) and not layout_made(n):
            return None
        written.append(n)
        layouts.append(merge.filled(n, known))
        return Reference("_", of=len(written) - 1)

    body = [mapped(s, change) for s in function.body]
    return _Open(helper, function.with_statements(body).called("helper"), tuple(written), tuple(layouts))


def _alike(helpers: Sequence[Helper]) -> list[list[_Open]]:
    """Groups of helpers that differ in nothing but layouts, and in compile-time branches of which one has what the other never takes."""
    groups: list[list[Helper]] = []
    for helper in helpers:
        for group in groups:
            both = _completed([*group, helper])
            first, *others = (_opened(h).function.node for h in both)
            if all(same(first, other) for other in others):
                group[:] = both
                break
        else:
            groups.append([helper])
    return [[_opened(h) for h in group] for group in groups]


def _completed(group: Sequence[Helper]) -> list[Helper]:
    """The helpers of a group, each with the branches that another one has instead of a refusal."""
    out = []
    for helper in group:
        body = list(helper.function.body)
        for other in group:
            known = merge.closed(other.function.constants)
            theirs = [mapped(s, lambda n: _ANY if _is_layout(n, known) else None) for s in other.function.body]
            body = _with_branches(body, theirs) if other is not helper else body
        function = helper.function
        out.append(replace(helper, function=function.with_statements(function.constants, body)))
    return out


def _is_layout(n: cst.CSTNode, known: Mapping[str, cst.BaseExpression]) -> bool:
    return isinstance(n, cst.Name) and n.value in known or layout_made(n)


def _with_branches(mine: Sequence[Statement], other: Sequence[Statement]) -> list[Statement]:
    """Statements with the branches of others in the place of refusals."""
    if len(mine) != len(other):
        return list(mine)
    return [_with_branch(s, t) for s, t in zip(mine, other)]


def _with_branch(s: cst.CSTNode, t: cst.CSTNode) -> cst.CSTNode:
    """A statement, or an `else`, with the branches of another one."""
    blocks = isinstance(getattr(s, "body", None), cst.IndentedBlock) and isinstance(t.body, cst.IndentedBlock)
    if type(s) is not type(t) or not blocks or not same(getattr(s, "test", None), getattr(t, "test", None)):
        return s
    body = (
        t.body
        if is_untranslated(s.body.body[0])
        else s.body.with_changes(body=_with_branches(s.body.body, t.body.body))
    )
    if not isinstance(s, cst.If) or s.orelse is None or t.orelse is None:
        return s.with_changes(body=body)
    return s.with_changes(body=body, orelse=_with_branch(s.orelse, t.orelse))


def _one(group: Sequence[_Open]) -> tuple[GluonFunction, dict[str, _Given]]:
    """The helper that is in the place of a group, and what is given to it in calls of each."""
    group = _settled(group)
    first = group[0]
    function = first.helper.function
    texts = [tuple(code(layout) for layout in opened.layouts) for opened in group]
    columns = [tuple(own[i] for own in texts) for i in range(len(first.layouts))]
    differing: dict[tuple[str, ...], int] = {}  # by the layouts in a place: the first such place
    for i, column in enumerate(columns):
        if len(set(column)) > 1:
            differing.setdefault(column, i)
    parameters = list(function.node.params.params)
    at = next((i for i, p in enumerate(parameters) if p.default is not None), len(parameters))
    names = tuple(p.name.value for p in parameters)
    taken = {*names, *first.function.variables, *first.function.bound}
    for layout, column in zip(first.written, columns):
        taken |= set() if column in differing else names_in(layout)
    given_names: dict[tuple[str, ...], str] = {}
    for column, i in differing.items():
        own = first.written[i]
        named = isinstance(own, cst.Name) and own.value not in taken
        given_names[column] = own.value if named else numbered("layout", taken.__contains__)
        taken.add(given_names[column])
    if given_names:
        function = _with_parameters(first, at, given_names, columns)
    given = {}
    for opened in group:
        layouts = {name: opened.layouts[differing[column]] for column, name in given_names.items()}
        if layouts or opened is not first:
            given[opened.helper.name] = _Given(function.name, at, names, layouts)
    return function, given


def _settled(group: Sequence[_Open]) -> list[_Open]:
    """A group with layouts for the branches that a helper never takes: those that it has in another place, where both places have the same in
    the helpers that take the branch, or else those of another helper."""
    table = [list(opened.layouts) for opened in group]
    texts = [["" if n is _ANY else code(n) for n in row] for row in table]
    places = range(len(table[0]))
    for i in places:
        known = [k for k, row in enumerate(texts) if row[i]]
        like = [j for j in places if all(texts[k][j] == texts[k][i] for k in known) and all(row[j] for row in texts)]
        for k, row in enumerate(table):
            if not texts[k][i]:
                row[i] = row[like[0]] if like else table[known[0]][i]
    out = []
    for opened, row in zip(group, table):
        written = tuple(new if own is _ANY else own for own, new in zip(opened.written, row))
        out.append(replace(opened, written=written, layouts=tuple(row)))
    return out


def _with_parameters(
    first: _Open, at: int, given: Mapping[tuple[str, ...], str], columns: Sequence[tuple[str, ...]]
) -> GluonFunction:
    """A helper that is given layouts. given: the names of parameters, by what is in a place; columns: what is in each place."""
    function = first.helper.function
    filled = [cst.Name(given[column]) if column in given else own for own, column in zip(first.written, columns)]
    body = [mapped(s, lambda n: filled[n.of] if isinstance(n, Reference) else None) for s in first.function.body]
    function = function.with_statements(function.constants, body)
    kept = [s for s in function.constants if merge.name_of(s) not in given.values()]
    used = set().union(*map(names_in, body))
    for s in reversed(kept):
        used |= names_in(s.body[0].value) if merge.name_of(s) in used else set()
    kept = [s for s in kept if merge.name_of(s) in used]
    annotation = cst.Annotation(cst.Attribute(cst.Name("gl"), cst.Name("constexpr")))
    added = [cst.Param(cst.Name(name), annotation, comma=_COMMA) for name in given.values()]
    parameters = list(function.node.params.params)
    if at == len(parameters) and parameters:
        last = parameters[-1].comma
        parameters[-1] = parameters[-1].with_changes(comma=_COMMA)
        added[-1] = added[-1].with_changes(comma=last)
    parameters[at:at] = added
    params = function.node.params.with_changes(params=parameters)
    if function.constants and not kept and body[0].leading_lines and is_blank(body[0].leading_lines[0]):
        body[0] = body[0].with_changes(leading_lines=body[0].leading_lines[1:])
    return _in_lines(function.with_node(function.node.with_changes(params=params)).with_statements(kept, body))


def _in_lines(function: GluonFunction) -> GluonFunction:
    """A function whose parameters fill lines, where they are too many for one."""
    params = function.node.params
    first = function.text.split("\n")[0]
    if len(first) <= LINE_LENGTH or not first.endswith("):"):
        return function
    filled = textwrap.wrap(code(params), LINE_LENGTH - len(INDENT))
    lines = [f"def {function.name}(", *(INDENT + line for line in filled), "):", f"{INDENT}pass"]
    given = parsed("\n".join(lines) + "\n").node
    return function.with_node(
        function.node.with_changes(params=given.params, whitespace_before_params=given.whitespace_before_params)
    )


_ANY = Reference("_any")  # a layout in a branch that is never taken
_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


@dataclass
class _Callers:
    """Who calls helpers, with the layouts that these want. definitions: of layouts in helpers, by what they are made of no names."""

    given: dict[str, _Given] = field(default_factory=dict)
    definitions: dict[str, Statement] = field(default_factory=dict)

    def know(self, function: GluonFunction) -> None:
        closed = merge.closed(function.constants)
        for s in function.constants:
            self.definitions.setdefault(code(closed[merge.name_of(s)]), s)

    def calling(self, function: GluonFunction) -> GluonFunction:
        """A function whose calls give layouts: its own, or such as it has from now on."""
        own = {code(value): name for name, value in merge.closed(function.constants).items()}
        taken = {*function.bound, *function.variables}
        added: list[Statement] = []

        def named(n: cst.CSTNode) -> cst.CSTNode | None:
            """What a layout is called; those that follow from another are written where they are wanted."""
            if not layout_made(n):
                return None
            text = code(n)
            if text in own:
                return cst.Name(own[text])
            if any(layout_made(a.value) for a in n.args):  # it follows from another one
                return None
            known = self.definitions[text]
            own[text] = numbered(merge.name_of(known), taken.__contains__)
            taken.add(own[text])
            small = known.body[0].with_changes(target=cst.Name(own[text]), value=inside(n, named))
            lines = [line for line in known.leading_lines if not is_blank(line)]
            added.append(known.with_changes(body=[small], leading_lines=lines))
            return cst.Name(own[text])

        def change(n: cst.CSTNode) -> cst.CSTNode | None:
            if not isinstance(n, cst.Call) or not isinstance(n.func, cst.Name) or n.func.value not in self.given:
                return None
            if n.func.value in function.bound:
                return None
            found = self.given[n.func.value]
            arguments = [a.with_changes(value=mapped(a.value, change)) for a in n.args]
            values = {name: mapped(layout, named) for name, layout in found.layouts.items()}
            if len(arguments) == found.at and all(a.keyword is None for a in arguments):
                more = [cst.Arg(value) for value in values.values()]
            else:
                for i, a in enumerate(arguments):
                    if a.keyword is None and i >= found.at and values:
                        arguments[i] = _by_name(found.parameters[i], a.value)
                more = [_by_name(name, value) for name, value in values.items()]
            if more and arguments:
                arguments[-1] = arguments[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return n.with_changes(func=cst.Name(found.name), args=[*arguments, *more])

        changed = function.with_node(mapped(function.node, change))
        if added:
            body = changed.body if changed.constants else first_after_gap(changed.body)
            changed = changed.with_statements(changed.constants, added, body)
        return changed if changed is function else with_long_lines_wrapped(changed, function.text)


def _by_name(name: str, value: cst.BaseExpression) -> cst.Arg:
    blank = cst.SimpleWhitespace("")
    equal = cst.AssignEqual(whitespace_before=blank, whitespace_after=blank)
    return cst.Arg(value, keyword=cst.Name(name), equal=equal)


__all__ = ["with_layout_arguments"]
