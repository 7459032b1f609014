"""A call of a function for NVIDIA GPUs, with its counterpart's text.

tma.async_load(a, [m, k], bar, slot)   ->   tdm.async_load(a, [m, k], slot, mbarrier=bar)
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import libcst as cst

from rules.nvidia import Counterpart
from rules.template import template
from translator.rewrite.gluon_function import code, expression
from translator.structure.layout_counterparts import NoCounterpart


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
    texts: dict[str, str | None] = {name: code(node) for name, node in given.items()} | dict(more)
    row_text = template(row.text)
    return expression(row_text.filled({name: texts.get(name) for name in row_text.holes}, lambda text: f"({text})"))
