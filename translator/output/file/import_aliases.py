"""Names of Gluon's modules and operations as the output has them: the last thing that happens to what is new in a file.

Where the file means something else by a module's name, the output's own import gives way:

gl = 3                                                        gl = 3
from triton.experimental.gluon import language as gl    ->    from triton.experimental.gluon import language as gl_
x = gl.arange(0, 16, layout=rows)                             x = gl_.arange(0, 16, layout=rows)

What the Triton of the output calls otherwise than the vocabulary (`rules/gluon.py`) gets its own name:

from ...gluon.language.amd.cdna4 import async_copy    ->    from ...gluon.language.amd.copies import async_copy
async_copy.commit_group()                             ->    async_copy.close_group()

Gluon's modules are only ever asked for an attribute, so a bare `gl` in a kernel stays what the author means by it. Where the author asks
something of a `gl` that is no module, the name is an `OwnName`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import libcst as cst
from gluonize.gluon.imports import TRITON_LANGUAGE, Import, is_of_gluon
from gluonize.gluon.trees.author_names import OwnName, as_written
from gluonize.gluon.trees.function import Statement
from gluonize.gluon.trees.walk import dotted, mapped, stores, walk
from gluonize.gluon.version_words import LANGUAGE, VersionWords, keys
from gluonize.numbered import numbered
from gluonize.read.names.file_names import FileNames
from gluonize.rules import gluon


@dataclass(frozen=True)
class Aliases:
    """Other names for modules of Gluon. apart: whether names of the author's are spelled apart in what is new. triton: the version of the
    output, "" for that of the vocabulary. through_language: whether operations are written through `triton.language` in it.
    """

    of: Mapping[str, str]
    apart: bool = False
    triton: str = ""
    through_language: bool = False

    @cached_property
    def words(self) -> VersionWords:
        return VersionWords(self.triton)

    def imported(self, lines: Iterable[Import]) -> list[Import]:
        """The imports of an output under the names that it has for them."""
        lines = [replace(line, bound=self.of[line.binds]) if self._changes(line) else line for line in lines]
        more = {TRITON_LANGUAGE} - {*lines} if self.through_language else set()
        return [self._moved(line) for line in [*more, *lines]]

    def _moved(self, line: Import) -> Import:
        """An import from where the version has the module."""
        path = gluon.path_in(self.triton, line.path) if self.triton and line.of_gluon else line.path
        if path == line.path:
            return line
        module, _, name = path.rpartition(".")
        return Import(module, name, line.binds)

    def _changes(self, line: Import) -> bool:
        return line.of_gluon and line.binds in self.of

    def within(self, statement: Any) -> Any:
        """A statement of the output; of a function that is no Gluon its decorators alone ask Gluon's modules for something."""
        if not self.of and not self.apart and not self.words.differs:
            return statement
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and not _is_gluon(statement):
            return statement.with_changes(decorators=[mapped(d, self._name) for d in statement.decorators])
        return mapped(statement, self._name)

    def _name(self, node: cst.CSTNode) -> cst.CSTNode | None:
        asked = node.func if isinstance(node, cst.Call) else node
        if isinstance(asked, cst.Attribute) and isinstance(asked.value, OwnName):
            return as_written(node)
        named = self.words.said(node, self._name) if self.words.differs else None
        at = named or node
        if isinstance(at, cst.Attribute) and isinstance(at.value, cst.Name) and at.value.value in self.of:
            return at.with_changes(value=at.value.with_changes(value=self.of[at.value.value]))
        return named if isinstance(node, cst.Attribute) or named is not None else as_written(node)


def aliases(
    lines: Iterable[Import], new: Sequence[Statement], file: FileNames, triton: str, dropped: Collection[str] = ()
) -> Aliases:
    """Names for those modules of Gluon whose names are taken: bound at the file's top level, or parameters of a kernel.

    new: what the output adds to its file. triton: the version that it is for. dropped: names that the file no longer imports.
    """
    parameters = {
        p.name.value for s in new if _is_gluon(s) for p in walk(s.params) if isinstance(p, cst.Param)  # type: ignore[attr-defined]
    }
    imported = {name for name, what in file.imported.items() if not is_of_gluon(what) and name not in dropped}
    bound = parameters.union(imported, file.defined, *map(_bound_by, new))
    taken = {line.binds for line in lines if line.of_gluon} & bound
    apart = any(isinstance(n, OwnName) for s in new for n in walk(s))
    through = _asks_language(new, gluon.in_words_of(triton))
    if not taken:
        return Aliases({}, apart, triton, through)
    every = bound | file.mentioned | {n.value for s in new for n in walk(s) if isinstance(n, cst.Name)}
    return Aliases({name: numbered(f"{name}_", every.__contains__) for name in sorted(taken)}, apart, triton, through)


def _asks_language(new: Sequence[Statement], words: Mapping[tuple[str, str], str]) -> bool:
    """Whether an operation of what is new is written through `triton.language`."""
    through = {key for key, word in words.items() if word.startswith(LANGUAGE)}
    return bool(through) and any(
        key in through for s in new for n in walk(s) if isinstance(n, cst.Attribute) for key in keys(n)
    )


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
