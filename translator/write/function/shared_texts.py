"""One text for versions of a helper that differ only in what compile-time conditions leave out.

x = merge(x, 1, n)        for s in gl.static_range(1, 4):
x = merge_2(x, 2, n)  ->      x = merge(x, s, n)
x = merge_3(x, 3, n)
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, replace

from gluonize.decide.layouts.names import LayoutNames
from gluonize.gluon.code import code_of
from gluonize.gluon.function import GluonFunction, parsed
from gluonize.gluon.nodes import Code, Node
from gluonize.write.function import merge
from gluonize.write.state.unit import Unit, helper_hole

_HEAD = "def body():\n"


@dataclass
class _Shared:
    """Versions of a helper that are one function, which has the placeholders of the first; names: those of its layouts."""

    members: list[int]
    function: GluonFunction
    names: LayoutNames


def one_body(unit: Unit, bodies: list[Code]) -> Code | None:
    """What the bodies of a loop's iterations are as one, for which helpers are made one; None where they differ."""
    nodes = list(dict.fromkeys(part for body in bodies for part in body if isinstance(part, Node)))
    texts = ["".join(p if isinstance(p, str) else f"__node_{nodes.index(p)}__" for p in body) for body in bodies]
    each = [parsed(_HEAD + textwrap.indent(body, "    ")) for body in dict.fromkeys(texts)]
    shared = _shared(unit, {i for body in each for i in unit.called_by(body)})
    first = {i: s.members[0] for s in shared for i in s.members}
    body, *others = (_calling(body, first) for body in each)
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
        function = _calling(s.function, final)
        if function.text != own.function.text or len(s.members) > 1:
            final[s.members[0]] = unit.add_helper(replace(own, function=function, names=s.names))
            unit.made_of[final[s.members[0]]] = tuple(s.members)
    text = textwrap.dedent(_calling(body, final).text.removeprefix(_HEAD))
    return code_of(*(nodes[int(part)] if i % 2 else part for i, part in enumerate(re.split(r"__node_(\d+)__", text))))


def _calling(function: GluonFunction, instead: dict[int, int]) -> GluonFunction:
    return function.exchanging({helper_hole(old): helper_hole(new) for old, new in instead.items() if old != new})


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
        function = _calling(own.function, first)
        for known in out:
            if unit.helper_versions[known.members[0]].facts.frame.fn is not own.facts.frame.fn:
                continue
            names = known.names.copy()
            moved = function.exchanging(own.names.moved_to(names, function.variables))
            if (both := merge.merge_plain(known.function, moved)) is not None:
                known.names, known.function = names, both
                known.members.append(index)
                first[index] = known.members[0]
                break
        else:
            first[index] = index
            out.append(_Shared([index], function, own.names))
    return out
