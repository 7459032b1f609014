"""Which source line each line of a translation came from, and why it differs.

Functions are paired by the names that the translator gives them, statements inside them by an order-preserving alignment; what
remains (a second variant of a value, the same copy in a prologue) is linked to the most similar statement of its function. A
kernel may have become several functions: every source line stands beside one line at most, and lines that another version
of the kernel has too are said to be repeated.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from gluonize.product.report.review.reasons import KEPT, REPEATED, change_reason, insertion_reason, is_layout_constant
from gluonize.product.report.review.similarity import pair, similarity, stem
from gluonize.product.report.review.units import Text, Unit, read_units

# A repeated statement has to resemble its original more than a paired one: nothing else says that they belong together.
RESEMBLES = 0.5
# And one that was taken from another function even more.
INLINED = 0.6
# How much of a value has to be in its original for it to be a part of it: `a_base = a + pid * n` of `a_ptrs = a + pid * n + offs`.
PART = 0.75
_FILLS = re.compile(r"\b(\w+)_smem\.index\(")


@dataclass(frozen=True)
class Line:
    """One line of the translation: `source` are the numbers (from 1) of the lines it came from, empty when inserted.

    reason: a key of `reasons.REASONS`; "" for a blank line. paired: whether the alignment pairs it in order (a repeated
    statement is linked without being paired). function: the name of the function it is in, "" outside.
    """

    number: int
    text: str
    source: tuple[int, ...]
    reason: str
    paired: bool
    function: str


@dataclass(frozen=True)
class Correspondence:
    """All lines of a translation, in order, and which of its functions came from which (by index).

    dispatchers: functions that have the source's name and signature and choose among versions of it. shown: of each source
    function the one beside which its lines stand; beside: line of the translation -> source line that stands beside it.
    only: the functions of the translation to show; None for everything.
    """

    source: Text
    result: Text
    lines: tuple[Line, ...]
    functions: dict[int, int]
    dispatchers: frozenset[int] = frozenset()
    shown: frozenset[int] = frozenset()
    beside: dict[int, int] = field(default_factory=dict)
    only: frozenset[str] | None = None

    def shows(self, function: str) -> bool:
        """Whether the lines of a function of the translation are to be shown; "" for what is outside of functions."""
        return self.only is None or function in self.only

    def counts(self) -> dict[str, int]:
        """How many lines there are per reason, blank ones left out."""
        out: dict[str, int] = {}
        for line in self.lines:
            if line.reason and self.shows(line.function):
                out[line.reason] = out.get(line.reason, 0) + 1
        return out

    def kept(self) -> str:
        """`47 of 82 lines are the source's own`; lines that another version of a kernel has too are counted once."""
        counts = self.counts()
        again = counts.pop(REPEATED, 0)
        said = f"{sum(counts.get(r, 0) for r in KEPT)} of {sum(counts.values())} lines are the source's own"
        return f"{said} ({again} more repeat another version)" if again else said

    def results_of(self) -> dict[int, list[int]]:
        """Source line -> lines of the translation that came from it."""
        out: dict[int, list[int]] = {}
        for line in self.lines:
            for number in line.source:
                out.setdefault(number, []).append(line.number)
        return out


def correspond(source: str, result: str, known: Mapping[int, int] = {}) -> Correspondence:
    """Link every line of `result` to lines of `source`. known: where statements of the result came from, by their first lines, as the
    translator has recorded it (`TranslateResult.origins`); of the others, text and names tell. Raises: SyntaxError when either is not Python.
    """
    left, right = read_units(source), read_units(result)
    functions = _pair_functions(left, right, known)
    dispatchers = _dispatchers(right, functions)
    links: dict[int, tuple[Unit, bool]] = {}  # index in right.units -> (source unit, paired in order)
    for r in [-1, *sorted(functions)]:
        theirs, ours = left.of_function(functions.get(r, -1)), right.of_function(r)
        if r in dispatchers:
            theirs, ours = _signature(theirs), _signature(ours)
        others = _helper_units(left, functions.get(r, -1)) if r in functions and r not in dispatchers else []
        _link(theirs, others, ours, right, links, known)
    lines = _lines(left, right, functions, links, dispatchers)
    beside, shown = _beside(right, lines, functions, dispatchers)
    lines = _without_repetitions(right, lines, functions, beside, shown)
    return Correspondence(left, right, lines, functions, dispatchers, shown, beside)


def origins(source: str, result: str) -> tuple[tuple[int, ...], ...]:
    """For each line of `result` the lines of `source` that it came from."""
    return tuple(line.source for line in correspond(source, result).lines)


def focused(c: Correspondence, kernels: Iterable[str]) -> Correspondence:
    """Only what became of some kernels of the source, given by name. Raises: KeyError for one that either side lacks."""
    only: set[str] = set()
    for name in kernels:
        own = {
            c.result.functions[i].name
            for i, origin in c.functions.items()
            if c.source.functions[origin].kernel and c.source.functions[origin].name == name.rpartition(".")[2]
        }
        if not own:
            raise KeyError(name)
        only |= own
    return replace(c, only=frozenset(only))


def _pair_functions(left: Text, right: Text, known: Mapping[int, int]) -> dict[int, int]:
    """Function of the translation -> function of the source: that which most of its statements came from, else by name, or a kernel by
    name and a suffix (`_NAME_fp16`, `NAME_2`)."""
    names = {f.name: i for i, f in enumerate(left.functions)}
    kernels = [f.name for f in left.functions if f.kernel]
    pairs = {}
    for i, f in enumerate(right.functions):
        came = [known[n] for n in range(f.first, f.last + 1) if n in known]
        owners = [k for n in came for k, own in enumerate(left.functions) if own.first <= n <= own.last]
        if owners:
            pairs[i] = max(sorted(set(owners)), key=owners.count)
            continue
        candidates = [f.name] if f.name in names else []
        if not candidates and f.kernel:  # a function that gives layouts is none
            candidates = [n for n in kernels if f.name.lstrip("_").startswith(f"{n.lstrip('_')}_")]
        if candidates:
            pairs[i] = names[max(candidates, key=len)]
    return pairs


def _beside(
    right: Text, lines: tuple[Line, ...], functions: dict[int, int], dispatchers: frozenset[int]
) -> tuple[dict[int, int], frozenset[int]]:
    """The source line beside each line of the translation, and of each source function the one that has most of its lines.

    What several functions have of a source line, that one has, else the one with most; each has its lines in order.
    """
    beside: dict[int, int] = {}
    shown: set[int] = set()
    for origin in {*functions.values(), None}:
        members = [i for i, o in functions.items() if o == origin]
        runs = [(i, [line for line in lines if _within(right, i, line.number)]) for i in members]
        if origin is None:
            inside = {n for f in right.functions for n in range(f.first, f.last + 1)}
            runs = [(-1, [line for line in lines if line.number not in inside])]
        found = [(i, _in_order(run, frozenset())) for i, run in runs]
        found.sort(key=lambda pair: (pair[0] in dispatchers, -len(pair[1])))
        shown |= {found[0][0]}
        taken: set[int] = set()
        for i, _ in found:
            own = _in_order(dict(runs)[i], taken)
            beside |= own
            taken |= set(own.values())
    return beside, frozenset(shown)


def _within(text: Text, function: int, number: int) -> bool:
    return text.functions[function].first <= number <= text.functions[function].last


def _in_order(lines: list[Line], taken: Set[int]) -> dict[int, int]:
    """Line -> the first of the source lines that it came from which is free and below those before it."""
    out, position = {}, 0
    for line in lines:
        free = next((n for n in line.source if n > position and n not in taken), None) if line.paired else None
        if free is not None:
            out[line.number] = position = free
    return out


def _without_repetitions(
    right: Text, lines: tuple[Line, ...], functions: dict[int, int], beside: dict[int, int], shown: Set[int]
) -> tuple[Line, ...]:
    """The lines, those that stand in another version of a kernel too, and beside no source line, as repeated."""
    out = list(lines)
    for origin in dict.fromkeys(functions.values()):
        members = [i for i, o in functions.items() if o == origin]
        members.sort(key=lambda i: i not in shown)
        texts = {i: [" ".join(t.split()) for t in right.lines_of(i)] for i in members}
        for at, i in enumerate(members):
            matches = [difflib.SequenceMatcher(None, texts[k], texts[i], False) for k in members[:at]]
            alike = max(matches, key=lambda match: match.ratio(), default=None)
            for block in alike.get_matching_blocks() if alike else ():
                for number in range(block.b, block.b + block.size):
                    line = out[right.functions[i].first - 1 + number]
                    if line.reason and line.number not in beside:
                        out[line.number - 1] = replace(line, reason=REPEATED)
    return tuple(out)


def _dispatchers(right: Text, functions: dict[int, int]) -> frozenset[int]:
    """Functions that call other versions of their own source function and do none of its work."""
    found = set()
    for i, origin in functions.items():
        versions = [right.functions[k].name for k, o in functions.items() if o == origin and k != i]
        body = " ".join(u.text for u in right.of_function(i) if u.kind == "Expr")
        if versions and all(f"{name}(" in body for name in versions):
            found.add(i)
    return frozenset(found)


def _signature(units: list[Unit]) -> list[Unit]:
    return [u for u in units if u.depth == 0 and u.kind in ("decorator", "FunctionDef")]


def _helper_units(text: Text, own: int) -> list[Unit]:
    """The statements and comments of the source's other kernels: a helper's may take the place of its call."""
    helpers = [i for i, f in enumerate(text.functions) if f.kernel and i != own]
    return [
        u for i in helpers for u in text.of_function(i) if u.kind not in ("decorator", "FunctionDef", "Return", "line")
    ]


def _link(
    source: list[Unit],
    others: list[Unit],
    result: list[Unit],
    text: Text,
    links: dict[int, tuple[Unit, bool]],
    known: Mapping[int, int],
) -> None:
    """Link the units of one function: pairs in order first, then repetitions of its own or of a helper's statements."""
    position = {id(u): i for i, u in enumerate(text.units)}
    open_result = [u for u in result if not is_layout_constant(u)]

    def alike(a: Unit, b: Unit) -> float:
        """Where a statement came from is known, or it is new: what it resembles says only which of several stands in its place."""
        if b.first not in known:
            return 0.0 if known and b.node is not None and not isinstance(b.node, ast.FunctionDef) else similarity(a, b)
        return 3.0 + similarity(a, b) if a.first <= known[b.first] <= a.last else 0.0

    for i, j in pair(source, open_result, alike):
        links[position[id(open_result[j])]] = (source[i], True)
    own = [u for u in source if u.targets or u.kind == "Expr"]
    comments = {u.text: u for u in reversed(others) if u.kind == "comment"}
    for unit in open_result:
        if position[id(unit)] in links or unit.kind in ("docstring", "line", "decorator"):
            continue
        if unit.kind == "comment":
            if unit.text in comments:
                links[position[id(unit)]] = (comments[unit.text], False)
            continue
        if origin := [s for s in (*own, *others) if s.first <= known.get(unit.first, 0) <= s.last]:
            links[position[id(unit)]] = (origin[0], False)
            continue
        scored = [(_repeats(s, unit), -k, s, RESEMBLES) for k, s in enumerate(own)]
        scored += [
            (_repeats(s, unit, True), -k - len(own), s, INLINED) for k, s in enumerate(others) if s.kind != "comment"
        ]
        score, _, best, least = max(scored, default=(0.0, 0, None, 1.0), key=lambda x: x[:2])
        if best is not None and score >= least:
            links[position[id(unit)]] = (best, False)


def _repeats(source: Unit, unit: Unit, inlined: bool = False) -> float:
    """How likely `unit` is one more version of `source`: `offs_k_b = ...` of `offs_k = ...`, a copy of a load."""
    if (filled := _FILLS.search(unit.text)) and "load" in source.words and filled.group(1) in source.targets:
        return 1.0  # the copy that fills the buffers which stand for a loaded value
    score = similarity(source, unit)
    variant = any(u == s or u.startswith(f"{s}_") for u in unit.targets for s in source.targets)
    variant = variant and (inlined or source.depth == unit.depth)
    related = variant or bool({stem(u) for u in unit.targets} & {stem(s) for s in source.targets})
    if related and unit.kind == "Assign" == source.kind:
        inside = sum(min(n, source.value_words.get(word, 0)) for word, n in unit.value_words.items())
        if inside >= PART * sum(unit.value_words.values()):
            score = max(score, INLINED)
    return score if variant or not unit.targets else score * (0.9 if related else 0.6)


def _lines(
    left: Text,
    right: Text,
    functions: dict[int, int],
    links: dict[int, tuple[Unit, bool]],
    dispatchers: frozenset[int],
) -> tuple[Line, ...]:
    names = {
        i: {n.id for u in left.of_function(i) if u.node for n in ast.walk(u.node) if isinstance(n, ast.Name)}
        | {a.arg for u in left.of_function(i) if u.node for a in ast.walk(u.node) if isinstance(a, ast.arg)}
        for i in {*functions.values(), -1}
    }
    prologue = _prologue_lines(right)
    out: dict[int, Line] = {}
    following, after = "", -1
    for index in reversed(range(len(right.units))):
        unit = right.units[index]
        owner = right.functions[unit.function].name if unit.function >= 0 else ""
        linked = links.get(index)
        ahead = following if unit.function == after else ""
        if linked:
            reason = change_reason(linked[0], unit, names[functions.get(unit.function, -1)], unit.first in prologue)
        else:
            reason = insertion_reason(unit, ahead, unit.first in prologue)
            reason = "guard" if unit.function in dispatchers else _outside(unit, owner, reason, functions, right)
        following, after = reason, unit.function
        for line in _unit_lines(unit, linked, reason, owner):
            out[line.number] = line
    blank = (Line(n, text, (), "", False, "") for n, text in enumerate(right.lines, 1))
    return tuple(out.get(line.number, line) for line in blank)


def _outside(unit: Unit, owner: str, reason: str, functions: dict[int, int], right: Text) -> str:
    """The reason of an inserted unit outside the source's functions: header, guard, layouts per configuration."""
    if unit.function in functions:
        return reason
    if unit.function < 0:
        if unit.kind == "comment" and unit.first < min([f.first for f in right.functions], default=1):
            return "header"
        return "header" if unit.kind in ("Import", "ImportFrom", "docstring") else reason
    body = " ".join(" ".join(u.lines) for u in right.of_function(unit.function))
    if owner.startswith("_check") or "raise ValueError" in body:
        return "guard"
    if re.search(r"\bgl\.(?:\w+\.)?\w+Layout\(", body) and not re.search(r"\bgl\.(?:load|store|program_id)\b", body):
        return "layout"
    return "staging" if reason == "staging" else "rewrite"


def _unit_lines(unit: Unit, linked: tuple[Unit, bool] | None, reason: str, owner: str) -> list[Line]:
    if linked is None:
        numbers = range(unit.first, unit.last + 1)
        return [Line(n, text, (), reason, False, owner) for n, text in zip(numbers, unit.lines)]
    source, paired = linked
    every = tuple(range(source.first, source.last + 1))
    spelled = [" ".join(x.replace("tl.", "gl.").split()) for x in source.lines]
    out = []
    free = set(range(len(spelled)))
    for k, text in enumerate(unit.lines):
        wanted = " ".join(text.split())
        same = next((i for i in sorted(free) if spelled[i] == wanted), None)
        if same is None and len(unit.lines) == len(source.lines) and k in free:
            same = k
        if same is not None:
            free.discard(same)
            plain = " ".join(source.lines[same].split()) == wanted
            own = "same" if plain else "spelling" if spelled[same] == wanted else reason
            own = own if paired else reason
            out.append(Line(unit.first + k, text, (every[same],), own, paired, owner))
        elif unit.kind == "FunctionDef" and k == 0:  # a version has a name of its own
            free.discard(0)
            out.append(Line(unit.first, text, (source.first,), "rewrite", paired, owner))
        elif unit.kind == "FunctionDef":  # a parameter that the source does not have
            out.append(Line(unit.first + k, text, (), insertion_reason(unit, "", False), paired, owner))
        else:
            out.append(Line(unit.first + k, text, every, reason, paired, owner))
    return out


def _prologue_lines(text: Text) -> set[int]:
    """Lines of loops that fill buffers before a pipelined loop: `for t in gl.static_range(NUM_BUFFERS - 1)`."""
    found: set[int] = set()
    for unit in text.units:
        if isinstance(unit.node, ast.For) and re.search(r"static_range\(.*(?:BUFFERS|buffers)", unit.text):
            found |= set(range(unit.first, (unit.node.end_lineno or unit.last) + 1))
    return found
