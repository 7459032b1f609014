"""One text for versions of a helper that differ only in what compile-time conditions leave out.

x = merge(x, 1, n)        for s in gl.static_range(1, 4):
x = merge_2(x, 2, n)  ->      x = merge(x, s, n)
x = merge_3(x, 3, n)
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from translator.layout.names import LayoutNames
from translator.rewrite import merge
from translator.rewrite.unit import Unit

HELPER = re.compile(r"__helper_(\d+)__")  # stands for a version of a helper until all are named


@dataclass
class _Shared:
    """Versions of a helper with one text, which has the placeholders of the first."""

    members: list[int]
    text: str


def one_body(unit: Unit, bodies: list[str]) -> str | None:
    """What the bodies of a loop's iterations are as one text, for which helpers are made one; None where they differ."""
    shared = _shared(unit, {int(m[1]) for body in bodies for m in HELPER.finditer(body)})
    first = {i: s.members[0] for s in shared for i in s.members}
    body = _merged([_calling(text, first) for text in dict.fromkeys(bodies)])
    if body is None:
        return None
    final: dict[int, int] = {}
    needed = {int(m[1]) for m in HELPER.finditer(body)}
    for s in reversed(shared):
        needed |= {int(m[1]) for m in HELPER.finditer(s.text)} if s.members[0] in needed else set()
    for s in (s for s in shared if s.members[0] in needed):
        inner, own = unit.helper_versions[s.members[0]]
        text = _calling(s.text, final)
        if text != own or len(s.members) > 1:
            final[s.members[0]] = len(unit.helper_versions)
            unit.made_of[len(unit.helper_versions)] = tuple(s.members)
            unit.helper_versions.append((inner, text))
    return _calling(body, final)


def _calling(text: str, instead: dict[int, int]) -> str:
    return HELPER.sub(lambda m: f"__helper_{instead.get(int(m[1]), int(m[1]))}__", text)


def _shared(unit: Unit, indices: set[int]) -> list[_Shared]:
    """The helpers `indices` and all that they call, those that can be one text as one; callees first."""
    todo, reached = list(indices), set(indices)
    while todo:
        called = {int(m[1]) for m in HELPER.finditer(unit.helper_versions[todo.pop()][1])}
        todo += called - reached
        reached |= called
    out: list[_Shared] = []
    first: dict[int, int] = {}
    for index in sorted(reached):  # a helper is written after those that it calls
        inner, text = unit.helper_versions[index]
        text = _calling(text, first)
        for known in out:
            model = unit.helper_versions[known.members[0]][0]
            if model.facts.frame.fn is not inner.facts.frame.fn:
                continue
            names = LayoutNames(list(model.names.order), {k: list(v) for k, v in model.names.roles.items()})
            if (both := merge.merge_plain(known.text, inner.names.moved_to(names, text))) is not None:
                model.names, known.text = names, both
                known.members.append(index)
                first[index] = known.members[0]
                break
        else:
            first[index] = index
            out.append(_Shared([index], text))
    return out


def _merged(bodies: list[str]) -> str | None:
    """One text for blocks of statements, as `merge_plain` makes it of functions."""
    head = "def body():\n"
    first, *rest = (head + textwrap.indent(body, "    ") for body in bodies)
    for text in rest:
        both = merge.merge_plain(first, text)
        if both is None:
            return None
        first = both
    return textwrap.dedent(first.removeprefix(head)) if rest else bodies[0]
