"""Names of the author's in concrete trees, where modules of Gluon have the same (`gluonize.gluon.names`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import libcst as cst
from gluonize.gluon.names import plain, spelled_apart
from gluonize.gluon.trees.walk import mapped

Tree = TypeVar("Tree", bound=cst.CSTNode)


@dataclass(frozen=True)
class OwnName(cst.Name):
    """A name that means what the author means by it, whatever module is called so; in text it is spelled apart."""

    def _codegen_impl(self, state: Any) -> None:
        with self._parenthesize(state):
            state.add_token(spelled_apart(self.value))


def told_apart(tree: Tree, text: str) -> Tree:
    """The concrete tree of `text`, in which names that are spelled apart are the author's."""
    return tree if text.isascii() else mapped(tree, _own)


def _own(node: cst.CSTNode) -> cst.CSTNode | None:
    if not isinstance(node, cst.Name) or (known := plain(node.value)) == node.value:
        return None
    return OwnName(known, node.lpar, node.rpar)


def as_written(node: cst.CSTNode) -> cst.Name | None:
    """The plain name for one of the author's, for a file in which no module is called so."""
    return cst.Name(node.value, node.lpar, node.rpar) if isinstance(node, OwnName) else None


__all__ = ["OwnName", "as_written", "told_apart"]
