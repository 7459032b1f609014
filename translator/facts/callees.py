"""What a call calls, the arguments that it gives, and what these say at compile time."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
from dataclasses import dataclass, replace
from typing import Any

from gluonize.facts.function import FunctionFacts
from gluonize.rules.rows import LANGUAGE, Row
from gluonize.trace.front.trace import ConstFact, Frame, MethodFact, OpaqueFact, TensorFact, Trace, node_key
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.triton_api.language import tensor_descriptor_base

# Kinds of calls that may be made again, or not at all: nothing with effects and no memory.
PURE_KINDS = ("elementwise", "creator", "same", "shape")
# Functions that do what methods of a descriptor do, which is their first argument.
_OF_DESCRIPTORS = {"load_tensor_descriptor": "load", "store_tensor_descriptor": "store"}
_TRITON_MODULES = ("triton.language", "triton.experimental.gluon.language")


@dataclass(frozen=True)
class Callee:
    """What a call calls: `row` for a builtin, `function` otherwise; `owner` is the object of a method call."""

    function: Any
    name: str
    row: Row | None
    owner: ast.expr | None

    @property
    def is_tritons(self) -> bool:
        """Whether it is defined in Triton's language or in Gluon's, not by the author or a library."""
        return (getattr(self.function, "__module__", "") or "").startswith(_TRITON_MODULES)


def is_descriptor(fact: Any) -> bool:
    return isinstance(fact, OpaqueFact) and fact.type_name.startswith("tensor_descriptor")


def callee_of(facts: FunctionFacts, node: ast.Call) -> Callee | None:
    if node not in facts.known_callees:
        facts.known_callees[node] = _callee_of(facts, node)
    return facts.known_callees[node]


def _callee_of(facts: FunctionFacts, node: ast.Call) -> Callee | None:
    fact = facts.fact(node.func)
    owner = None
    if isinstance(fact, MethodFact) and is_descriptor(fact.owner):
        return Callee(fact.function, node.func.attr, Row(node.func.attr, "load", cost="heavy"), node.func.value)
    if isinstance(fact, MethodFact):
        function, name = fact.function, fact.name
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        name = node.func.attr if owner is not None else name  # wrapped methods carry their wrapper's name
    elif isinstance(fact, ConstFact):
        function = fact.value
        name = getattr(function, "__name__", "")
    else:
        return None
    module = getattr(function, "__module__", "") or ""
    is_triton = module.startswith(_TRITON_MODULES)
    if ".extra." in module and not module.endswith("extra.hip.utils"):
        return Callee(function, name, Row(name, "elementwise", cost="heavy"), owner)
    if is_triton and name in _OF_DESCRIPTORS:
        method, described = _OF_DESCRIPTORS[name], bind(node, Callee(function, name, None, None)).get("desc")
        return Callee(getattr(tensor_descriptor_base, method), method, Row(method, "load", cost="heavy"), described)
    # A method that the author wrote, of an aggregate, is none of Triton's, whatever its name is.
    of_triton = is_triton or isinstance(fact, MethodFact) and not isinstance(function, JITFunction)
    known = f"{LANGUAGE}.{name}" if of_triton else f"{module}.{name}"
    row = facts.kernel.rules.row(known, facts.kernel.target)
    if row is None and name in ("min", "max", "builtin_min", "builtin_max") and not isinstance(function, JITFunction):
        row = Row(name, "elementwise")
    callee = Callee(function, name, row, owner)
    if row is not None and row.takes and not bind(node, callee).keys() <= {*row.takes}:
        return replace(callee, row=None)
    return callee


def is_helper(facts: FunctionFacts, node: ast.Call) -> bool:
    callee = callee_of(facts, node)
    return (
        callee is not None
        and isinstance(callee.function, JITFunction)
        and (callee.row is None or callee.row.kind == "helper")
    )


def callee_frame(facts: FunctionFacts, node: ast.Call) -> tuple[Frame | None, int | None]:
    """(frame, call visit) of the helper specialization that this call reached.

    A call in an unrolled loop may reach several specializations, by different compile-time arguments; one text has to
    serve them all, so their frames are joined: facts of the first one, reachability of all.
    """
    frames = _reached(facts, facts.visits(node))
    first = frames[0][1] if frames else None
    if len(frames) < 2:
        return frames[0] if frames else (None, None)
    return facts.kernel.trace.joined([frame for frame, _ in frames]), first


def _reached(facts: FunctionFacts, visits: list[int]) -> list[tuple[Frame, int]]:
    """The specializations that a call reached, each with its first visit."""
    frames: dict[str, tuple[Frame, int]] = {}
    for ident in visits:
        frame = facts.kernel.trace.by_name.get(facts.frame.calls.get(ident, ""))
        if frame is not None:
            frames.setdefault(frame.name, (frame, ident))
    return list(frames.values())


def function_of(fact: Any) -> JITFunction | None:
    """The function that a value is, None for any other value."""
    return fact.value if isinstance(fact, ConstFact) and isinstance(fact.value, JITFunction) else None


def needs_texts(facts: FunctionFacts, node: ast.Call) -> bool:
    """Whether a call reaches several specializations of a helper in which a tensor has different shapes, or a call calls different
    functions, from one to the next or in one of them, in it or in what it calls: no one text serves them."""
    idents = [v.ident for v in facts.frame.visits.get(node_key(node), [])]
    if (around := getattr(node, "iteration", None)) is not None:
        idents = [v.ident for v in facts.iteration_visits(node, around)]
    frames = _reached(facts, idents)
    if len(frames) < 2:
        return False
    first, *rest = (_shapes_in(facts.kernel.trace, frame) for frame, _ in frames)
    if any(len(seen) > 1 for seen in first.values()):
        return True
    return any(first[place] != other[place] for other in rest for place in first.keys() & other.keys())


def _shapes_in(trace: Trace, frame: Frame) -> dict[tuple, set[Any]]:
    """The shapes of the tensors at each place of a specialization and of those that it calls, and the functions.

    Without dimensions of one element: a layout does for [2, 1] and [1, 2] alike, and library functions that sort have dozens of these.
    """
    out: dict[tuple, set[Any]] = {}
    todo, seen = [frame], {frame.name}
    while todo:
        current = todo.pop()
        for place, visits in current.visits.items():
            found = {tuple(n for n in v.fact.shape if n > 1) for v in visits if isinstance(v.fact, TensorFact)}
            found |= {function for v in visits if (function := function_of(v.fact)) is not None}
            out.setdefault((id(current.fn), place), set()).update(found)
        for name in current.calls.values():
            if name in trace.by_name and name not in seen:
                seen.add(name)
                todo.append(trace.by_name[name])
    return out


@functools.lru_cache(maxsize=1024)
def _builtin_parameters(function: Any) -> tuple[str, ...]:
    """The names of a builtin's parameters that may be given by position; none where it does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    # What follows `*args` is given by keyword only.
    positional = itertools.takewhile(lambda p: p.kind is not p.VAR_POSITIONAL, parameters)
    return tuple(p.name for p in positional if not p.name.startswith("_"))


def bound(facts: FunctionFacts, node: ast.Call) -> dict[str, ast.expr]:
    """The arguments of a call of something known, by parameter."""
    return bind(node, callee_of(facts, node))


def bind(node: ast.Call, callee: Callee) -> dict[str, ast.expr]:
    """Parameter name -> argument node, for the arguments that the call gives."""
    function = callee.function
    names = tuple(function.arg_names) if isinstance(function, JITFunction) else _builtin_parameters(function)
    given: dict[str, ast.expr] = {}
    positional = list(node.args)
    if callee.owner is not None and (not positional or positional[0] is not callee.owner):
        positional = [callee.owner, *positional]  # else a function is called, and not a method
        if names[:1] != ("self",) and hasattr(function, "__self__"):
            names = ("self", *names)
    for i, argument in enumerate(positional):
        given[names[i] if i < len(names) else f"*{i}"] = argument
    for keyword in node.keywords:
        if keyword.arg is not None:
            given[keyword.arg] = keyword.value
    return given


def cast_of(facts: FunctionFacts, node: ast.AST) -> ast.expr | None:
    """What `x.to(dtype)` or `tl.cast(x, dtype)` casts; None for anything else."""
    callee = callee_of(facts, node) if isinstance(node, ast.Call) else None
    if callee is None or callee.name not in ("to", "cast"):
        return None
    return bind(node, callee).get("input") or callee.owner


def is_dot(facts: FunctionFacts, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    callee = callee_of(facts, node)
    return callee is not None and callee.row is not None and callee.row.kind == "dot"


def kind_of(facts: FunctionFacts, node: ast.Call) -> str:
    """The kind of the row of what is called; empty where it has none."""
    callee = callee_of(facts, node)
    return callee.row.kind if callee is not None and callee.row is not None else ""


def transposed_by(facts: FunctionFacts, node: ast.expr) -> ast.expr | None:
    """The matrix under `x.T`, `tl.trans(x)` or `tl.permute(x, (1, 0))`; None for anything else."""
    inner = None
    if isinstance(node, ast.Attribute) and node.attr == "T":
        inner = node.value
    elif isinstance(node, ast.Call):
        callee = callee_of(facts, node)
        given = bind(node, callee) if callee is not None and callee.row is not None else {}
        if given and callee.name in ("trans", "permute"):
            inner = next(iter(given.values()))
    fact = facts.tensor(inner) if inner is not None else None
    if fact is None or fact.rank != 2 or (isinstance(node, ast.Call) and facts.tensor(node).shape != fact.shape[::-1]):
        return None
    return inner


def element_type_of(facts: FunctionFacts, node: ast.AST) -> ast.Name | None:
    """The tensor of numbers whose element type `x.type.element_ty` is, a variable; None for anything else."""
    inner = node.value if isinstance(node, ast.Attribute) and node.attr in ("element_ty", "scalar") else None
    tensor = inner.value if isinstance(inner, ast.Attribute) and inner.attr == "type" else None
    fact = facts.tensor(tensor) if isinstance(tensor, ast.Name) and tensor in facts.webs.of_use else None
    return None if fact is None or fact.is_pointer else tensor


def is_none(facts: FunctionFacts, node) -> bool:
    fact = facts.settled(node)
    return isinstance(fact, ConstFact) and fact.value is None


def is_given(facts: FunctionFacts, node: ast.expr | None) -> bool:
    """Whether an argument is there, and not None."""
    return node is not None and not is_none(facts, node)


def is_absent(facts: FunctionFacts, node) -> bool:
    """A mask that masks nothing: None, or a compile-time truth."""
    fact = facts.settled(node)
    return isinstance(fact, ConstFact) and (fact.value is None or bool(fact.value))


def is_zero(facts: FunctionFacts, node) -> bool:
    """Whether `node` is 0, and in a helper also for other callers: what the kernel is given is asserted there."""
    fact = facts.settled(node)
    if facts.path and isinstance(node, ast.Name) and node.id in {a.arg for a in facts.tree.args.args}:
        return False
    value = fact.value if isinstance(fact, ConstFact) else None
    return isinstance(value, (int, float, bool)) and value == 0 and str(value)[0] != "-"


def is_empty(facts: FunctionFacts, node) -> bool:
    fact = facts.settled(node)
    return isinstance(fact, ConstFact) and not fact.value


def is_plain_access(facts: FunctionFacts, given) -> bool:
    """Whether nothing about the access needs a pointer operation."""
    fact = facts.fact(given["pointer"])
    if not isinstance(fact, TensorFact) or fact.pointee in ("int1",) or fact.pointee.startswith("pointer"):
        return False
    mask = facts.fact(given["mask"]) if "mask" in given else None
    if isinstance(mask, ConstFact) and mask.value is not None and not mask.value:
        return False
    volatile = given.get("volatile")
    if volatile is not None and not is_empty(facts, volatile):
        return False
    return True


def first_tensor(facts: FunctionFacts, given: dict[str, ast.expr]) -> ast.expr | None:
    for argument in given.values():
        if facts.tensor(argument) is not None:
            return argument
        if isinstance(argument, (ast.Tuple, ast.List)):
            for e in argument.elts:
                if facts.tensor(e) is not None:
                    return e
    return None


def is_true(facts: FunctionFacts, node) -> bool:
    fact = facts.settled(node) if node is not None else None
    return isinstance(fact, ConstFact) and bool(fact.value)
