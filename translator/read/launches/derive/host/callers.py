"""What the rest of the package tells of a host function's tensors: who calls it with what, and what autograd saved for it.

`def outer(x): g = cumsum(x, dtype=torch.float32); return inner(x, g)` says that `g` of `inner` is fp32.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gluonize.read.evaluate.host_objects import UserClass
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.evaluate.program import Program
from gluonize.read.launches.derive.host.autograd import is_forward, whole_forward
from gluonize.read.launches.derive.host.history import History, Passed
from gluonize.read.launches.derive.host.model import Model, Saved, known_sizes, rests_on_made_up_sizes
from gluonize.read.launches.derive.host.objects import as_call, class_named, maker
from gluonize.read.launches.derive.host.parametrized import parametrized
from gluonize.read.launches.derive.host.run import HostRun, HostState
from gluonize.read.launches.derive.host.sites import (
    Site,
    class_of,
    find_applications,
    find_calls,
    find_own_calls,
    method_beside,
)
from gluonize.read.launches.derive.supposed import other_sizes
from gluonize.read.names.scope import Scope

# Calls of one function that are looked at, callers of callers, and values that further calls pass.
_CALLS, _LEVELS, _OTHERS = 4, 2, 8


def history_of(
    program: Program, site: Site, pointers: frozenset[str], levels: int = _LEVELS, made: UserClass | None = None
) -> History:
    """What is known before the outermost function around a launch (or call) is entered. made: it makes objects of this class."""
    if not site.functions:
        return History()
    function = site.functions[0]
    objects = objects_of(program, site, pointers, levels)
    history = _of_forward(program, site, pointers, levels) if function.name == "backward" else History()
    makes = made is not None
    calls = find_calls(program, site.outer, function, skipped=1) if makes else calls_of(program, site)
    told: list[Mapping[str, Passed]] = [
        {name: Passed(known=True, value=value) for name, value in row.items()}
        for row in parametrized(program, function, site.scopes[0])[0]
    ]
    for call in itertools.islice(calls, _CALLS if levels else 0):
        before = history_of(program, call, pointers, levels - 1)
        for row in ({}, *before.calls):
            told.append(_told_by(program, call, site, pointers, before, row))
    joined = _together(told)
    return replace(history, **{**joined, "passed": {**objects, **history.passed, **joined["passed"]}})


def calls_of(program: Program, site: Site) -> Iterator[Site]:
    """The calls of the outermost function around a launch, or call, as far as they can be told from those of another one."""
    first = next((arg.arg for arg in site.functions[0].args.args), "")
    if is_forward(site):
        return find_applications(program, site)
    if first == "self":
        return find_own_calls(site)
    return iter(()) if first in ("cls", "ctx") else find_calls(program, site.outer, site.functions[0])


def objects_of(program: Program, site: Site, pointers: frozenset[str], levels: int = _LEVELS) -> dict[str, Passed]:
    """The parameters of the outermost function around a launch that are objects of a class of the program, `self` among them."""
    out: dict[str, Passed] = {}
    for number, arg in enumerate(site.functions[0].args.args if site.functions and levels else ()):
        owner = class_of(site) if arg.arg == "self" and not number else None
        if owner is not None:
            kind = UserClass(owner, site.scopes[0])
        else:
            kind = class_named(program, arg.annotation, site.scopes[0])
        if kind is not None and (owner is None or site.functions[0].name != "__init__"):
            out[arg.arg] = _object(program, kind, arg.arg, pointers, levels)
    return out


def _object(program: Program, kind: UserClass, name: str, pointers: frozenset[str], levels: int) -> Passed:
    """An object as what makes it leaves it, for what is passed to that."""
    bare = Passed(known=True, value=Model(name, kind=kind), other=Model(name, kind=kind))
    function = maker(program, kind)
    if function is None or not function.node.args.args:
        return bare
    whole, module = as_call(function, kind.node.name), kind.scope
    while module.kind != "module" and isinstance(module.parent, Scope):
        module = module.parent
    first = whole.args.args[0].arg
    end = Site(
        whole.body[-1], kind.scope.path, (whole,), (function.scope,), module, whole.body, (first,),
        {first: ast.copy_location(ast.Name(first, ast.Load()), whole.body[-1])},
    )  # fmt: skip
    before = history_of(program, end, pointers, levels - 1, kind)
    before = replace(before, passed={**before.passed, first: bare})

    def found() -> Model | None:
        state = HostRun(program, end, pointers, history=before).run()
        return state.arguments[first] if state is not None else None

    value = found()
    with other_sizes():
        other = found()
    return Passed(known=True, value=value, other=other) if value is not None and other is not None else bare


def _together(told: list[Mapping[str, Passed]]) -> dict[str, Any]:
    """The types that all calls tell; the sizes and values of the one that tells most of them, and the values of the others."""
    passed: dict[str, Passed] = {}
    for one in told:
        for name, found in one.items():
            passed[name] = passed[name].joined(found) if name in passed else replace(found, known=False, dims=None)
    known = [{n: p for n, p in one.items() if p.known} for one in told]
    leader = max(known, key=len, default={})
    for name, found in leader.items():
        passed[name] = replace(passed[name], known=True, value=found.value, other=found.other, dims=found.dims)
    values = [
        {n: p.value for n, p in one.items() if p.dims is None and p.other is None} for one in known if one is not leader
    ]
    return {"passed": passed, "calls": tuple(row for row in values if row)[:_OTHERS]}


def _told_by(
    program: Program, call: Site, site: Site, pointers: frozenset[str], before: History, row: Mapping[str, Any]
) -> dict[str, Passed]:
    """What a call tells: as it is where all that may be missing is, and of what it lacks then the types that it has otherwise."""

    def run(lacks: bool) -> HostState | None:
        return HostRun(program, call, pointers, dict(row), history=before, may_lack=lacks).run()

    lacking = run(True)
    told = dict(_types(lacking, call, site))
    if any(found.absent for found in told.values()):
        full = _types(run(False), call, site)
        told = {
            n: replace(full[n], present=False, absent=True) if f.absent and n in full else f for n, f in told.items()
        }
    with other_sizes():
        other = run(True)
    for name, known in _known(lacking, other, call).items():
        told[name] = replace(told.get(name, Passed()), known=True, value=known.value, dims=known.dims)
    return told


def _known(state: HostState | None, other: HostState | None, call: Site) -> dict[str, Passed]:
    """The numbers, flags, texts and dtypes that a call passes, and the sizes of its tensors, as far as the source says them."""
    out: dict[str, Passed] = {}
    if state is None or other is None:
        return out
    for name in (n for n in call.names if n in state.arguments and n in other.arguments):
        value, again = state.arguments[name], other.arguments[name]
        plain = isinstance(value, (bool, int, float, str)) or isinstance(value, HostName) and bool(value.torch_dtype)
        if plain and not rests_on_made_up_sizes(value, again):
            out[name] = Passed(known=True, value=value)
        elif isinstance(value, Model) and (value.held or value.kind is not None) and isinstance(again, Model):
            out[name] = Passed(known=True, value=value, other=again)
        elif isinstance(value, Model) and value.is_tensor and (dims := known_sizes(value, again)) is not None:
            out[name] = Passed(known=True, dims=dims)
    return out


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
    setup = method_beside(site, "setup_context")
    defined, forward = forward, whole_forward(forward, setup)
    saves = [
        node.args
        for node in ast.walk(forward)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "save_for_backward"
        if not any(isinstance(arg, ast.Starred) for arg in node.args)
    ]
    given = {f"{number}.{place}": arg for number, args in enumerate(saves) for place, arg in enumerate(args)}
    last = forward.body[-1].value if isinstance(forward.body[-1], ast.Return) else None
    returned = last.elts if isinstance(last, ast.Tuple) else [] if last is None else [last]
    gradients = [arg.arg for arg in site.functions[0].args.args[1:]]
    given |= {f"d.{name}": value for name, value in zip(gradients, returned)}
    end = Site(
        forward.body[-1], site.path, (forward,), site.scopes[:1], site.outer, forward.body, tuple(given), given
    )  # fmt: skip
    before = history_of(program, replace(end, functions=(defined,)), pointers, levels)

    def kept(state: HostState | None) -> History:
        if state is None:
            return History()
        tensors = tuple(
            tuple(state.arguments[f"{number}.{place}"] for place in range(len(args)))
            for number, args in enumerate(saves)
        )
        return History(saved=Saved(tensors) if tensors else None)

    state = HostRun(program, end, pointers, history=before).run()
    with other_sizes():
        again = HostRun(program, end, pointers, history=before).run()
        other = kept(again)
    passed = _gradients(gradients, state, again)
    context = next((arg.arg for arg in (setup or defined).args.args), "")
    own = next((arg.arg for arg in site.functions[0].args.args), "")
    if state is not None and again is not None and context in state.objects and context in again.objects:
        passed[own] = Passed(known=True, value=state.objects[context], other=again.objects[context])
    return replace(kept(state), passed=passed, other=replace(other, passed=passed))


def _gradients(names: list[str], state: HostState | None, other: HostState | None) -> dict[str, Passed]:
    """What autograd hands `backward`: a gradient has the type and the sizes of what `forward` returned."""
    out: dict[str, Passed] = {}
    for name in names if state is not None and other is not None else ():
        value = state.arguments.get(f"d.{name}")
        if isinstance(value, Model) and value.is_tensor:
            dims = known_sizes(value, other.arguments.get(f"d.{name}"))
            out[name] = Passed(value.told, "what forward returns has it", known=dims is not None, dims=dims)
    return out
