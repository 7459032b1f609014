"""What the rest of the package tells of a host function's tensors: who calls it with what, and what autograd saved for it.

`def outer(x): g = cumsum(x, dtype=torch.float32); return inner(x, g)` says that `g` of `inner` is fp32.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gluonize.read.evaluate.program import Program
from gluonize.read.launches.derive.host.model import Model, Saved
from gluonize.read.launches.derive.host.run import History, HostRun, HostState, Passed
from gluonize.read.launches.derive.host.sites import Site, find_applications, find_calls, method_beside

# Calls of one function that are looked at, and callers of callers.
_CALLS, _LEVELS = 4, 2


def history_of(program: Program, site: Site, pointers: frozenset[str], levels: int = _LEVELS) -> History:
    """What is known before the outermost function around a launch (or call) is entered."""
    if not site.functions:
        return History()
    function = site.functions[0]
    first = next((arg.arg for arg in function.args.args), "")
    history = _of_forward(program, site, pointers, levels) if function.name == "backward" else History()
    calls: Iterator[Site] = iter(())
    if first == "ctx" and function.name == "forward":
        calls = find_applications(program, site)
    elif first not in ("self", "cls", "ctx"):
        calls = find_calls(program, site.outer, function)
    passed: dict[str, Passed] = {}
    for call in itertools.islice(calls, _CALLS if levels else 0):
        before = history_of(program, call, pointers, levels - 1)
        for name, found in _told_by(program, call, site, pointers, before).items():
            passed[name] = passed[name].joined(found) if name in passed else found
    return replace(history, passed=passed)


def _told_by(program: Program, call: Site, site: Site, pointers: frozenset[str], before: History) -> dict[str, Passed]:
    """What a call tells: as it is where all that may be missing is, and of what it lacks then the types that it has otherwise."""
    run = HostRun(program, call, pointers, history=before, may_lack=True)
    told = dict(_types(run.run(), call, site))
    if any(found.absent for found in told.values()):
        full = _types(HostRun(program, call, pointers, history=before).run(), call, site)
        told = {
            n: replace(full[n], present=False, absent=True) if f.absent and n in full else f for n, f in told.items()
        }
    return told


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


def _of_forward(program: Program, site: Site, pointers: frozenset[str], levels: int) -> History:
    """For the `backward` of an autograd function: what its `forward` saves, and what it keeps as attributes of `ctx`."""
    forward = method_beside(site, "forward")
    if forward is None or not forward.body:
        return History()
    saves = [
        node.args
        for node in ast.walk(forward)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "save_for_backward"
        if not any(isinstance(arg, ast.Starred) for arg in node.args)
    ]
    given = {f"{number}.{place}": arg for number, args in enumerate(saves) for place, arg in enumerate(args)}
    end = Site(
        forward.body[-1], site.path, (forward,), site.scopes[:1], site.outer, forward.body, tuple(given), given
    )  # fmt: skip
    before = history_of(program, end, pointers, levels)
    state = HostRun(program, end, pointers, history=before).run()
    if state is None:
        return History()
    tensors = tuple(
        tuple(state.arguments[f"{number}.{place}"] for place in range(len(args))) for number, args in enumerate(saves)
    )
    return History(saved=Saved(tensors) if tensors else None, attributes=state.attributes)
