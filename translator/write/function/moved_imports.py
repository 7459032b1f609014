"""The author's imports of Triton in an output: those that hold as they are, those whose names have moved, and those of a fork.

from triton.language import libdevice                  ->    from triton.language.extra import libdevice
import triton.tools.experimental_descriptor            ->    (gone: no release has it any more, and nothing asks for it)
from acme_triton.experimental import gluon                   where the file's Triton is acme_triton
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from gluonize.gluon.imports import Import
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.names.file_names import FileNames
from gluonize.read.names.renamed import resolved
from gluonize.rules.renamed import renamed


@dataclass(frozen=True)
class MovedImports:
    """dropped: names, or dotted modules, whose imports go. added: what stands for them. notes: imports that cannot hold."""

    dropped: frozenset[str] = frozenset()
    added: tuple[Import, ...] = ()
    notes: tuple[str, ...] = ()


def moved_imports(tree: ast.Module, read: Collection[str], kernels: Iterable[Any], path: str) -> MovedImports:
    """What becomes of the imports at a file's top level that this Triton has not, or has for another target.

    read: names that the output reads. kernels: the functions whose globals say what a name was read as.
    """
    dropped, added, notes, globals_of = set(), [], [], [fn.__globals__ for fn in kernels]
    bound = {alias.asname or alias.name for node, alias in _of_triton(tree) if isinstance(node, ast.Import)}
    for node, alias in _of_triton(tree):
        name = alias.asname or alias.name.partition(".")[0]
        dotted = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        row = renamed(dotted)
        today = row.applied(dotted) if row is not None else None
        missing = resolved(dotted) is None
        if not missing and not (row is not None and row.of_target and _read_as(globals_of, name, today or "")):
            continue
        if isinstance(node, ast.Import) and not alias.asname:
            dropped.add(dotted)
            added += [Import("triton")] if "triton" not in bound else []
        elif name not in read:
            dropped.add(name)
        elif today:
            home, _, last = today.rpartition(".")
            dropped.add(name)
            added.append(Import(home, last, name))
        else:
            instead = f"; {row.instead}" if row is not None else ""
            notes.append(f"{path}:{node.lineno}: this Triton has no {dotted}, which the file still imports{instead}")
    return MovedImports(frozenset(dropped), tuple(added), tuple(notes))


def of_package(line: Import, package: str) -> Import:
    """An import of Triton's from a fork of it; package: "" for Triton itself."""
    top, _, rest = line.module.partition(".")
    if not package or top != "triton":
        return line
    return replace(
        line, module=f"{package}.{rest}" if rest else package, bound=line.bound or ("" if line.name else "triton")
    )


def fork_of(names: FileNames, kernels: Iterable[LoadedKernel]) -> str:
    """The fork that a file's Triton is, "" for Triton itself."""
    own = any(what.partition(":")[0].partition(".")[0] == "triton" for what in names.imported.values())
    return "" if own else next((loaded.program.fork for loaded in kernels if loaded.program is not None), "")


def is_imported(line: Import, names: FileNames, dropped: Collection[str], kernels: Iterable[LoadedKernel]) -> bool:
    """Whether a file imports something already, under whatever module hands it on."""
    imported = names.imported.get(line.binds)
    if imported == line.meaning:
        return True
    if imported is None or line.binds in dropped:
        return False
    held = (loaded.fn.__globals__.get(line.binds) for loaded in kernels)
    return any(isinstance(value, ModuleType) and binds(line.meaning, value.__name__) for value in held)


def binds(imported: str | None, module: str) -> bool:
    """Whether an import (`pkg.module` or `pkg:module`) binds the module of this name."""
    return imported is not None and imported.replace(":", ".") == module


def _of_triton(tree: ast.Module) -> Iterator[tuple[ast.Import | ast.ImportFrom, ast.alias]]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == "triton":
            yield from ((node, alias) for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Import):
            yield from ((node, alias) for alias in node.names if alias.name.partition(".")[0] == "triton")


def _read_as(globals_of: list[dict[str, Any]], name: str, dotted: str) -> bool:
    """Whether a kernel was read with what has moved under this name."""
    found = resolved(dotted)
    return found is not None and any(held.get(name) is found for held in globals_of)


__all__ = ["MovedImports", "binds", "fork_of", "is_imported", "moved_imports", "of_package"]
