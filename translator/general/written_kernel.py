"""A kernel whose layouts are written as formulas."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from gluonize.decide.layouts.base_runs import ALONG, COLUMNS, DOWN, ROWS
from gluonize.decide.layouts.formulas import MAX, MIN, ROOT
from gluonize.decide.layouts.size_range import in_words
from gluonize.facts.kernel import words_of
from gluonize.general.box import Region
from gluonize.general.general_kernels import GeneralLayouts
from gluonize.general.launches.ring_depth import RingDepth
from gluonize.general.rules.layouts import GeneralLayout
from gluonize.decide.layouts.rule_texts import RuleText
from gluonize.numbered import numbered
from gluonize.write.function.layout_constants import with_constants
from gluonize.write.state.emitted import EmittedKernel
from gluonize.write.state.unit import Synthesized

# What is called in kernels in which the names of Python's functions stand for something else.
_INSTEAD = {MIN: "lesser", MAX: "greater"}
_FUNCTIONS = {
    "lesser": '''@gluon.constexpr_function
def lesser(value, most):
    """`value`, but no more than `most`."""
    return value if value < most else most
''',
    "greater": '''@gluon.constexpr_function
def greater(value, least):
    """`value`, but no less than `least`."""
    return value if value > least else least
''',
    ROOT: '''@gluon.constexpr_function
def root(value):
    """The greatest power of two whose square is no more than `value`, itself a power of two or 0."""
    return 1 << (value.bit_length() - 1) // 2 if value else 0
''',
    ROWS: '''@gluon.constexpr_function
def rows(first, end):
    """Bases of a layout: `first` rows further, twice as many, and so on below `end`."""
    return [[first << i, 0] for i in range(max(end, 1).bit_length() - first.bit_length())]
''',
    COLUMNS: '''@gluon.constexpr_function
def columns(first, end):
    """Bases of a layout: `first` columns further, twice as many, and so on below `end`."""
    return [[0, first << i] for i in range(max(end, 1).bit_length() - first.bit_length())]
''',
    ALONG: '''@gluon.constexpr_function
def along(dim, first, end, rank):
    """Bases of a layout: `first` elements further along `dim`, twice as many, and so on below `end`."""
    return [[first << i if d == dim else 0 for d in range(rank)] for i in range(max(end, 1).bit_length() - first.bit_length())]
''',
    ROWS + DOWN: '''@gluon.constexpr_function
def rows_down(first, end):
    """Bases of a layout: the powers of two of rows from below `end` down to `first`."""
    return [[first << i, 0] for i in reversed(range(max(end, 1).bit_length() - first.bit_length()))]
''',
    COLUMNS + DOWN: '''@gluon.constexpr_function
def columns_down(first, end):
    """Bases of a layout: the powers of two of columns from below `end` down to `first`."""
    return [[0, first << i] for i in reversed(range(max(end, 1).bit_length() - first.bit_length()))]
''',
    ALONG + DOWN: '''@gluon.constexpr_function
def along_down(dim, first, end, rank):
    """Bases of a layout: the powers of two of elements along `dim` from below `end` down to `first`."""
    steps = [first << i for i in reversed(range(max(end, 1).bit_length() - first.bit_length()))]
    return [[step if d == dim else 0 for d in range(rank)] for step in steps]
''',
}


@dataclass(frozen=True)
class Spelled:
    """How sizes and functions are written in device code. warps: the name of the number of warps; functions: by the name that each has
    in the output. Rules that share a name and differ in their text are different functions."""

    warps: str
    functions: Mapping[str, Synthesized]

    def __call__(self, name: str) -> str:
        if name == self.warps:
            return "gl.num_warps()"
        own = _INSTEAD.get(name, name)
        return self._of(Synthesized(own, _FUNCTIONS[own]), name) if own in _FUNCTIONS else name

    def rule(self, rule: RuleText) -> str:
        return f"{rule.module}.{rule.name}" if rule.module else self._of(Synthesized(rule.name, rule.text), rule.name)

    def _of(self, function: Synthesized, plain: str) -> str:
        return next((name for name, known in self.functions.items() if known == function), plain)


def named_functions(
    layouts: Iterable[GeneralLayout],
    more: Iterable[str],
    taken: Set[str],
    known: Mapping[str, Synthesized] = MappingProxyType({}),
    shadowed: Set[str] = frozenset(),
) -> dict[str, Synthesized]:
    """The functions that layouts call, each by a name that is its own. more: other functions of this module that are called; known:
    those of other texts of the kernel, by their names. shadowed: names that stand for something else in the kernel than in Python.
    """
    rules = (rule for layout in layouts for rule in layout.rules if not rule.module)
    texts = dict.fromkeys(Synthesized(rule.name, rule.text) for rule in rules)
    names = frozenset(more).union(*(layout.functions for layout in layouts))
    names = {_INSTEAD.get(name, name) for name in names if name not in _INSTEAD or name in shadowed}
    texts |= dict.fromkeys(Synthesized(name, _FUNCTIONS[name]) for name in names)
    out: dict[str, Synthesized] = {}
    for function in sorted(texts, key=lambda function: (function.name, function.text)):
        out[numbered(function.name, lambda name: name in taken or name in out or _differs(function, name, known))] = (
            function
        )
    return out


def _differs(function: Synthesized, name: str, known: Mapping[str, Synthesized]) -> bool:
    """Whether a name stands for another function."""
    return name in known and known[name] != function.called(name)


def as_written(
    general: GeneralLayouts,
    region: Region,
    warps: str,
    depth: RingDepth | None = None,
    known: Mapping[str, Synthesized] = MappingProxyType({}),
) -> EmittedKernel:
    """A kernel with formulas for its layouts; the header says for which sizes. warps: the name of the number of warps. depth: what
    gives that of its rings, where its text does not. known: functions that other texts of the kernel have, by their names.
    """
    base, layouts = general.emitted, general.layouts
    laid_out, fn = base.kernel.laid_out, base.kernel.fn
    taken = words_of(fn.file_name or "", fn.src)
    shadowed = laid_out.function.bound | fn.__globals__.keys()
    more = () if depth is None else (MIN,)
    spelled = Spelled(warps, named_functions(layouts.values(), more, taken, known, shadowed))
    added = () if depth is None else (depth.definition(general.rings, spelled),)
    depths = tuple(d for d in laid_out.depths if depth is None or not depth.implies(d, general.rings, region.bounds))
    constants = tuple((name, layout.written(spelled)) for name, layout in layouts.items())
    laid_out = replace(laid_out, constants=constants, added=added, depths=depths)
    record = copy.copy(base.record)
    record.globals_needed, record.imports = dict(record.globals_needed), set(record.imports)
    limits = (*region.box, *(depth.ranges if depth is not None else ()), *region.bounds)
    record.explained = [*record.explained, f"layouts follow from the launch, as tried for {in_words(limits)}"]
    for name, function in spelled.functions.items():
        record.need(function.called(name), fn)
    for module in sorted({rule.module for layout in layouts.values() for rule in layout.rules} - {""}):
        record.amd(module)
    kernel = replace(base.kernel, function=with_constants(laid_out), laid_out=laid_out)
    return replace(base, kernel=kernel, record=record)


__all__ = ["Spelled", "as_written", "named_functions"]
