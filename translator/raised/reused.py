"""Variables that go on under one name, as a person writes them: `acc = acc * alpha`, not `acc_2 = acc * alpha`.

Each value of a module has a variable of its own. One that begins where another of the same plain name is read for the last time takes its
name. No loop carries more or other variables for it: both begin in one block, or the other one is what the loop of that block carries and
is given its next value later in the block.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gluonize.raised.naming.names import plain, unused
from gluonize.raised.writer import Line

Place = tuple[tuple[int, int], ...]  # of a statement: (block, its number there), the outermost first
_WORD = re.compile(r"[^\W\d]\w*")
_COPY = re.compile(r"(\w+) = (\w+)")
_FIRST = re.compile(r"\w+ = ")


@dataclass
class _Variable:
    """counts: whether it is the index of a loop."""

    name: str
    counts: bool = False
    assigned: list[Place] = field(default_factory=list)
    read: list[Place] = field(default_factory=list)


def reuse(lines: Sequence[Line], parameters: Sequence[str]) -> None:
    """Change the statements of a function so that variables go on under the names of those that are not read any more."""
    _first_ones(lines, parameters)
    found = _Reader(lines, parameters)
    groups: dict[str, list[_Variable]] = {}
    for variable in found.variables.values():
        if variable.assigned:
            groups.setdefault(plain(variable.name), []).append(variable)
    renamed: dict[str, str] = {}
    for group in groups.values():
        kept: list[_Variable] = []
        for variable in group:
            fixed = variable.name in parameters or variable.name in found.texts
            before = None if fixed else next((other for other in kept if _goes_on(variable, other)), None)
            if before is None:
                kept.append(variable)
            else:
                renamed[variable.name] = before.name
                before.assigned += variable.assigned
                before.read += variable.read
        renamed |= _numbered(kept, [each.name for each in group], (*parameters, *found.texts), renamed)
    _rename(lines, renamed)


def _first_ones(lines: Sequence[Line], parameters: Sequence[str]) -> None:
    """What a variable of a loop begins with is the first one of these: `a_slot = first_a_slot`, not `a_slot_2 = a_slot`."""
    found = _Reader(lines, parameters)
    renamed: dict[str, str] = {}
    for at, line in enumerate(lines):
        copy = _COPY.fullmatch(line.text)
        if copy is None or not _begins_loop(lines[at + 1 :], line.depth):
            continue
        new, old = copy.groups()
        once = old in found.variables and len(found.variables[old].assigned) == 1
        if once and plain(new) == plain(old) != new and not {old, new} & {*parameters, *found.texts, *renamed}:
            first = unused(f"first_{plain(old)}", found.variables, renamed.values())
            renamed |= {old: first, new: old}
    _rename(lines, renamed)


def _begins_loop(lines: Sequence[Line], depth: int) -> bool:
    """Whether a loop follows, behind nothing but what variables begin with."""
    after = next((line for line in lines if line.depth != depth or not _FIRST.match(line.text)), None)
    return after is not None and after.depth == depth and after.text.startswith(("for ", "while "))


def _rename(lines: Sequence[Line], renamed: dict[str, str]) -> None:
    for line in lines if renamed else ():
        line.text = _WORD.sub(lambda word: renamed.get(word[0], word[0]), line.text)


def _numbered(kept: list[_Variable], names: list[str], fixed: Sequence[str], renamed: dict[str, str]) -> dict[str, str]:
    """What the variables of one plain name are called that are left, by the lowest numbers, and those that go on under their names."""
    free = sorted((name for name in names if name not in fixed), key=lambda name: (len(name), name))
    called = dict(zip((each.name for each in kept if each.name not in fixed), free))
    return called | {name: called.get(renamed[name], renamed[name]) for name in names if name in renamed}


def _goes_on(variable: _Variable, other: _Variable) -> bool:
    """Whether the other one may get the value where the variable begins, and be read in its place."""
    if len(variable.assigned) > 1 or variable.counts != other.counts:
        return False
    ((*around, (block, begins)),) = variable.assigned
    path = tuple(around)
    own = [_within(place, path, block) for place in other.assigned]
    inside = [at for at in own if at is not None]
    if begins in inside:
        return False
    earlier = [at for at in inside if at < begins]
    later = [at for at in inside if at > begins]
    ends = min(later, default=None)
    reads = [_within(place, path, block) for place in other.read]
    if any(at > begins and len(place) > len(path) + 1 for place, at in zip(other.assigned, own) if at is not None):
        return False  # a block inside would give it another value
    if None in own:
        # What the loop around this block carries: it is there from the start, and has its next value at the end.
        if ends is None or not _is_carried(other, path, block):
            return False
    elif not earlier:
        return False
    if any(at is not None and at > begins and (ends is None or at <= ends) for at in reads):
        return False
    if None in reads and ends is None:
        return False
    mine = [_within(place, path, block) for place in variable.read]
    return all(at is not None and (ends is None or at <= ends) for at in mine)


def _is_carried(variable: _Variable, path: Place, block: int) -> bool:
    """Whether a variable that begins outside of a block is one of the loop that the block is the body of: no place between gives it a value."""
    outside = [place for place in variable.assigned if _within(place, path, block) is None]
    return bool(path) and all(len(place) <= len(path) for place in outside)


def _within(place: Place, path: Place, block: int) -> int | None:
    """The statement of a block that a place is in, None outside of the block."""
    depth = len(path)
    return place[depth][1] if len(place) > depth and place[:depth] == path and place[depth][0] == block else None


class _Reader:
    """Where the variables of some statements are given values and read. texts: words of what stands in quotes."""

    def __init__(self, lines: Sequence[Line], parameters: Sequence[str]):
        text = "\n".join("    " * (line.depth - 1) + line.text for line in lines)
        self.variables = {name: _Variable(name, assigned=[((0, -1),)]) for name in parameters}
        self.texts: set[str] = set()
        self.blocks = 0
        self._block(ast.parse(text).body, ())

    def _block(self, statements: Sequence[ast.stmt], path: Place) -> None:
        block = self.blocks
        self.blocks += 1
        for number, statement in enumerate(statements):
            here = (*path, (block, number))
            if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
                self.variables.setdefault(statement.target.id, _Variable(statement.target.id, counts=True))
            for name, value in ast.iter_fields(statement):
                if name not in ("body", "orelse"):
                    for each in value if isinstance(value, list) else [value]:
                        if isinstance(each, ast.AST):
                            self._names(each, here)
            for inner in (getattr(statement, "body", None), getattr(statement, "orelse", None)):
                if inner:
                    self._block(inner, here)

    def _names(self, tree: ast.AST, here: Place) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                variable = self.variables.setdefault(node.id, _Variable(node.id))
                (variable.assigned if isinstance(node.ctx, ast.Store) else variable.read).append(here)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.texts |= set(_WORD.findall(node.value))
