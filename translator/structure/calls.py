"""A call of a function for NVIDIA GPUs, with its counterpart's text.

tma.async_load(a, [m, k], bar, slot)   ->   tdm.async_load(a, [m, k], slot, mbarrier=bar)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import libcst as cst

from rules.nvidia import Counterpart
from translator.rewrite.gluon_function import expression
from translator.rewrite.tree_walk import mapped
from translator.structure.layouts import NoCounterpart

_HOLE = re.compile(r"\{(\w+)\}")
_MARK = "hole_of_"


def arguments_by_name(function: Any, call: cst.Call) -> dict[str, cst.BaseExpression]:
    """The arguments that a call gives, by the parameters of the function. Raises: NoCounterpart for `*` and `**`."""
    if any(argument.star for argument in call.args):
        raise NoCounterpart("it takes its arguments from a sequence", "give each of them")
    plain = getattr(function, "fn", function)
    names = [name for name in inspect.signature(plain).parameters if not name.startswith("_")]
    given = dict(zip(names, (a.value for a in call.args if a.keyword is None)))
    return given | {a.keyword.value: a.value for a in call.args if a.keyword is not None}


def counterpart_call(
    row: Counterpart, given: Mapping[str, cst.BaseExpression], constants: Mapping[str, Any], more: Mapping[str, str]
) -> cst.BaseExpression:
    """The counterpart's expression. constants: values of arguments that are known; more: texts of holes that are no arguments.

    Raises: NoCounterpart for an argument that is not what the counterpart can do.
    """
    for name, value in row.only:
        if name in given and (name not in constants or constants[name] != value):
            raise NoCounterpart(f"its counterpart has no `{name}`")
    holes = dict.fromkeys(_HOLE.findall(row.text))
    missing = [name for name in holes if name not in given and name not in more]
    tree = expression(_HOLE.sub(lambda found: f"{_MARK}{found.group(1)}", row.text))

    def filled(node: cst.CSTNode) -> cst.CSTNode | None:
        if isinstance(node, cst.Call):
            kept = [a for a in node.args if _hole(a.value) not in missing]
            if len(kept) < len(node.args):
                kept = [*kept[:-1], kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)] if kept else kept
                return filled(node.with_changes(args=kept)) or inside_of(node.with_changes(args=kept))
        name = _hole(node)
        if name is None:
            return None
        return given[name] if name in given else expression(more[name])

    def inside_of(node: cst.CSTNode) -> cst.CSTNode:
        return mapped(node, lambda inner: None if inner is node else filled(inner))

    return mapped(tree, filled)


def _hole(node: cst.CSTNode) -> str | None:
    if isinstance(node, cst.Name) and node.value.startswith(_MARK):
        return node.value.removeprefix(_MARK)
    return None
