"""Names of Gluon's modules that the file means something else by: the output's own import gives way.

gl = 3                                                        gl = 3
from triton.experimental.gluon import language as gl    ->    from triton.experimental.gluon import language as gl_
x = gl.arange(0, 16, layout=rows)                             x = gl_.arange(0, 16, layout=rows)

Gluon's modules are only ever asked for an attribute, so a bare `gl` in a kernel stays what the author means by it. Where the author asks
something of a `gl` that is no module, the name is an `OwnName`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from gluonize.gluon.author_names import OwnName, as_written
from gluonize.gluon.function import Statement
from gluonize.gluon.imports import Import, is_of_gluon
from gluonize.gluon.walk import dotted, mapped, stores, walk
from gluonize.numbered import numbered
from gluonize.read.names.file_names import FileNames


@dataclass(frozen=True)
class Aliases:
    """Other names for modules of Gluon. apart: whether names of the author's are spelled apart in what is new."""

    of: Mapping[str, str]
    apart: bool = False

    def imported(self, lines: Iterable[Import]) -> list[Import]:
        """The imports of an output under the names that it has for them."""
        return [replace(line, bound=self.of[line.binds]) if self._changes(line) else line for line in lines]

    def _changes(self, line: Import) -> bool:
        return line.of_gluon and line.binds in self.of

    def within(self, statement: Any) -> Any:
        """A statement of the output; of a function that is no Gluon its decorators alone ask Gluon's modules for something."""
        if not self.of and not self.apart:
            return statement
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and not _is_gluon(statement):
            return statement.with_changes(decorators=[mapped(d, self._name) for d in statement.decorators])
        return mapped(statement, self._name)

    def _name(self, node: cst.CSTNode) -> cst.CSTNode | None:
        if not isinstance(node, cst.Attribute) or isinstance(node.value, OwnName):
            return as_written(node)
        if not isinstance(node.value, cst.Name) or node.value.value not in self.of:
            return None
        return node.with_changes(value=node.value.with_changes(value=self.of[node.value.value]))


def aliases(
    lines: Iterable[Import], new: Sequence[Statement], file: FileNames, dropped: Collection[str] = ()
) -> Aliases:
    """Names for those modules of Gluon whose names are taken: bound at the file's top level, or parameters of a kernel.

    new: what the output adds to its file. dropped: names that the file no longer imports.
    """
    parameters = {
        p.name.value for s in new if _is_gluon(s) for p in walk(s.params) if isinstance(p, cst.Param)  # type: ignore[attr-defined]
    }
    imported = {name for name, what in file.imported.items() if not is_of_gluon(what) and name not in dropped}
    bound = parameters.union(imported, file.defined, *map(_bound_by, new))
    taken = {line.binds for line in lines if line.of_gluon} & bound
    apart = any(isinstance(n, OwnName) for s in new for n in walk(s))
    if not taken:
        return Aliases({}, apart)
    every = bound | file.mentioned | {n.value for s in new for n in walk(s) if isinstance(n, cst.Name)}
    return Aliases({name: numbered(f"{name}_", every.__contains__) for name in sorted(taken)}, apart)


def _bound_by(statement: Statement) -> set[str]:
    """The names that a statement of the top level binds."""
    return {statement.name.value} if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) else stores(statement)


def _is_gluon(statement: cst.CSTNode) -> bool:
    """Whether a statement is a function under a decorator of Gluon's."""
    if not isinstance(statement, cst.FunctionDef):
        return False
    called = (d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in statement.decorators)
    return any(dotted(c).startswith("gluon.") for c in called)


__all__ = ["Aliases", "aliases"]
