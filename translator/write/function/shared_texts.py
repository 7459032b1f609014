"""One text for versions of a helper that differ only in what compile-time conditions leave out.

x = merge(x, 1, n)        for s in gl.static_range(1, 4):
x = merge_2(x, 2, n)  ->      x = merge(x, s, n)
x = merge_3(x, 3, n)
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from typing import Any

from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.nodes import Code
from gluonize.gluon.trees.function import GluonFunction
from gluonize.gluon.trees.references import references
from gluonize.write.function import merge
from gluonize.write.state.unit import Unit, Version

_HEAD = "def body():\n"


@dataclass
class _Shared:
    """Versions of a helper that are one function, names: those of its layouts."""

    members: list[int]
    function: GluonFunction
    names: LayoutNames


def one_body(unit: Unit, bodies: list[Code]) -> Code | None:
    """What the bodies of a loop's iterations are as one, for which helpers are made one; None where they differ."""
    trees = unit.references
    texts = dict.fromkeys(trees.text(body) for body in bodies)
    each = [trees.function(_HEAD + textwrap.indent(body, "    ")) for body in texts]
    shared = _shared(unit, {i for body in each for i in unit.called_by(body)})
    first = {i: s.members[0] for s in shared for i in s.members}
    body, *others = (_calling(unit, body, first) for body in each)
    for other in others:
        both = merge.merge_plain(body, other)
        if both is None:
            return None
        body = both
    final: dict[int, int] = {}
    needed = set(unit.called_by(body))
    for s in reversed(shared):
        needed |= set(unit.called_by(s.function)) if s.members[0] in needed else set()
    for s in (s for s in shared if s.members[0] in needed):
        own = unit.helper_versions[s.members[0]]
        function = _calling(unit, s.function, final)
        if function.text != own.function.text or len(s.members) > 1:
            final[s.members[0]] = unit.add_helper(replace(own, function=function, names=s.names))
            unit.made_of[final[s.members[0]]] = tuple(s.members)
    return trees.code(textwrap.dedent(_calling(unit, body, final).text.removeprefix(_HEAD)))


def _calling(unit: Unit, function: GluonFunction, instead: dict[int, int]) -> GluonFunction:
    """A function that calls other versions of helpers instead of some."""
    return unit.references.exchanged(
        function, {Version(old): Version(new) for old, new in instead.items() if old != new}
    )


def _layouts(function: GluonFunction) -> list[Any]:
    """The layouts, and the variants of variables, that a function uses."""
    return [of for of in references(function.node.body) if not isinstance(of, Version)]


def _shared(unit: Unit, indices: set[int]) -> list[_Shared]:
    """The helpers `indices` and all that they call, those that can be one text as one; callees first."""
    todo, reached = list(indices), set(indices)
    while todo:
        called = set(unit.called_by(unit.helper_versions[todo.pop()].function))
        todo += called - reached
        reached |= called
    out: list[_Shared] = []
    first: dict[int, int] = {}
    for index in sorted(reached):  # a helper is written after those that it calls
        own = unit.helper_versions[index]
        function = _calling(unit, own.function, first)
        for known in out:
            if unit.helper_versions[known.members[0]].facts.frame.fn is not own.facts.frame.fn:
                continue
            if (both := merge.merge_plain(known.function, function)) is not None:
                known.names, known.function = known.names.with_those_of(own.names, _layouts(function)), both
                known.members.append(index)
                first[index] = known.members[0]
                break
        else:
            first[index] = index
            out.append(_Shared([index], function, own.names))
    return out
