"""Which arguments of a kernel are pointers, and which of them point to integers, from how the kernel uses them."""

from __future__ import annotations

import ast
from collections.abc import Callable

# The argument of each that is an address; `make_*` have it first or as `base`.
_ADDRESS_CALLS = frozenset(
    {
        "load",
        "store",
        "atomic_add",
        "atomic_max",
        "atomic_min",
        "atomic_and",
        "atomic_or",
        "atomic_xor",
        "atomic_xchg",
        "atomic_cas",
    }
    | {"make_block_ptr", "make_tensor_descriptor", "advance", "prefetch"}
)
_DESCRIPTOR_METHODS = frozenset({"load", "store", "gather", "scatter", "atomic_add", "atomic_min", "atomic_max"})
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


def integer_pointers(node: ast.FunctionDef, pointers: frozenset[str]) -> frozenset[str]:
    """Pointers whose loaded values take part in computing an address or a loop bound: they must point to integers."""
    loaded: dict[str, str] = {}
    aliases: dict[str, str] = {}
    for statement in ast.walk(node):
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            name = statement.targets[0].id
            for call in ast.walk(statement.value):
                if (
                    isinstance(call, ast.Call)
                    and _callee(call) == "load"
                    and call.args
                    and (base := _base(call.args[0]))
                ):
                    loaded[name] = base
            if base := _base(statement.value):
                aliases.setdefault(name, base)
    used: set[str] = set()
    addresses = set(pointers)
    for call in _calls(node):
        if _callee(call) in ("load", "store") and call.args:
            used |= _offset_names(call.args[0])
            addresses.add(_base(call.args[0]))
        elif _callee(call) == "range" or _callee(call) in ("make_block_ptr", "advance"):
            used |= {n.id for arg in call.args for n in ast.walk(arg) if isinstance(n, ast.Name)}
    for statement in ast.walk(node):
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and statement.targets[0].id in addresses | used
        ):
            used |= _offset_names(statement.value)
        elif (
            isinstance(statement, ast.AugAssign)
            and isinstance(statement.target, ast.Name)
            and statement.target.id in addresses
        ):
            used |= {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
    out = set()
    for name in used & set(loaded):
        base = loaded[name]
        for _ in range(10):
            if base in pointers or base not in aliases:
                break
            base = aliases[base]
        out.add(base)
    return frozenset(out & pointers)


def _calls(node: ast.AST) -> list[ast.Call]:
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def _callee(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _addresses(call: ast.Call, helper: Resolve, seen: tuple[str, ...]) -> list[ast.expr]:
    name = _callee(call)
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and name in _DESCRIPTOR_METHODS:
        if call.func.value.id not in ("tl", "triton", "language", "libdevice"):
            return [call.func.value]
    if name in _ADDRESS_CALLS:
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


def _offset_names(address: ast.expr) -> set[str]:
    """Names in every term of an address but its leftmost one."""
    names: set[str] = set()
    while isinstance(address, ast.BinOp) and isinstance(address.op, (ast.Add, ast.Sub)):
        names |= {n.id for n in ast.walk(address.right) if isinstance(n, ast.Name)}
        address = address.left
    if isinstance(address, ast.BinOp):
        names |= {n.id for n in ast.walk(address) if isinstance(n, ast.Name)}
    return names
