"""Gluon's operations and modules as the Triton of a text calls them, where that is otherwise than in the vocabulary (`rules/gluon.py`).

async_copy.commit_group()                       ->    async_copy.close_group()
async_copy.load_shared_relaxed(tile, layout)    ->    tile.load(layout)
gl.amd.cdna4.async_copy.wait_group(0)           ->    gl.amd.copies.wait_group(0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import libcst as cst
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.gluon.trees.function import expression
from gluonize.gluon.trees.walk import dotted, mapped
from gluonize.rules import gluon

LANGUAGE = "tl."  # of operations that are written through `triton.language`
_METHOD = f"{gluon.MEMORY}."
_PATH = f"{gluon.GLUON}.language."
Change = Callable[[cst.CSTNode], cst.CSTNode | None]


@dataclass(frozen=True)
class VersionWords:
    """triton: the version, "" for that of the vocabulary."""

    triton: str = ""

    @cached_property
    def words(self) -> Mapping[tuple[str, str], str]:
        """(module, operation) -> what the version calls it, of those that have another name there."""
        return gluon.in_words_of(self.triton) if self.triton else {}

    @cached_property
    def differs(self) -> bool:
        """Whether it calls anything otherwise."""
        moved = (m.path_in(self.triton) != m.path for m in gluon.MODULES.values()) if self.triton else ()
        return bool(self.words) or any(moved)

    def said(self, node: cst.CSTNode, inside: Change) -> cst.CSTNode | None:
        """A node in its words; None for one that has no others. inside: what to do with what stands in it.

        Raises: TranslationError `triton-version` for an operation that it has not.
        """
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            return self._method_of(node, inside)
        if not isinstance(node, cst.Attribute):
            return None
        word = self._word(node)
        if word is None:
            return self._moved(node)
        if not word:
            message = f"Triton {self.triton} has no `{dotted(node) or node.attr.value}`, which the output needs"
            help = "translate for a newer Triton, or ask for other choices (gluonize explain says what the operation is for)"
            raise TranslationError(Diagnostic("triton-version", message, help=help))
        if word.startswith(LANGUAGE):
            return expression(word)
        return node.with_changes(attr=cst.Name(word), value=mapped(node.value, inside))

    def _word(self, node: cst.Attribute) -> str | None:
        """What it calls an operation or a method, "" where it has none; None where that is its name."""
        return next((self.words[key] for key in keys(node) if key in self.words), None)

    def _method_of(self, call: cst.Call, inside: Change) -> cst.Call | None:
        """The call of an operation as one of a method of its first operand, where it has that."""
        assert isinstance(call.func, cst.Attribute)
        word = self._word(call.func)
        if not word or not word.startswith(_METHOD):
            return None
        place, *others = (mapped(argument, inside) for argument in call.args)
        method = cst.Attribute(place.value, cst.Name(word.removeprefix(_METHOD)))
        return call.with_changes(func=method, args=others)

    def _moved(self, node: cst.Attribute) -> cst.BaseExpression | None:
        """`gl.amd.MODULE` where it has that module."""
        path = dotted(node)
        if not path.startswith("gl.amd."):
            return None
        place = gluon.path_in(self.triton, _PATH + path.removeprefix("gl.")) if self.triton else ""
        return expression("gl." + place.removeprefix(_PATH)) if place not in ("", _PATH + path[3:]) else None


def keys(node: cst.Attribute) -> list[tuple[str, str]]:
    """An attribute as an operation of a module of Gluon's, `gl.amd` and what is in it too, or else as a method of what is asked."""
    module = dotted(node.value).removeprefix("gl.")
    if module.startswith("amd."):
        module = module.rpartition(".")[2]
    homes = (module,) if module in gluon.MODULES else (gluon.MEMORY, gluon.METHOD)
    return [(home, node.attr.value) for home in homes]


__all__ = ["LANGUAGE", "VersionWords", "keys"]
