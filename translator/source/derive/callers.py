"""What the rest of the package tells of a host function's tensors: who calls it with what, and what autograd saved for it.

`def outer(x): g = cumsum(x, dtype=torch.float32); return inner(x, g)` says that `g` of `inner` is fp32.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from typing import Any

from translator.source.derive.host_model import Model
from translator.source.derive.host_run import History, HostRun, HostState, Passed
from translator.source.derive.sites import Site, find_calls, method_beside
from translator.source.program import Program

# Calls of one function that are looked at, and callers of callers.
_CALLS, _LEVELS = 4, 2


def history_of(program: Program, site: Site, pointers: frozenset[str], levels: int = _LEVELS) -> History:
    """What is known before the outermost function around a launch (or call) is entered."""
    if not site.functions:
        return History()
    saved = _saved(program, site, pointers)
    passed: dict[str, Passed] = {}
    is_method = next((arg.arg for arg in site.functions[0].args.args), "") in ("self", "cls", "ctx")
    if levels and not is_method:
        for call in itertools.islice(find_calls(program, site.outer, site.functions[0]), _CALLS):
            history = history_of(program, call, pointers, levels - 1)
            state = HostRun(program, call, pointers, history=history, may_lack=True).run()
            for name, found in _types(state, call, site).items():
                passed[name] = passed[name].joined(found) if name in passed else found
    return History(passed, saved)


def _types(state: HostState | None, call: Site, site: Site) -> Mapping[str, Passed]:
    """The types of the tensors that a call passes, and which of them have the same."""
    out: dict[str, Passed] = {}
    first: dict[int, str] = {}
    given = state.arguments if state is not None else {}
    for name in (n for n in call.names if n in given):  # in the order of the parameters: `like` names one before
        value = given[name]
        if value is None:
            out[name] = Passed(absent=True)
        if not isinstance(value, Model) or not value.is_tensor:
            continue
        element, why = value.shown()
        if element:
            out[name] = Passed(element, f"{call.place(site.path)} passes it so; {why}", present=not value.optional)
        else:
            leader = first.setdefault(id(value.root()), name)
            out[name] = Passed(like=leader if leader != name else "", present=not value.optional)
    return out


def _saved(program: Program, site: Site, pointers: frozenset[str]) -> tuple[Any, ...] | None:
    """For the `backward` of an autograd function: what its `forward` saves."""
    forward = method_beside(site, "forward")
    if site.functions[0].name != "backward" or forward is None:
        return None
    for node in ast.walk(forward):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "save_for_backward":
            names = tuple(str(number) for number in range(len(node.args)))
            if any(isinstance(arg, ast.Starred) for arg in node.args):
                return None
            save = Site(
                node,
                site.path,
                (forward,),
                site.scopes[:1],
                site.outer,
                forward.body,
                names,
                dict(zip(names, node.args)),
            )
            state = HostRun(program, save, pointers).run()
            return tuple(state.arguments[name] for name in names) if state is not None else None
    return None
