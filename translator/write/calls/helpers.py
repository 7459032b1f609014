"""Calls of `@triton.jit` helpers: each is translated for the layouts it is called with.

A helper whose text does not depend on layouts comes out once, unchanged but for names; otherwise one version per
distinct text, the first under the author's name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts, GivenPointers
from gluonize.facts.reading import MAX_CALL_DEPTH
from gluonize.facts.refusals import refuse
from gluonize.facts.syntax import arguments_of
from gluonize.gluon.nodes import Unnamed
from gluonize.gluon.written import Written, call, keyword
from gluonize.gluon.written import name as variable
from gluonize.gluon.written import operand
from gluonize.trace.front.trace import TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses.addresses import is_bare_parameter, is_pointer, root_parameter
from gluonize.write.state import call_text
from gluonize.write.state.relations import Wants
from gluonize.write.state.unit import Unit, Version
from gluonize.write.state.writing import HomeOf, Writing


@dataclass(frozen=True)
class Helpers:
    """What writes the helpers that a function calls.

    lies_anywhere: whether an argument is made in any layout alike; is_one_value: whether because all of it is one value. reader, writer: of another function, where its arguments lie so.
    """

    unit: Unit
    facts: FunctionFacts
    home: HomeOf
    lies_anywhere: Callable[[ast.expr], bool]
    is_one_value: Callable[[ast.expr], bool]
    reader: Callable[..., Any]
    writer: Callable[..., Any]


def _bound(node: ast.Call, callee) -> dict[str, ast.expr]:
    given = callees.bind(node, callee)
    return {k: v for k, v in given.items() if not k.startswith("*")}


def _version(helpers: Helpers, node: ast.Call, callee, want: Any):
    """The rewritten helper for this call and demand; -> (index, argument wants, return wants)."""
    frame, ident = callees.callee_frame(helpers.facts, node)
    if frame is None:
        raise refuse(helpers.facts.frame, node, "helper", f"helper `{callee.name}` was not traced", "bug in gluonize")
    if frame.joined and callees.needs_texts(helpers.facts, node):
        why = "one call stands for all of them, and a text has layouts for one shape"
        help = "call it in a tl.static_range over a plain variable, or write the calls out"
        raise refuse(
            helpers.facts.frame, node, "helper", f"helper `{callee.name}` is called with several shapes here", why, help
        )
    path = (*helpers.facts.path, ident)
    homes, filled = {}, {}
    for name, argument in _bound(node, callee).items():
        if helpers.lies_anywhere(argument):
            filled[name] = helpers.home(argument)
        elif helpers.facts.tensor(argument) is not None or isinstance(helpers.facts.fact(argument), TupleFact):
            homes[name] = helpers.home(argument)
    key = (frame.index, frame.joined, path, want, tuple(sorted(homes.items(), key=lambda kv: kv[0])))
    if key in helpers.unit.versions:
        return helpers.unit.versions[key]
    if (frame.index, path) in helpers.unit.in_progress:
        raise refuse(helpers.facts.frame, node, "recursion", f"helper `{callee.name}` calls itself")
    helpers.unit.in_progress.append((frame.index, path))
    try:
        inner = helpers.writer(frame, path, want, homes)
        inner.facts.pointers = _given_pointers(helpers.facts, node, callee)
        if len(helpers.facts.visits(node)) == 1:  # in an unrolled loop, arguments differ from call to call
            inner.facts.called = helpers.facts, _bound(node, callee)
        version = inner.rewrite()
    finally:
        helpers.unit.in_progress.pop()
    wants = {}
    for web in version.facts.webs.all:
        if web.is_parameter:
            state = version.states.get(web.index)
            if state is not None and state.variants:
                wants[web.name] = state.home if state.home in state.variants else state.variants[0]
            elif web.name in homes or web.name in filled:
                wants[web.name] = inner.layouts.found_home(web) or homes.get(web.name) or filled.get(web.name)
    helpers.unit.versions[key] = (helpers.unit.add_helper(version), wants, version.wants)
    return helpers.unit.versions[key]


def _given_pointers(facts: FunctionFacts, node: ast.Call, callee) -> GivenPointers:
    """Which of the helper's scalar pointer parameters are kernel arguments."""
    given = {name: a for name, a in _bound(node, callee).items() if is_pointer(facts, a) and not facts.fact(a).shape}
    roots = {name: root for name, a in given.items() if (root := root_parameter(facts, a)) is not None}
    return GivenPointers(roots, frozenset(name for name in roots if is_bare_parameter(facts, given[name])))


def return_home(helpers: Helpers, node: ast.Call, callee) -> Layout | None:
    """The layout of the tensor that a helper returns as its live code makes it: an argument's where it returns the argument.

    s = soft_cap(gl.convert_layout(s, l), c, False)      ->      s = soft_cap(s, c, False)
    """
    frame, ident = callees.callee_frame(helpers.facts, node)
    if frame is None or frame.joined or len(helpers.facts.path) >= MAX_CALL_DEPTH:
        return None
    path = (*helpers.facts.path, ident)
    given = {
        name: helpers.home(argument)
        for name, argument in _bound(node, callee).items()
        if helpers.facts.tensor(argument) is not None or isinstance(helpers.facts.fact(argument), TupleFact)
    }
    key = ("home", frame.index, path, tuple(sorted(given.items(), key=lambda kv: kv[0])))
    if key not in helpers.unit.versions:
        helpers.unit.versions[key] = None  # while it is read: a helper that calls itself has none
        inner = helpers.reader(frame, path, given)
        returned = list(inner.facts.returned)
        tensors = [value for value in returned if value is not None and inner.facts.tensor(value) is not None]
        helpers.unit.versions[key] = inner.home(tensors[0]) if tensors else None
    return helpers.unit.versions[key]


def return_homes(helpers: Helpers, node: ast.Call, callee, fact: TupleFact) -> tuple:
    _, _, wants = _version(helpers, node, callee, None)
    if isinstance(wants, tuple) and len(wants) == len(fact.items):
        return wants
    return tuple(wants if isinstance(f, TensorFact) and f.shape else None for f in fact.items)


def _demanded(want: Any) -> Any:
    """What a call asks its helper for; of a tuple of which it asks nothing, None."""
    return None if isinstance(want, tuple) and all(w is None for w in want) else want


def _argument_wants(helpers: Helpers, node: ast.Call, callee, wants: dict[str, Any]) -> Wants:
    """The tensors that a helper is given, in the layouts in which it has its parameters."""
    facts = helpers.facts
    given = _bound(node, callee).items()
    tensors = {k: a for k, a in given if facts.tensor(a) is not None or isinstance(facts.fact(a), TupleFact)}
    return {argument: wants.get(parameter) for parameter, argument in tensors.items()}


def helper_wants(helpers: Helpers, node: ast.Call, callee, want: Any) -> Wants:
    """In which layouts a call of a helper, wanted in `want`, wants its arguments: the helper is written for that."""
    if helpers.facts.fact(node) is None:
        return {}
    return _argument_wants(helpers, node, callee, _version(helpers, node, callee, _demanded(want))[1])


def emit_helper_call(writing: Writing, helpers: Helpers, node: ast.Call, callee, want: Any) -> Written:
    fact = writing.facts.fact(node)
    if fact is None:
        return call_text.generic(writing, node, {})
    index, wants, returns = _version(helpers, node, callee, _demanded(want))
    writing.record.helpers.append(index)
    name = variable(Unnamed(Version(index)))
    children = writing.texts(_argument_wants(helpers, node, callee, wants))
    if callee.owner is not None:
        owner = children.get(callee.owner) or writing.emit(callee.owner)
        rest = [children.get(a) or writing.emit(a) for a in node.args]
        rest += [keyword(k.arg, children.get(k.value) or writing.emit(k.value)) for k in node.keywords]
        result = call(name, owner, *rest)
    else:
        edits: dict[ast.AST, Written] = {node.func: name}
        for argument in arguments_of(node):
            plain = argument.value if isinstance(argument, ast.Starred) else argument
            edits[plain] = children.get(plain) or writing.emit(plain)
        result = writing.splice(node, edits)
    if isinstance(want, Layout) and isinstance(returns, Layout) and returns != want:
        return writing.convert(operand(result), want)
    return result
