"""Translations of one function for several launches as one text: what they share stands once, what differs under compile-time conditions.

    if CAUSAL:                                             # statements that differ
        qk = gl.where(rows >= cols, qk, -1.0e6)
    mask = near if CAUSAL else cols < N                    # parts of a statement that differ

Triton leaves out the branches that a launch does not take, so that each launch compiles exactly its own translation.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import libcst as cst
from gluonize.gluon.trees.function import (
    LINE_LENGTH,
    GluonFunction,
    Statement,
    code,
    expression,
    first_after_gap,
    formatted,
    gives_layout,
    is_blank,
    statements,
    wrapped,
)
from gluonize.gluon.trees.long_lines import with_long_lines_wrapped
from gluonize.gluon.trees.walk import called, lines, mapped, names, same, stores, walk
from gluonize.numbered import numbered
from gluonize.write.contracts.configuration import Configuration, any_of, distinguishing_keys
from gluonize.write.contracts.contracts import is_untranslated
from gluonize.write.function import merge

# How much longer than the longest of several texts one for all of them may be: beyond that, it is harder to read than they are.
_WORTH, _FEW = 1.5, 4  # times as many lines, and lines
_LONG = 40  # columns of a condition that has a name where it is asked more than once
_Block = dict[int, Sequence[Statement]]  # by the number of the variant
_Column = dict[int, Statement]


@dataclass(frozen=True)
class Variant:
    """A translation, and what the launches that it serves have."""

    function: GluonFunction
    configurations: tuple[Configuration, ...]


class _Apart(Exception):
    """The variants are better off as functions of their own."""


def one_text(variants: Sequence[Variant]) -> GluonFunction | None:
    """One function for all variants, which have one signature; None where it would not be a shorter or a right one."""
    first = variants[0].function
    functions = [first, *(_in_names_of(first, v.function) for v in variants[1:])]
    if any(f.header != functions[0].header for f in functions):
        return None
    merging = _Merging([v.configurations for v in variants], functions)
    try:
        constants = merging.constants(dict(enumerate(f.constants for f in functions)))
        body = merging.block(dict(enumerate(f.body for f in functions)))
    except _Apart:
        return None
    sizes = [_size(f.body) for f in functions]
    if _size(body) > _WORTH * max(sizes) + _FEW:
        return None
    head, block = merging.named_conditions([*constants, *body])
    at = len(constants)
    rest = block[at:] if functions[0].constants or not at else first_after_gap(block[at:])
    return with_long_lines_wrapped(functions[0].with_statements(head, block[:at], rest), "")


def _in_names_of(known: GluonFunction, function: GluonFunction) -> GluonFunction:
    """`function` with the names of `known` for what is the same in both, where only the numbers at their ends tell names apart."""
    changed: dict[str, str] = {}
    there = _values(known)
    while True:
        renamed = function.exchanging(changed)
        here = _values(renamed)
        taken = {name for name, value in here.items() if there.get(name) == value}
        for name, value in here.items():
            new = next((n for n, v in there.items() if v == value and n not in taken), name)
            if name not in taken and new != name and _base(new) == _base(name):
                break
        else:
            return renamed
        swapped = {name: new, new: name}
        own = {swapped.get(n, n): old for old, n in ({n: n for n in function.variables} | changed).items()}
        changed = {old: n for n, old in own.items() if n != old}


def _values(function: GluonFunction) -> dict[str, str]:
    """The text of what each name is that is assigned once, of layouts without the names of others."""
    found = {name: [code(value)] for name, value in merge.closed(function.constants).items()}
    for s in function.body:
        for line in lines(s):
            for name in stores(line):
                found.setdefault(name, []).append("")
            small = line.body[0]
            if (
                isinstance(small, cst.Assign)
                and isinstance(small.targets[0].target, cst.Name)
                and len(small.targets) == 1
            ):
                found[small.targets[0].target.value][-1] = code(small.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1 and values[0]}


def _base(name: str) -> str:
    stem, _, number = name.rpartition("_")
    return stem if number.isdigit() else name


def _size(block: Iterable[Statement]) -> int:
    return sum(code(s).strip().count("\n") + 1 for s in block)


@dataclass(frozen=True)
class _Test:
    """A condition, and what it may be called. node: which stands wherever it is asked."""

    text: str
    tag: str
    node: cst.BaseExpression


@dataclass
class _Merging:
    served: list[tuple[Configuration, ...]]
    functions: list[GluonFunction]
    _conditions: dict[tuple[frozenset[int], frozenset[int]], _Test] = field(default_factory=dict)
    # Conditional bounds of comparisons, by the id of what stands there, with it: what is compared, and the bound.
    _ends: dict[int, tuple[cst.IfExp, str, cst.IfExp]] = field(default_factory=dict)

    # Conditions ------------------------------------------------------------------------------------------------------

    def condition(self, wanted: frozenset[int], others: frozenset[int]) -> _Test:
        """What is true of the launches of some variants, and of none of the others that come to a place."""
        if (wanted, others) not in self._conditions:
            groups = [[c for n in sorted(side) for c in self.served[n]] for side in (wanted, others)]
            keys = distinguishing_keys(groups)
            if keys is None:
                raise _Apart
            rows = list(dict.fromkeys(tuple(c[key] for key in keys) for c in groups[0]))
            tags = [key.tag(value) for key, value in zip(keys, rows[0])] if len(rows) == 1 else ["some_launches"]
            self._conditions[wanted, others] = _Test((text := any_of(keys, rows)), "_".join(tags), expression(text))
        return self._conditions[wanted, others]

    def named_conditions(self, block: Sequence[Statement]) -> tuple[list[Statement], list[Statement]]:
        """(definitions of conditions, `block` with their names): of long ones that are asked several times, and of those on what a
        function assigns."""
        assigned = set().union(*(stores(f.node.body) for f in self.functions))
        asked = Counter(id(n.test) for s in block for n in walk(s) if isinstance(n, (cst.If, cst.IfExp)))
        named: dict[int, cst.Name] = {}
        head: list[Statement] = []
        for test in self._conditions.values():
            node = test.node
            if id(node) in named or not asked[id(node)]:
                continue
            if names(node) & assigned or len(test.text) > _LONG and asked[id(node)] > 1:
                name = numbered(test.tag, self._taken.__contains__)
                self._taken.add(name)
                head += statements(wrapped(f"{name}: gl.constexpr = {test.text}\n", self.functions[0].indent))
                named[id(node)] = cst.Name(name)
        return head, [mapped(s, lambda n: named.get(id(n))) for s in block] if named else list(block)

    # Layouts ---------------------------------------------------------------------------------------------------------

    def constants(self, blocks: _Block) -> list[Statement]:
        """The layouts of all variants, each behind those that it is made of; one that a variant does not use does no harm, unless a function
        gives it, which may take what that variant has for something else."""
        every = {n: {merge.name_of(s): s for s in block} for n, block in blocks.items()}
        order: list[str] = []
        for own in every.values():
            at = 0
            for name in own:
                if name in order:
                    at = order.index(name) + 1
                else:
                    order.insert(at, name)
                    at += 1
        rest: list[_Column] = [{n: own[name] for n, own in every.items() if name in own} for name in order]
        placed: list[_Column] = []
        while rest:
            ready = next(
                (c for c in rest if not _needs(c) & {merge.name_of(s) for o in rest for s in o.values()}), None
            )
            if ready is None:
                raise _Apart
            placed.append(ready)
            rest.remove(ready)
        active = frozenset(blocks)
        columns = []
        for column in placed:
            (name,) = {merge.name_of(s) for s in column.values()}
            classes = _classes(column)
            elsewhere = [self.functions[n] for n in active - column.keys()]
            plain = not any(gives_layout(s.body[0].value) for s in column.values())
            if plain and len(classes) == 1 and not any(name in f.bound for f in elsewhere):
                column = {n: classes[0][0] for n in active}
            columns.append(column)
        return self._written(columns, active)

    # Statements ------------------------------------------------------------------------------------------------------

    def block(self, blocks: _Block) -> list[Statement]:
        """Blocks of statements as one."""
        known = {n: block for n, block in blocks.items() if not (len(block) == 1 and is_untranslated(block[0]))}
        known = known or dict(list(blocks.items())[:1])  # no variant has a translation of this place
        return self._written(_columns(known), frozenset(known))

    def _written(self, columns: Sequence[_Column], active: frozenset[int]) -> list[Statement]:
        out: list[Statement] = []
        run: list[_Column] = []
        for column in columns:
            one = self._shared(column, active)
            if one is None and run and len(active) > 2 and _members([column], active) != _members(run, active):
                out += self._chosen(run, active)
                run = []
            if one is None:
                run.append(column)
                continue
            out += self._chosen(run, active) if run else []
            run = []
            out.append(one)
        return self._with_ends(out + (self._chosen(run, active) if run else []))

    def _with_ends(self, block: Sequence[Statement]) -> list[Statement]:
        """A block in which conditional bounds have names, as far as what they are made of stays the same: `cols_end` of `cols < cols_end`."""
        out: list[Statement] = []
        known: dict[str, str] = {}  # names by what they are
        for s in block:
            ends = [self._ends[id(n)] for n in walk(s) if id(n) in self._ends] if _is_simple(s) else []
            named: dict[int, cst.Name] = {}
            for place, compared, node in ends:
                text = code(node)
                if text not in known:
                    known[text] = numbered(f"{compared}_end", self._taken.__contains__)
                    self._taken.add(known[text])
                    target = cst.Assign([cst.AssignTarget(cst.Name(known[text]))], node)
                    out.append(cst.SimpleStatementLine([target], s.leading_lines))
                    s = s.with_changes(leading_lines=[])
                named[id(place)] = cst.Name(known[text])
            out.append(_in_fewer_lines(mapped(s, lambda n, named=named: named.get(id(n)))) if named else s)
            made = stores(s)
            known = {text: name for text, name in known.items() if not made & names(expression(text))}
        return out

    @functools.cached_property
    def _taken(self) -> set[str]:
        return set().union(*(f.variables.keys() | f.bound for f in self.functions))

    def _shared(self, column: _Column, active: frozenset[int]) -> Statement | None:
        """The one statement that all variants have in a place; None where they differ."""
        if column.keys() != active:
            return None
        classes = _classes(column)
        if len(classes) == 1:
            return classes[0][0]
        first, *others = (s for s, _ in classes)
        if all(_same_header(first, s) for s in others):
            return self._compound(column)
        return self._conditional(classes)

    def _compound(self, column: _Column) -> Statement:
        """Loops or branches with one header, as one."""
        first = column[min(column)]
        body = self.block({n: s.body.body for n, s in column.items()})
        changes = {"body": first.body.with_changes(body=body)}
        ends = {n: s.orelse for n, s in column.items()}
        if any(end is not None for end in ends.values()):
            changes["orelse"] = self._end(ends)
        return first.with_changes(**changes)

    def _end(self, ends: dict[int, cst.If | cst.Else | None]) -> cst.If | cst.Else:
        """What follows the branches of one condition, or a loop."""
        known = {n: e for n, e in ends.items() if not (isinstance(e, cst.Else) and is_untranslated(e.body.body[0]))}
        first, *others = (known or ends).values()
        if isinstance(first, cst.If) and all(isinstance(e, cst.If) and _same_header(first, e) for e in others):
            return self._compound(known)
        if not all(isinstance(e, cst.Else) and isinstance(e.body, cst.IndentedBlock) for e in (known or ends).values()):
            raise _Apart
        return first.with_changes(
            body=first.body.with_changes(body=self.block({n: e.body.body for n, e in (known or ends).items()}))
        )

    def _chosen(self, run: Sequence[_Column], active: frozenset[int]) -> list[Statement]:
        """Statements that differ, under conditions."""
        if any(isinstance(n, cst.Return) for column in run for s in column.values() for n in walk(s)):
            raise _Apart
        groups = _partition(run, active)
        some = [(members, block) for members, block in groups if block]
        every = len(some) == len(groups)
        if every and len(some) > 1:
            some.sort(key=lambda group: len(self.condition(group[0], active - group[0]).text))
        made: cst.If | cst.Else | None = None
        for number, (members, block) in reversed(list(enumerate(some))):
            body = cst.IndentedBlock([_first_line(block[0]), *block[1:]])
            if every and number == len(some) - 1 and number:
                made = cst.Else(body)
            else:
                made = cst.If(self.condition(members, active - members).node, body, orelse=made)
        above = next((_gap(block[0]) for _, block in some if _gap(block[0])), [])
        return [made.with_changes(leading_lines=above)]

    def _conditional(self, classes: Sequence[tuple[Statement, frozenset[int]]]) -> Statement | None:
        """A statement of two kinds as one with conditional expressions, where it fits into a line or two; else None."""
        if len(classes) != 2:
            return None
        (s, mine), (t, other) = classes
        sides = (self.condition(mine, other), True), (self.condition(other, mine), False)
        test, first_if_true = min(sides, key=lambda side: len(side[0].text))
        changed = {}
        for a, b in _parts(s, t):
            then, otherwise = (a, b) if first_if_true else (b, a)
            changed[a] = chosen = cst.IfExp(test.node, then, otherwise)
            if (compared := _compared_with(s, a)) is not None:
                changed[a] = chosen.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
                if compared and any(isinstance(n, cst.Call) for arm in (a, b) for n in walk(arm)):
                    bound = chosen.with_changes(body=_in_a_line(then), orelse=_in_a_line(otherwise))
                    self._ends[id(changed[a])] = changed[a], compared, bound
        if not changed or any(len(code(arm)) > LINE_LENGTH - 40 for arm in changed.values()):
            return None
        made = mapped(s, changed.get)
        first, second = (s, t) if first_if_true else (t, s)
        said, more = ["".join(x.comment.value for x in y.leading_lines if x.comment) for y in (first, second)]
        return (
            made if said == more else made.with_changes(leading_lines=[*first.leading_lines, *_otherwise(said, more)])
        )


def _otherwise(said: str, more: str) -> list[cst.EmptyLine]:
    """The comment on what holds where a condition does not, below that on what holds where it does."""
    about, _, rest = more.partition(": ")
    text = rest if rest and said.startswith(f"{about}: ") else more.removeprefix("# ")
    return [cst.EmptyLine(comment=cst.Comment(f"# Otherwise {text[:1].lower()}{text[1:]}"))] if text else []


def _needs(column: _Column) -> set[str]:
    """The names in the values of layouts of one name, but for their own."""
    return set().union(*(names(s.body[0].value) for s in column.values()))


def _classes(column: _Column) -> list[tuple[Statement, frozenset[int]]]:
    """The different statements of a place, and who has each; those that only untaken branches tell apart are one."""
    found: list[tuple[Statement, frozenset[int]]] = []
    for n, s in sorted(column.items()):
        for number, (known, members) in enumerate(found):
            if (one := merge.statement(known, s)) is not None:
                found[number] = one, members | {n}
                break
        else:
            found.append((s, frozenset({n})))
    return found


def _partition(run: Sequence[_Column], active: frozenset[int]) -> list[tuple[frozenset[int], list[Statement]]]:
    """Groups of variants that have the same statements in some places, with these."""
    classes = [_classes(column) for column in run]
    groups: dict[tuple[int, ...], tuple[frozenset[int], list[Statement]]] = {}
    for n in sorted(active):
        own = [next(((i, s) for i, (s, members) in enumerate(found) if n in members), None) for found in classes]
        key = tuple(-1 if x is None else x[0] for x in own)
        members, _ = groups.get(key, (frozenset(), []))
        groups[key] = members | {n}, [x[1] for x in own if x is not None]
    return list(groups.values())


def _members(run: Sequence[_Column], active: frozenset[int]) -> list[frozenset[int]]:
    """The groups of variants that have the same statements in some places."""
    return [members for members, _ in _partition(run, active)]


def _columns(blocks: _Block) -> list[_Column]:
    """The statements of blocks, those that belong together in one column, each block in its order."""
    (first, statements_), *others = sorted(blocks.items())
    columns: list[_Column] = [{first: s} for s in statements_]
    for n, block in others:
        columns = _aligned(columns, n, block)
    return columns


def _aligned(columns: Sequence[_Column], number: int, block: Sequence[Statement]) -> list[_Column]:
    """Columns with the statements of one more block: as many as possible where the same stands, then where something like it stands."""
    scores = [[0] * (len(block) + 1) for _ in range(len(columns) + 1)]
    distinct = [{_text(s): s for s in column.values()}.values() for column in columns]
    likeness = [[max(_likeness(known, s) for known in own) for s in block] for own in distinct]
    for i, j in itertools.product(range(len(columns) - 1, -1, -1), range(len(block) - 1, -1, -1)):
        together = likeness[i][j] + scores[i + 1][j + 1] if likeness[i][j] else 0
        scores[i][j] = max(together, scores[i + 1][j], scores[i][j + 1])
    out: list[_Column] = []
    i = j = 0
    while i < len(columns) or j < len(block):
        left, below = i < len(columns), j < len(block)
        if left and below and likeness[i][j] and scores[i][j] == likeness[i][j] + scores[i + 1][j + 1]:
            out.append(columns[i] | {number: block[j]})
            i, j = i + 1, j + 1
        elif left and (not below or scores[i][j] == scores[i + 1][j]):
            out.append(columns[i])
            i += 1
        else:
            out.append({number: block[j]})
            j += 1
    return out


def _likeness(s: Statement, t: Statement) -> int:
    """How much two statements have in common: 0 where they cannot stand in one place."""
    if type(s) is not type(t) or isinstance(s, cst.SimpleStatementLine) and _about(s) != _about(t):
        return 0
    if merge.statement(s, t) is not None:
        return 8
    if _same_header(s, t):
        return 6
    if not isinstance(s, cst.SimpleStatementLine):
        return 0
    return 3 if _parts(s, t) else 1


def _same_header(s: cst.CSTNode, t: cst.CSTNode) -> bool:
    """Whether two statements are loops or branches with the same condition or range."""
    if type(s) is not type(t) or not isinstance(s, (cst.If, cst.For, cst.While)):
        return False
    if not all(isinstance(x.body, cst.IndentedBlock) for x in (s, t)):
        return False
    return all(same(getattr(s, name, None), getattr(t, name, None)) for name in ("test", "target", "iter"))


_text = functools.lru_cache(maxsize=4096)(code)  # a node is itself


@functools.lru_cache(maxsize=4096)
def _about(s: cst.SimpleStatementLine) -> str:
    """What a statement assigns, or calls."""
    small = s.body[0]
    if isinstance(small, cst.Assign):
        return " = ".join(code(target.target) for target in small.targets)
    if isinstance(small, (cst.AugAssign, cst.AnnAssign)):
        return code(small.target)
    return called(small.value) if isinstance(small, cst.Expr) else type(small).__name__


def _parts(s: Statement, t: Statement) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The expressions in which two statements differ, where each may be a conditional expression: values and arguments; at most two."""
    if not all(isinstance(x, cst.SimpleStatementLine) and len(x.body) == 1 for x in (s, t)):
        return []
    a, b = s.body[0], t.body[0]
    if type(a) is not type(b) or not isinstance(a, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr)):
        return []
    if not same(a.with_changes(value=cst.Name("x")), b.with_changes(value=cst.Name("x"))):
        return []
    found = _differing(a.value, b.value)
    # A whole call under a condition is a branch, not a value.
    whole = len(found) == 1 and found[0][0] is a.value
    return [] if len(found) > 2 or whole and isinstance(a, (cst.Expr, cst.AugAssign)) else found


def _differing(a: cst.BaseExpression, b: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    if same(a, b):
        return []
    if isinstance(a, cst.Call) and isinstance(b, cst.Call) and same(a.func, b.func) and len(a.args) == len(b.args):
        if all(
            same(x.with_changes(value=cst.Name("x")), y.with_changes(value=cst.Name("x")))
            for x, y in zip(a.args, b.args)
        ):
            return [pair for x, y in zip(a.args, b.args) for pair in _differing(x.value, y.value)]
    sides = [_compared(x) for x in (a, b)]
    if None not in sides and sides[0][1] == sides[1][1]:
        (left, _, right), (other_left, _, other_right) = sides
        return [*_differing(left, other_left), *_differing(right, other_right)]
    return [(a, b)]


def _compared(node: cst.BaseExpression) -> tuple[cst.BaseExpression, str, cst.BaseExpression] | None:
    """The sides of a comparison, or of masks that are joined, with what stands between them; None of anything else."""
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return node.left, type(node.comparisons[0].operator).__name__, node.comparisons[0].comparator
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.BitAnd, cst.BitOr)):
        return node.left, type(node.operator).__name__, node.right
    return None


def _compared_with(s: Statement, part: cst.BaseExpression) -> str | None:
    """What a part of a statement is a bound of, by the first name in that: "" of any other side of a comparison or of joined masks; None
    where it is no side of one."""
    for n in walk(s):
        sides = _compared(n) if isinstance(n, (cst.Comparison, cst.BinaryOperation)) else None
        if sides is not None and (sides[0] is part or sides[2] is part):
            named = (x.value for x in walk(sides[0]) if isinstance(x, cst.Name))
            return next(named, "") if sides[2] is part and sides[1] in ("LessThan", "LessThanEqual") else ""
    return None


def _in_a_line(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression as it stands where no parentheses let it go on in the next line."""
    return expression(" ".join(code(node).split())) if "\n" in code(node) else node


def _in_fewer_lines(s: Statement) -> Statement:
    """A statement of several lines, which has become shorter, as it would have been written."""
    text = code(s.with_changes(leading_lines=()))
    if "\n" not in text.strip():
        return s
    return statements(formatted(text, keep_commas=False))[0].with_changes(leading_lines=s.leading_lines)


def _is_simple(s: Statement) -> bool:
    return isinstance(s, cst.SimpleStatementLine)


def _gap(s: Statement) -> list[cst.EmptyLine]:
    """The blank lines right above a statement and its comments."""
    return [line for line in s.leading_lines[:1] if is_blank(line)]


def _first_line(s: Statement) -> Statement:
    """A statement without the blank lines above its comments."""
    return s.with_changes(leading_lines=[*itertools.dropwhile(is_blank, s.leading_lines)])


__all__ = ["Variant", "one_text"]
