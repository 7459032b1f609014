"""A proposal that the front end refuses, changed where the error points, a bounded number of times."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.kernel.element_types import FORMATS, HALF
from gluonize.read.launches.derive.kernel.origins import JitSource, Origin
from gluonize.read.launches.derive.proposal.guess import Guess, Proposal
from gluonize.read.launches.derive.proposal.values import number_by_use
from gluonize.read.launches.derive.proposal.verdict import Judge, Verdict
from gluonize.triton_api.language import tl
from gluonize.triton_api.package import triton

# Questions to the judge for one launch, and how many changes are tried at one place.
BUDGET = 48
_PER_PLACE = 20
ONE_OF = "must be one of"  # of an option of a builtin: no type or size helps
_ELEMENTS = ("fp32", HALF, "i32", "i64", "fp16", "u8", "i8", "u1", "fp8e4nv")


def settled(evidence: Evidence, proposal: Proposal, judge: Judge, budget: int = BUDGET) -> tuple[Proposal, Verdict]:
    """The proposal, changed until the judge accepts it or no change gets any further; with its verdict, where none helped the one at
    the last place before anything was changed for it: what later ones say is said of changes that did not help."""
    verdict = first = asked(evidence, proposal, judge)
    seen, told = {_key(proposal)}, {verdict.message}
    while not verdict.accepted and budget > 0:
        best: tuple[Proposal, Verdict] | None = None
        for changed in _some(revisions(evidence, proposal, verdict), seen):
            budget -= 1
            found = asked(evidence, changed, judge)
            if found.accepted:
                return changed, found
            known = (best[1] if best is not None else verdict).progress
            if found.progress > known or (best is None and found.progress == known and found.message not in told):
                best = changed, found  # an equal one refuses something else at the same place
            if budget <= 0:
                break
        if best is None:
            break
        proposal, verdict = best
        first = verdict if verdict.progress > first.progress else first
        told.add(verdict.message)
    return proposal, verdict if verdict.accepted else first


def asked(evidence: Evidence, proposal: Proposal, judge: Judge) -> Verdict:
    try:
        return judge(proposal.spec(proposal.kernel, evidence.source))
    except TranslationError as error:
        return Verdict(False, error.diagnostics[0].message)


def _key(proposal: Proposal) -> str:
    return repr([(name, guess.kind, guess.value) for name, guess in proposal.arguments.items()])


def _some(proposals: Iterator[Proposal], seen: set[str]) -> Iterator[Proposal]:
    count = 0
    for proposal in proposals:
        if (key := _key(proposal)) not in seen and count < _PER_PLACE:
            seen.add(key)
            count += 1
            yield proposal


def revisions(evidence: Evidence, proposal: Proposal, verdict: Verdict) -> Iterator[Proposal]:
    """Changes that may help, likeliest first."""
    at = _Place(evidence, proposal, verdict)
    rules = (_options, _sizes, _small, _powers, _large, _products, _types, _pointers, _numbers, _constants)
    for rule in (_options,) if ONE_OF in verdict.message else rules:
        for changed in rule(at):
            if any((g.kind, g.value) != _kind_of(proposal, n) for n, g in changed.items()):
                yield proposal.with_guesses(changed)


def _kind_of(proposal: Proposal, name: str) -> tuple[str, Any]:
    return proposal.arguments[name].kind, proposal.arguments[name].value


class _Place:
    """Where a proposal is refused: the message, the node, and the arguments that its value comes from."""

    def __init__(self, evidence: Evidence, proposal: Proposal, verdict: Verdict):
        self.evidence, self.proposal, self.message = evidence, proposal, verdict.message
        self.function: JitSource | None = None
        self.node: ast.AST | None = None
        if verdict.place is not None and verdict.place[0] in evidence.flow.functions:
            self.function = evidence.flow.functions[verdict.place[0]]
            self.node = _find(self.function.node, verdict.place[1])
        named = self._named()
        self.named = list(dict.fromkeys(o.name for o in named if o.loaded))  # pointers that the message is about
        self.origins = list(dict.fromkeys([*named, *self._near()]))

    def _named(self) -> list[Origin]:
        """The origins of the variables that the message names: its place may be a whole loop."""
        values = self.evidence.flow.variables
        words = re.findall(r"\w+", self.message) if self.function is not None else []
        found = [values[self.function.name, word] for word in words if (self.function.name, word) in values]
        return [origin for value in found for origin in _plain(value.origins)]

    def _near(self) -> list[Origin]:
        nodes = ast.walk(self.node) if self.node is not None else ()
        return [origin for inner in nodes for origin in _plain(self.evidence.flow.of(inner).origins)]

    def free(self, name: str) -> bool:
        """Whether an argument may be changed: it was neither given nor read."""
        guess = self.proposal.arguments.get(name)
        return guess is not None and guess.confidence not in ("given", "read")

    def pointers(self) -> list[str]:
        names = [o.name for o in self.origins if self.proposal.arguments.get(o.name, Guess("")).kind.startswith("*")]
        return [name for name in dict.fromkeys(names) if self.free(name)]

    def constants(self) -> list[str]:
        """Integer constants that may change, those at the place first."""
        near = [o.name for o in self.origins]
        every = [*near, *self.proposal.arguments]
        return [n for n in dict.fromkeys(every) if self.free(n) and type(self.proposal.arguments[n].value) is int]


def _plain(origins: Iterable[Origin]) -> list[Origin]:
    return [Origin(o.name, o.loaded) for o in sorted(origins, key=lambda o: (o.name, o.loaded))]


def _find(root: ast.AST, key: tuple) -> ast.AST | None:
    for node in ast.walk(root):
        if hasattr(node, "lineno") and (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == tuple(
            key[1:]
        ):
            return node
    return None


def _changed(guess: Guess, value: Any, why: str) -> Guess:
    if guess.is_constant:
        return Guess.constant(value, why, "use")
    return Guess.integer(value, why, "use")


def _options(at: _Place) -> Iterator[dict[str, Guess]]:
    """`input_precision must be one of ('ieee', ...)`: a text is a constant, or constants decide which one it is."""
    if ONE_OF in at.message:
        yield from _constants(at)


def _sizes(at: _Place) -> Iterator[dict[str, Guess]]:
    """`incompatible dimensions at index 0: 64 and 32`: tiles that meet have one size."""
    if not any(word in at.message.lower() for word in ("dimension", "shape", "size", "numel", "elements")):
        return
    found = re.search(r"(\d+) and (\d+)", at.message) or re.search(r"(\d+)\D+(\d+)\D*$", at.message)
    if found is None:
        return
    first, second = map(int, found.groups())
    for old, new in ((first, second), (second, first)):
        for name in at.constants():
            if at.proposal.arguments[name].value == old:
                yield {name: _changed(at.proposal.arguments[name], new, f"it meets a size of {new}")}


def _small(at: _Place) -> Iterator[dict[str, Guess]]:
    """A dot's tiles have a least size."""
    if ">=" not in at.message and "at least" not in at.message:
        return
    names = [n for n in at.constants() if at.proposal.arguments[n].value < 16]
    why = "a dot takes no less"
    yield {n: _changed(at.proposal.arguments[n], 16, why) for n in names if n in {o.name for o in at.origins}}
    for name in names:
        yield {name: _changed(at.proposal.arguments[name], 16, why)}


def _powers(at: _Place) -> Iterator[dict[str, Guess]]:
    if "power of" not in at.message:
        return
    for name in at.constants():
        value = at.proposal.arguments[name].value
        if value > 0 and value & (value - 1):
            yield {name: _changed(at.proposal.arguments[name], triton.next_power_of_2(value), "a power of two")}
    for name in at.constants():
        yield {name: _changed(at.proposal.arguments[name], 64, "a power of two")}


def _large(at: _Place) -> Iterator[dict[str, Guess]]:
    """`numel ... exceeds triton maximum tensor numel`."""
    if "maximum" not in at.message and "exceed" not in at.message and "not done" not in at.message:
        return
    for name in sorted(at.constants(), key=lambda n: -at.proposal.arguments[n].value):
        value = at.proposal.arguments[name].value
        if value > 16:
            yield {name: _changed(at.proposal.arguments[name], max(16, value // 8), "a tensor has a largest size")}


def _products(at: _Place) -> Iterator[dict[str, Guess]]:
    """Operands of scaled products; and products that are added to integers: of integers, all of which have 8 bits."""
    scaled = re.search(rf"for ({'|'.join(FORMATS)})\b", at.message)
    if not scaled and "int32" not in at.message:
        return
    kind, why = (FORMATS[scaled.group(1)], f"in {scaled.group(1)}") if scaled else ("i8", "of integers")
    loads = at.evidence.uses.loads
    names = [n for n, guess in at.proposal.arguments.items() if guess.kind.startswith("*") and at.free(n)]
    yield {n: Guess.pointer(kind, f"its products are {why}", "use") for n in names if loads[n].any("dot")}


def _types(at: _Place) -> Iterator[dict[str, Guess]]:
    """Types that do not fit together: of the pointers that the value is loaded from."""
    names = at.pointers()
    named = [
        kind for word in re.findall(r"[a-z]+\d+\w*", at.message) if (kind := _SPELLED.get(word, word)) in _ELEMENTS
    ]
    order = [*dict.fromkeys(named), *(kind for kind in _ELEMENTS if kind not in named)]
    if "invalid operands" in at.message and any(kind in ("fp32", "fp16") for kind in named):  # operations of integers
        for kind, name in itertools.product(("i32", "u8"), names):
            yield {name: Guess.pointer(kind, "an operation of integers takes no other", "use")}
    if "constexpr" not in at.message or names:
        for name, kind in itertools.product([n for n in names if n in at.named], order[:4]):
            yield {name: Guess.pointer(kind, "the front end takes no other", "use")}
        for kind in order[:2]:
            for name in names:
                yield {name: Guess.pointer(kind, "the front end takes no other", "use")}
        for kind in order[:4]:
            if len(names) > 1:
                yield {name: Guess.pointer(kind, "the front end takes no other", "use") for name in names}
        for name in names:
            for kind in order[2:6]:
                yield {name: Guess.pointer(kind, "the front end takes no other", "use")}
    every = [n for n, guess in at.proposal.arguments.items() if guess.kind.startswith("*") and at.free(n)]
    floats = [n for n in every if at.proposal.arguments[n].kind[1:] in ("fp32", HALF)]
    if named:
        halves = [name for name in floats if at.proposal.arguments[name].kind[1:] == HALF]
        if "fp16" in named and halves:
            yield {name: Guess.pointer("fp16", "the kernel makes fp16 of what meets it", "use") for name in halves}
        for kind in ("fp32", HALF):
            yield {name: Guess.pointer(kind, "the front end takes no mixture", "use") for name in floats}


_SPELLED = {
    "int32": "i32",
    "int64": "i64",
    "int8": "i8",
    "uint8": "u8",
    "int1": "u1",
    "float32": "fp32",
    "float16": "fp16",
}


def _pointers(at: _Place) -> Iterator[dict[str, Guess]]:
    """What is loaded from is a pointer."""
    if "ptr" not in at.message and "pointer" not in at.message and "block" not in at.message:
        return
    for origin in at.origins:
        guess = at.proposal.arguments.get(origin.name)
        if guess is not None and at.free(origin.name) and not origin.loaded and not guess.kind.startswith("*"):
            if not at.evidence.parameters[origin.name].is_constexpr:
                yield {origin.name: Guess.pointer("fp32", "it is used as an address", "use")}


def _numbers(at: _Place) -> Iterator[dict[str, Guess]]:
    """Run-time numbers: integers for floating-point numbers and the other way around; None that is computed with."""
    for origin in at.origins:
        guess = at.proposal.arguments.get(origin.name)
        param = at.evidence.parameters.get(origin.name)
        if guess is None or param is None or param.is_constexpr or not at.free(origin.name) or origin.loaded:
            continue
        if guess.kind.startswith("*") and "pointer<" in at.message:
            yield {origin.name: Guess.integer(64, "the front end takes no pointer", "use")}
        elif guess.kind == "fp32":
            yield {origin.name: Guess.integer(16, "the front end takes no floating-point number", "use")}
        elif guess.kind in ("i32", "i64", "u1"):
            yield {origin.name: Guess("fp32", why="the front end takes no integer", confidence="use", number=1.0)}
        elif guess.is_constant:
            why = "the front end takes no constant"
            if (used := number_by_use(origin.name, at.evidence)).kind == "fp32":
                yield {origin.name: replace(used, why=why)}
            yield {origin.name: Guess.integer(64, why, "use")}


def _constants(at: _Place) -> Iterator[dict[str, Guess]]:
    """Constants at the place, of another kind: a flag, a number, a type, nothing."""
    near = [o.name for o in at.origins if not o.loaded]
    names = list(dict.fromkeys([*near, *_compared(at), *(_tested(at) if not near else [])]))
    options = [[(name, value) for value in _other_values(at, name)] for name in names]
    for row in itertools.zip_longest(*options):  # the likeliest of each first
        for entry in row:
            if entry is not None:
                yield {entry[0]: Guess.constant(entry[1], "the front end takes no other", "use")}


def _other_values(at: _Place, name: str) -> list[Any]:
    """Values of other kinds for a constant, likeliest first."""
    param, guess = at.evidence.parameters.get(name), at.proposal.arguments.get(name)
    if param is None or guess is None or not param.is_constexpr or not at.free(name):
        return []
    use = at.evidence.uses.arguments[name]
    options: list[Any] = [*use.texts, *use.numbers]
    if isinstance(guess.value, bool):
        options += [not guess.value, 1]
    elif type(guess.value) is int:
        options += [64, 16, 1, 2, 128, True, tl.float32]
    elif guess.value is None:
        options += [64, True, tl.float32, 1.0]
    elif isinstance(guess.value, tl.dtype):
        options += [tl.int32, tl.bfloat16, True, 16]
    else:
        options += [16, True, tl.float32, 1.0]
    return [value for value in options if value != guess.value or type(value) is not type(guess.value)]


def _compared(at: _Place) -> list[str]:
    """Constants that the kernel compares with texts or numbers: they decide what the constants at the place are."""
    uses = at.evidence.uses.arguments
    return [n for n, guess in at.proposal.arguments.items() if guess.is_constant and (uses[n].texts or uses[n].numbers)]


def _tested(at: _Place) -> list[str]:
    """Flags that decide whether the place is reached at all."""
    return [n for n, guess in at.proposal.arguments.items() if isinstance(guess.value, bool)]
