"""Which arguments of a kernel are pointers, and which of them point to integers, from how the kernel uses them."""

from __future__ import annotations

import ast
from collections.abc import Callable

# The argument of each that is an address; `make_*` have it first or as `base`.
ADDRESS_CALLS = frozenset(
    "load store atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_xchg atomic_cas prefetch".split()
)
POINTER_MAKERS = frozenset({"make_block_ptr", "make_tensor_descriptor", "advance"})
DESCRIPTOR_METHODS = frozenset({"load", "store", "gather", "scatter", "atomic_add", "atomic_min", "atomic_max"})
# Calls whose result has the type of their first operand.
_SAME_TYPE = frozenset(
    {"cast", "sum", "max", "reshape", "broadcast_to", "expand_dims", "multiple_of", "max_contiguous", "cumsum"}
)
Resolve = Callable[[str], "ast.FunctionDef | None"]


def pointer_arguments(node: ast.FunctionDef, helper: Resolve = lambda name: None) -> frozenset[str]:
    """Arguments that reach an address: the leftmost term of what is loaded from, stored to, or passed on to a helper
    that does so. `helper(name)` gives the definition of a jit function that the kernel calls by that name."""
    return _pointers(node, helper, ())


def _pointers(node: ast.FunctionDef, helper: Resolve, seen: tuple[str, ...]) -> frozenset[str]:
    arguments = {arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    bases: set[str] = set()
    for call in _calls(node):
        bases |= {base for address in _addresses(call, helper, seen) if (base := _base(address))}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr == "element_ty" and (base := _base(inner)):
            bases.add(base)
    assignments = [(s.targets[0], s.value) for s in ast.walk(node) if isinstance(s, ast.Assign) and len(s.targets) == 1]
    changed = True
    while changed:
        changed = False
        for target, value in assignments:
            if isinstance(target, ast.Name) and target.id in bases:
                found = _branches(value)
                new = {base for branch in found if (base := _base(branch))} - bases
                changed |= bool(new)
                bases |= new
    return frozenset(bases & arguments)


def integer_pointers(
    node: ast.FunctionDef, pointers: frozenset[str], helper: Resolve = lambda name: None
) -> frozenset[str]:
    """Pointers whose loaded values take part in an address, a loop bound or integer arithmetic: they point to integers."""
    return frozenset(_integers(node, pointers, helper, ())[1] & pointers)


def _integers(
    node: ast.FunctionDef, pointers: frozenset[str], helper: Resolve, seen: tuple[str, ...]
) -> tuple[set[str], set[str]]:
    """The names that must hold integers, and the bases of the addresses that integers are loaded from."""
    seen = (*seen, node.name)
    assigned: list[tuple[str, ast.expr]] = []
    for statement in ast.walk(node):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and isinstance(target, ast.Name):
            if statement.value is not None:
                assigned.append((target.id, statement.value))
    aliases = {name: base for name, value in assigned if (base := _base(value)) and base != name}
    names: set[str] = set()
    loads: set[str] = set()
    todo = _integer_expressions(node, pointers, assigned, helper, seen)
    while todo:
        for part in _terms(todo.pop()):
            if isinstance(part, ast.Name) and part.id not in names:
                names.add(part.id)
                todo += [value for name, value in assigned if name == part.id]
            elif isinstance(part, ast.Call):
                base, steps = _base(part.args[0]), 0
                while base not in pointers and base in aliases and steps < 10:
                    base, steps = aliases[base], steps + 1
                loads.add(base)
    return names, loads


def _integer_expressions(
    node: ast.FunctionDef, pointers: frozenset[str], assigned: list[tuple[str, ast.expr]], helper: Resolve,
    seen: tuple[str, ...],
) -> list[ast.expr]:  # fmt: skip
    """Expressions that must be integers: offsets, loop bounds, operands of `//` and shifts, arguments that are such."""
    addresses = set(pointers)
    out: list[ast.expr] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, (ast.FloorDiv, ast.LShift, ast.RShift)):
            out += [inner.left, inner.right]
        if not isinstance(inner, ast.Call):
            continue
        for address in _addresses(inner, helper, seen):
            addresses.add(_base(address))
            out += _offsets(address)
        if _callee(inner) in ("range", "advance", "make_block_ptr"):
            out += [part for arg in inner.args[1 if _callee(inner) != "range" else 0 :] for part in _items(arg)]
        elif isinstance(inner.func, ast.Name) and inner.func.id not in seen:
            out += _integer_arguments(inner, helper, seen)
    for name, value in assigned:
        out += [value] if name in addresses and not _base(value) else []
        out += _offsets(value) if name in addresses else []
    for statement in ast.walk(node):
        if isinstance(statement, ast.AugAssign) and getattr(statement.target, "id", "") in addresses:
            out.append(statement.value)
    return out


def _integer_arguments(call: ast.Call, helper: Resolve, seen: tuple[str, ...]) -> list[ast.expr]:
    """What a call of a jit function passes for the parameters that must be integers there."""
    definition = helper(call.func.id)  # type: ignore[attr-defined]
    if definition is None:
        return []
    parameters = [arg.arg for arg in definition.args.args]
    inner, _ = _integers(definition, _pointers(definition, helper, seen), helper, seen)
    given = [*zip(parameters, call.args), *((k.arg, k.value) for k in call.keywords)]
    return [value for name, value in given if name in inner]


def _terms(value: ast.expr) -> list[ast.expr]:
    """The names and loads that have an integer expression's type: no conditions, no operands of true divisions."""
    if isinstance(value, ast.Name):
        return [value]
    if isinstance(value, ast.BinOp) and not isinstance(value.op, (ast.Div, ast.Pow)):
        return _terms(value.left) + _terms(value.right)
    if isinstance(value, ast.UnaryOp) and not isinstance(value.op, ast.Not):
        return _terms(value.operand)
    if isinstance(value, ast.IfExp):
        return _terms(value.body) + _terms(value.orelse)
    if isinstance(value, ast.Subscript):
        return _terms(value.value)
    if not isinstance(value, ast.Call):
        return []
    name, operands = _callee(value), value.args
    if isinstance(value.func, ast.Attribute) and getattr(value.func.value, "id", "") not in ("tl", "triton"):
        operands = [value.func.value, *operands]
    if name == "load":
        return [value] if value.args else []
    if name == "to":  # of anything but a load or a name: a conversion, which says nothing of the type before it
        whole = isinstance(operands[0], ast.Name) or (
            isinstance(operands[0], ast.Call) and _callee(operands[0]) == "load"
        )
        return _terms(operands[0]) if whole else []
    kept = {"where": operands[1:], "minimum": operands, "maximum": operands, "min": operands, "cdiv": operands}
    return [term for x in kept.get(name, operands[:1] if name in _SAME_TYPE else []) for term in _terms(x)]


def _items(value: ast.expr) -> list[ast.expr]:
    return list(value.elts) if isinstance(value, (ast.Tuple, ast.List)) else [value]


def _calls(node: ast.AST) -> list[ast.Call]:
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def _callee(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _addresses(call: ast.Call, helper: Resolve, seen: tuple[str, ...]) -> list[ast.expr]:
    name = _callee(call)
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and name in DESCRIPTOR_METHODS:
        if call.func.value.id not in ("tl", "triton", "language", "libdevice"):
            return [call.func.value]
    if name in ADDRESS_CALLS | POINTER_MAKERS:
        keyword = [k.value for k in call.keywords if k.arg in ("base", "pointer", "ptr")]
        return keyword or call.args[:1]
    if isinstance(call.func, ast.Name) and name not in seen and (definition := helper(name)) is not None:
        inner = _pointers(definition, helper, (*seen, name))
        names = [arg.arg for arg in definition.args.args]
        out = [value for position, value in zip(names, call.args) if position in inner]
        return out + [k.value for k in call.keywords if k.arg in inner]
    return []


def _branches(value: ast.expr) -> list[ast.expr]:
    return [*_branches(value.body), *_branches(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def _base(value: ast.expr) -> str:
    """The leftmost name of `p + offsets`, `p.to(...)`, `tl.advance(p, ...)`, `p[...]`; empty if there is none."""
    while True:
        if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
            value = value.left
        elif isinstance(value, ast.Subscript):
            value = value.value
        elif isinstance(value, ast.Attribute):
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            inner = value.func
            if inner.attr in ("to", "cast"):
                value = (
                    value.args[0]
                    if isinstance(inner.value, ast.Name) and inner.value.id == "tl" and value.args
                    else inner.value
                )
            elif inner.attr in (
                "advance",
                "make_block_ptr",
                "make_tensor_descriptor",
                "multiple_of",
                "max_contiguous",
                "broadcast_to",
            ):
                keyword = [k.value for k in value.keywords if k.arg == "base"]
                candidates = keyword or value.args[:1]
                if not candidates:
                    return ""
                value = candidates[0]
            else:
                return ""
        else:
            return value.id if isinstance(value, ast.Name) else ""


def _offsets(address: ast.expr) -> list[ast.expr]:
    """Every term of an address but its leftmost one."""
    out: list[ast.expr] = []
    while isinstance(address, ast.BinOp) and isinstance(address.op, (ast.Add, ast.Sub)):
        out.append(address.right)
        address = address.left
    return out
