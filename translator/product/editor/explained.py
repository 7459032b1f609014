"""What an explanation says of one name, one line or one layout, launches that agree said once."""

from __future__ import annotations

import ast
import functools
import math
import os
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

from gluonize.product.editor.outline import Scope
from gluonize.product.report.explain.explanation import Choice, Explanation
from gluonize.product.report.layouts.inlined import inlined
from gluonize.product.report.layouts.job import constructor_key
from gluonize.product.report.review.similarity import stem
from gluonize.read.text.parsed import parsed_text
from gluonize.rules.gluon import shape_at
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Ints


@dataclass(frozen=True)
class Said:
    """A choice, the launches in which it was made, and for which element types; what it costs is of the first."""

    choice: Choice
    launches: tuple[str, ...]
    dtypes: tuple[str, ...]


@dataclass(frozen=True)
class Tile:
    """A tile that has a layout. of: what it is, in the words of the explanation; dtypes: in the launches that there are; lines: of the source."""

    shape: Ints
    dtypes: tuple[str, ...]
    of: str
    lines: Ints


def relevant(explanations: Sequence[Explanation], scope: Scope | None) -> tuple[Explanation, ...]:
    """The launches that a function of a translation is for: those of its kernel, and of the version with its layouts."""
    if scope is None:
        return tuple(explanations)
    name = scope.name.lstrip("_")
    kernels = {e.kernel.rpartition(".")[2] for e in explanations}
    own = max((k for k in kernels if name == k or name.startswith(f"{k}_")), key=len, default=None)
    kernel = tuple(e for e in explanations if own is None or e.kernel.rpartition(".")[2] == own)
    return tuple(e for e in kernel if _agrees(e, scope)) or kernel


def _agrees(explanation: Explanation, scope: Scope) -> bool:
    """Whether the layouts of a launch are those that a function spells."""
    spelled: dict[str, set[str]] = {}
    for name, text, _ in scope.layouts:
        spelled.setdefault(name, set()).add(_key(text))
    known = written(explanation.layouts)
    return all(_key(known[name]) in keys for name, keys in spelled.items() if name in known)


_key = functools.lru_cache(maxsize=1024)(constructor_key)


@functools.lru_cache(maxsize=256)
def written(layouts: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Name -> constructor, of layouts that refer to each other by name."""
    nodes = {name: parsed_text(text, mode="eval").body for name, text in layouts}
    return {name: ast.unparse(inlined(ast.Name(name), nodes)) for name in nodes}


def values(explanations: Iterable[Explanation], path: str, lines: Iterable[int], name: str) -> tuple[Said, ...]:
    """What was chosen for the value that a line of the source at `path` gives to `name`, or to what the translation calls so.

    `a_offs` of the translation is of `a_ptrs`, whose statement it was made from.
    """
    here = [s for s in _at(explanations, path, lines) if s.choice.kind == "value"]
    called = {variable(s.choice) for s in here}
    for wanted in ({name}, {v for v in called if stem(v) == stem(name)}, called if len(called) == 1 else set()):
        if found := tuple(s for s in here if variable(s.choice) in wanted):
            return found
    return ()


def versions(
    explanations: Iterable[Explanation], path: str, line: int, name: str, others: Set[str]
) -> tuple[Said, ...]:
    """What was chosen for the value that a line of the source gives to `name`, in each layout that the translation has it in.

    `offs_k_b` is a version of `offs_k`, unless it is one of the `others` that the source has itself.
    """

    def is_one(called: str) -> bool:
        return called == name or (called.startswith(f"{name}_") and called not in others)

    here = (s for s in _at(explanations, path, [line]) if s.choice.kind == "value")
    return tuple(s for s in here if is_one(variable(s.choice)))


def elsewhere(explanations: Iterable[Explanation], path: str, name: str) -> tuple[Said, ...]:
    """What was chosen for a value of a helper of another file, by its name alone."""
    pairs = [
        (c, e.launch)
        for e in explanations
        for c in e.choices
        if c.kind == "value" and variable(c) == name and not _same(c.file, path)
    ]
    return _grouped(pairs)


def line_choices(explanations: Iterable[Explanation], path: str, lines: Iterable[int]) -> tuple[Said, ...]:
    """Everything that was chosen for lines of the source, in its order."""
    return _at(explanations, path, lines)


def variable(choice: Choice) -> str:
    """The variable that a choice of kind `value` is about."""
    return choice.what.split(" ")[0]


def constructors(explanations: Iterable[Explanation], name: str) -> dict[str, tuple[str, ...]]:
    """Constructor -> launches, of the layout that translations call `name`."""
    out: dict[str, tuple[str, ...]] = {}
    for explanation in explanations:
        if (text := written(explanation.layouts).get(name)) is not None:
            out[text] = (*out.get(text, ()), explanation.launch)
    return out


def tiles(explanations: Iterable[Explanation], layout: str) -> tuple[Tile, ...]:
    """The tiles that have a layout, given as the translation spells it; the largest first."""
    found: dict[tuple[Ints, str], tuple[dict[str, None], dict[int, None]]] = {}
    for explanation in explanations:
        for c in explanation.choices:
            if c.shape and layout in c.choice.split(" -> "):
                dtype = c.dtype or _element(explanation, c)
                dtypes, lines = found.setdefault((c.shape, c.what), ({}, {}))
                dtypes[dtype] = lines[c.line] = None
    every = (
        Tile(shape, tuple(filter(None, dtypes)), of, tuple(lines)) for (shape, of), (dtypes, lines) in found.items()
    )
    return tuple(sorted(every, key=lambda t: -math.prod(t.shape)))


def tile_of(layout: str) -> Ints:
    """The tile that a layout names itself, () where it is of any."""
    try:
        call = parsed_text(layout, mode="eval").body
        if not isinstance(call, ast.Call):
            return ()
        at = shape_at(ast.unparse(call.func))
        shape = ast.literal_eval(call.args[at]) if at is not None and at < len(call.args) else ()
    except (SyntaxError, ValueError):
        return ()
    return tuple(shape) if all(isinstance(n, int) for n in shape) else ()


def bits(dtypes: Sequence[str]) -> int:
    """Of an element of the first type, 16 where nobody knows."""
    return bits_of(dtypes[0]) if dtypes else 16


def _element(explanation: Explanation, staged: Choice) -> str:
    """The element type of a tile in LDS: that of the access that is staged there."""
    same = (c for c in explanation.choices if (c.file, c.line, c.kind) == (staged.file, staged.line, "access"))
    return next((c.dtype for c in same if c.shape == staged.shape), "")


def _at(explanations: Iterable[Explanation], path: str, lines: Iterable[int]) -> tuple[Said, ...]:
    wanted = set(lines)
    return _grouped(
        [(c, e.launch) for e in explanations for c in e.choices if c.line in wanted and _same(c.file, path)]
    )


def _grouped(pairs: Iterable[tuple[Choice, str]]) -> tuple[Said, ...]:
    """Choices that differ in element types only are one."""
    groups: dict[Choice, list[tuple[Choice, str]]] = {}
    for choice, launch in pairs:
        groups.setdefault(replace(choice, dtype="", cost="", bytes=0), []).append((choice, launch))
    return tuple(
        Said(
            group[0][0],
            tuple(dict.fromkeys(launch for _, launch in group)),
            tuple(dict.fromkeys(choice.dtype for choice, _ in group if choice.dtype)),
        )
        for group in groups.values()
    )


def _same(file: str, path: str) -> bool:
    return file == path or _real(file) == _real(path)


@functools.lru_cache(maxsize=256)
def _real(path: str) -> str:
    return os.path.realpath(path)
