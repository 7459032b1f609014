"""Calls: which row of `rules/builtins.py` a call falls under, and the Gluon text for it."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import triton.language as tl
from triton.experimental.gluon import language as gl
from triton.runtime.jit import ConstexprFunction, JITFunction

from rules.builtins import BY_NAME, Row
from translator.frontend.trace import ConstFact, MethodFact, TensorFact, TupleFact
from translator.layout.model import DotOperand, Layout, Slice
from translator.rewrite import descriptors, dots, helpers, inline_asm, pointers, scaled_dots, shape_calls, tuples
from translator.rewrite.splice import operand
from translator.rewrite.unit import refuse

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

_TRITON_MODULES = ("triton.language", "triton.experimental.gluon.language")


@dataclass(frozen=True)
class Callee:
    """What a call calls: `row` for a builtin, `function` otherwise; `owner` is the object of a method call."""

    function: Any
    name: str
    row: Row | None
    owner: ast.expr | None


def callee_of(rw: "FunctionRewriter", node: ast.Call) -> Callee | None:
    fact = rw.fact(node.func)
    owner = None
    if isinstance(fact, MethodFact) and descriptors.is_descriptor(fact.owner):
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
    row = BY_NAME.get(name) if is_triton or isinstance(fact, MethodFact) else None
    if row is None and name in ("min", "max", "builtin_min", "builtin_max") and not isinstance(function, JITFunction):
        row = Row(name, "elementwise")
    if isinstance(function, JITFunction) and row is not None and not is_triton and not isinstance(fact, MethodFact):
        row = None
    return Callee(function, name, row, owner)


def is_helper(rw: "FunctionRewriter", node: ast.Call) -> bool:
    callee = callee_of(rw, node)
    return (
        callee is not None
        and isinstance(callee.function, JITFunction)
        and (callee.row is None or callee.row.kind == "helper")
    )


def bind(rw: "FunctionRewriter", node: ast.Call, callee: Callee) -> dict[str, ast.expr]:
    """Parameter name -> argument node, for the arguments that the call gives."""
    function = callee.function
    if isinstance(function, JITFunction):
        names = list(function.arg_names)
    else:
        try:
            names = []
            for parameter in inspect.signature(function).parameters.values():
                if parameter.kind is parameter.VAR_POSITIONAL:
                    break  # what follows is given by keyword only
                if not parameter.name.startswith("_"):
                    names.append(parameter.name)
        except (TypeError, ValueError):
            names = []
    given: dict[str, ast.expr] = {}
    positional = list(node.args)
    if callee.owner is not None:
        positional = [callee.owner, *positional]
        if names[:1] != ["self"] and hasattr(function, "__self__"):
            names = ["self", *names]
    for i, argument in enumerate(positional):
        given[names[i] if i < len(names) else f"*{i}"] = argument
    for keyword in node.keywords:
        if keyword.arg is not None:
            given[keyword.arg] = keyword.value
    return given


# Cost and homes -----------------------------------------------------------------------------------------------------


def cheap(rw: "FunctionRewriter", node: ast.Call) -> bool:
    if node in rw.staged:  # reading LDS again in another layout is what LDS is for
        return True
    callee = callee_of(rw, node)
    if callee is None or callee.row is None or callee.row.cost != "cheap":
        return False
    if callee.row.kind == "same":
        return True
    arguments = [*node.args, *(k.value for k in node.keywords)]
    if callee.owner is not None:
        arguments.append(callee.owner)
    return all(rw.cheap(a) for a in arguments)


def home(rw: "FunctionRewriter", node: ast.Call) -> Layout | None:
    callee = callee_of(rw, node)
    fact = rw.tensor(node)
    if callee is None or fact is None:
        return None
    kind = callee.row.kind if callee.row else "helper"
    given = bind(rw, node, callee)
    tensors = [a for a in given.values() if rw.tensor(a) is not None]
    if kind in ("elementwise", "scan", "load", "atomic"):
        for argument in tensors:
            if rw.tensor(argument).rank == fact.rank:
                return rw.home(argument)
    if kind == "creator" and callee.name == "zeros_like" and tensors:
        return rw.home(tensors[0])
    if kind == "reduce" and tensors:
        axis = shape_calls.axis_of(rw, given, rw.tensor(tensors[0]).rank)
        parent = shape_calls.reduce_operand_layout(rw, node, tensors[0], axis)
        return parent if fact.rank == parent.rank else Slice(axis, parent)
    if kind == "shape":
        return shape_calls.home(rw, node, callee, given)
    if kind == "gather" and "index" in given:
        return rw.home(given["index"])
    return None


def tuple_home(rw: "FunctionRewriter", node: ast.Call, fact: TupleFact) -> tuple:
    callee = callee_of(rw, node)
    if callee is not None and callee.row is not None:
        kind = callee.row.kind
        given = bind(rw, node, callee)
        tensors = [a for a in given.values() if rw.tensor(a) is not None]
        if kind == "shape" and callee.name == "split" and tensors:
            got = shape_calls.split_home(rw, node, tensors[0])
            return (got, got)
        if kind == "reduce":
            return shape_calls.multi_reduce_home(rw, node, callee, given, fact)
        if kind == "scan" and shape_calls.operand_fact(rw, shape_calls.operands_of(given)[0]) is not None:
            got = shape_calls.scan_layout(rw, node, shape_calls.operands_of(given)[0])
            return tuple(got if isinstance(f, TensorFact) and f.shape else None for f in fact.items)
        if kind == "elementwise" and tensors:
            return tuple(rw.home(tensors[0]) if isinstance(f, TensorFact) and f.shape else None for f in fact.items)
        if kind == "shape":
            first = shape_calls.first_tensor(rw, given)
            got = rw.home(first) if first is not None else None
            return tuple(got if isinstance(f, TensorFact) and f.shape else None for f in fact.items)
    if is_helper(rw, node):
        return helpers.return_homes(rw, node, callee, fact)
    return tuple(rw.default_layout(f.shape) if isinstance(f, TensorFact) and f.shape else None for f in fact.items)


def role_of(rw: "FunctionRewriter", value: ast.expr, name: str) -> tuple[str, int] | None:
    """A role for the layout of `name = value`: `a = tl.load(...)` gives `a_load`."""
    if isinstance(value, ast.Call):
        if value in rw.staged:
            return f"{name}_operand", 1
        callee = callee_of(rw, value)
        if callee is not None and callee.row is not None:
            if callee.row.kind == "load":
                return f"{name}_load", 1
            if callee.row.kind == "dot":
                return None
        if callee is not None and callee.owner is not None and isinstance(callee.owner, ast.Call):
            return role_of(rw, callee.owner, name)
    return None


# Emission -----------------------------------------------------------------------------------------------------------


def function_text(rw: "FunctionRewriter", node: ast.Call, callee: Callee) -> str:
    """The Gluon spelling of the called function."""
    if callee.row is not None and callee.row.gluon and callee.owner is None:
        return callee.row.gluon
    return rw.emit(node.func)


def emit_statement_call(rw: "FunctionRewriter", node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return inline_asm.statement(rw, node) or emit_call(rw, node, None)
    return rw.emit(node)


def emit_iterator(rw: "FunctionRewriter", node: ast.expr) -> str:
    """`tl.range(a, b, num_stages=3)` -> `range(a, b)`: Gluon's loops take no schedule, it is written out instead."""
    if not isinstance(node, ast.Call):
        return rw.emit(node)
    fact = rw.fact(node.func)
    if isinstance(fact, ConstFact) and fact.value is tl.range:
        unroll = [k for k in node.keywords if k.arg == "loop_unroll_factor"]
        start = [k for k in node.keywords if k.arg in ("arg1", "arg2", "step")]
        arguments = [rw.emit(a) for a in node.args] + [rw.emit(k.value) for k in start]
        if unroll:
            rw.record.imports.add("import triton.language as tl")
            return f"tl.range({', '.join(arguments)}, loop_unroll_factor={rw.emit(unroll[0].value)})"
        return f"range({', '.join(arguments)})"
    return emit_call(rw, node, None)


def emit_call(rw: "FunctionRewriter", node: ast.Call, want: Any) -> str:
    if node in rw.staged:
        return rw.staged[node].text(rw, want or rw.home(node))
    callee = callee_of(rw, node)
    if callee is None:
        return generic(rw, node, {})
    if callee.row is None or callee.row.kind == "helper":
        if isinstance(callee.function, JITFunction):
            return helpers.emit_helper_call(rw, node, callee, want)
        if isinstance(callee.function, ConstexprFunction) or rw.fact(node) is not None:
            return generic(rw, node, {})
        return generic(rw, node, {})
    kind = callee.row.kind
    if kind == "refuse":
        raise refuse(rw.frame, node, "builtin-refused", f"`{callee.name}` cannot be translated", callee.row.note)
    given = bind(rw, node, callee)
    if callee.owner is not None and descriptors.is_descriptor(rw.fact(callee.owner)):
        return descriptors.emit_method(rw, node, callee, given, want)
    emitter = _EMITTERS.get(kind, _elementwise)
    return emitter(rw, node, callee, given, want)


def generic(rw: "FunctionRewriter", node: ast.Call, children: dict[ast.AST, str]) -> str:
    """The call with its function and arguments translated in place; `children` overrides arguments."""
    edits = {node.func: rw.emit(node.func)}
    for argument in [*node.args, *(k.value for k in node.keywords)]:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        edits[inner] = children[inner] if inner in children else rw.emit(inner)
    return rw.splice(node, edits)


def _elementwise(rw, node: ast.Call, callee: Callee, given, want):
    fact = rw.tensor(node)
    if callee.name == "inline_asm_elementwise":
        return inline_asm.inline_asm(rw, node, callee, given, want)
    shared, wants = fact, want
    if fact is None:
        shapes = [rw.tensor(a) for a in given.values() if rw.tensor(a) is not None]
        tuple_fact = rw.fact(node)
        if isinstance(tuple_fact, TupleFact) and shapes:
            shared = max(shapes, key=lambda f: f.rank)
            want = want[0] if isinstance(want, tuple) and want[0] is not None else None
            want = want or rw.home(next(a for a in given.values() if rw.tensor(a) is shared))
        elif shapes:  # device_print and the like: any layout will do
            return generic(rw, node, {})
    elif want is None:
        want = rw.home(node)
    children = {a: rw.operand_in(a, shared, want) for a in given.values()}
    text = _with_function(rw, node, callee, children)
    return text if fact is not None else tuples.in_layouts(rw, text, want if isinstance(want, Layout) else None, wants)


def _with_function(rw, node: ast.Call, callee: Callee, children: dict[ast.AST, str]) -> str:
    if callee.owner is not None:
        owner = operand(children.get(callee.owner) or rw.emit(callee.owner))
        name = node.func.attr
        if owner == rw.source.of(callee.owner):
            edits: dict[ast.AST, str] = {}
        else:
            start = rw.source.span(callee.owner)
            between = rw.source.text[start[1] : rw.source.span(node.func)[1]]
            edits = {node.func: f"{owner}.{name}" if "#" not in between else f"{owner}{between}"}
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            edits[argument] = children.get(argument) or rw.emit(argument)
        return rw.splice(node, edits)
    edits = {node.func: function_text(rw, node, callee)}
    for argument in [*node.args, *(k.value for k in node.keywords)]:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        edits[inner] = children.get(inner) or _items(rw, inner, children) or rw.emit(inner)
    return rw.splice(node, edits)


def _items(rw, node: ast.expr, children: dict[ast.AST, str]) -> str | None:
    """A written-out tuple of which elements are in `children`."""
    if not isinstance(node, (ast.Tuple, ast.List)) or not any(e in children for e in node.elts):
        return None
    return rw.splice(node, {e: children.get(e) or rw.emit(e) for e in node.elts})


def _same(rw, node, callee, given, want):
    if callee.name == "debug_barrier":
        return "gl.barrier()"
    return _with_function(rw, node, callee, {})


def _creator(rw, node: ast.Call, callee: Callee, given, want):
    fact = rw.tensor(node)
    if fact is None:
        return _with_function(rw, node, callee, {})
    want = want or rw.home(node)
    layout = rw.names.spell(want)
    if callee.name == "zeros_like":
        like = given["input"]
        return f"gl.zeros_like({rw.emit(like, want)})"
    text = _with_function(rw, node, callee, {})
    inner = ast.parse(text, mode="eval").body
    assert isinstance(inner, ast.Call), f"bug in gluonize: {text}"
    if callee.name == "zeros" and "dtype" not in given:
        text = _append_argument(text, "dtype=gl.float32")
    return _append_argument(text, f"layout={layout}")


def _append_argument(call: str, argument: str) -> str:
    """Add one argument before the closing parenthesis, after a trailing comma if there is one."""
    body = call.rstrip()
    assert body.endswith(")"), f"bug in gluonize: {call}"
    inner = body[:-1].rstrip()
    if "\n" in inner:
        last = inner.splitlines()[-1]
        if "#" in last:  # a comment ends the last argument's line
            indent = last[: len(last) - len(last.lstrip())]
            return f"{body[:-1].rstrip()}\n{indent}{argument})"
    separator = " " if inner.endswith(",") else ", " if not inner.endswith("(") else ""
    return f"{inner}{separator}{argument})"


def access_layout(rw, node: ast.Call, pointer: ast.expr, op_names: tuple[str, ...]) -> Layout:
    """The layout of a memory access: Triton's for this access, else the pointer's own."""
    fact = rw.tensor(pointer)
    for name in op_names:
        for op in rw.placed(node, name):
            for ty in op.types:
                if ty.shape == fact.shape:
                    return ty.layout
    return rw.home(pointer)


def _load(rw, node: ast.Call, callee: Callee, given, want):
    pointer = given["pointer"]
    if rw.tensor(pointer) is None:
        return _with_function(rw, node, callee, {})
    want = want or rw.home(node)
    access = None
    if _is_plain_access(rw, node, given):
        access = pointers.access_of(rw, pointer, want)
    fact = rw.tensor(node)
    rest = {k: v for k, v in given.items() if k in ("mask", "other")}
    if access is None:
        children = {pointer: rw.emit(pointer, want)}
        children.update({a: rw.operand_in(a, fact, want) for a in rest.values()})
        return _with_function(rw, node, callee, children)
    rw.record.buffer_pointers.add(access.root)
    module = rw.record.amd(rw.unit.buffer_module)
    arguments = [access.base, access.offsets]
    mask = rest.get("mask")
    if mask is not None and not _is_absent(rw, mask):
        arguments.append(f"mask={rw.operand_in(mask, fact, want)}")
        other = rest.get("other")
        # Masked-off lanes of a buffer load read as zero, so `other=0` needs no argument.
        if other is not None and not _is_none(rw, other) and not _is_zero(rw, other):
            arguments.append(f"other={rw.operand_in(other, fact, want)}")
    if "cache_modifier" in given and not _is_empty(rw, given["cache_modifier"]):
        arguments.append(f"cache={rw.emit(given['cache_modifier'])}")
    return f"{module}.buffer_load({', '.join(arguments)})"


def _is_none(rw, node) -> bool:
    fact = rw.fact(node)
    return isinstance(fact, ConstFact) and fact.value is None


def _is_absent(rw, node) -> bool:
    """A mask that masks nothing: None, or a compile-time truth."""
    fact = rw.fact(node)
    return isinstance(fact, ConstFact) and (fact.value is None or bool(fact.value))


def _is_zero(rw, node) -> bool:
    fact = rw.fact(node)
    value = fact.value if isinstance(fact, ConstFact) else None
    return isinstance(value, (int, float, bool)) and value == 0 and str(value)[0] != "-"


def _is_empty(rw, node) -> bool:
    fact = rw.fact(node)
    return isinstance(fact, ConstFact) and not fact.value


def _is_plain_access(rw, node: ast.Call, given) -> bool:
    """Whether nothing about the access needs a pointer operation."""
    fact = rw.fact(given["pointer"])
    if not isinstance(fact, TensorFact) or fact.pointee in ("int1",) or fact.pointee.startswith("pointer"):
        return False
    mask = rw.fact(given["mask"]) if "mask" in given else None
    if isinstance(mask, ConstFact) and mask.value is not None and not mask.value:
        return False
    volatile = given.get("volatile")
    if volatile is not None and not _is_empty(rw, volatile):
        return False
    return True


def _store(rw, node: ast.Call, callee: Callee, given, want):
    pointer, value = given["pointer"], given["value"]
    fact = rw.tensor(pointer)
    if fact is None:
        return _with_function(rw, node, callee, {})
    layout = access_layout(rw, node, pointer, ("tt.store",))
    rw.names.suggest(layout, _store_role(rw, pointer), 2, node.lineno)
    access = pointers.access_of(rw, pointer, layout) if _is_plain_access(rw, node, given) else None
    if access is None:
        children = {a: rw.operand_in(a, fact, layout) for k, a in given.items() if k in ("pointer", "value", "mask")}
        return _with_function(rw, node, callee, children)
    rw.record.buffer_pointers.add(access.root)
    module = rw.record.amd(rw.unit.buffer_module)
    text = rw.operand_in(value, fact, layout)
    own = rw.fact(value)
    plain = not rw.path and not rw.rebound(access.root)
    pointee = f"{access.root if plain else operand(access.base)}.dtype.element_ty"
    if isinstance(own, ConstFact):
        text = f"gl.to_tensor({text}).to({pointee})"
    elif own.dtype != fact.pointee:
        text = f"{operand(text)}.to({pointee})"
    arguments = [text, access.base, access.offsets]
    mask = given.get("mask")
    if mask is not None and not _is_absent(rw, mask):
        arguments.append(f"mask={rw.operand_in(mask, fact, layout)}")
    if "cache_modifier" in given and not _is_empty(rw, given["cache_modifier"]):
        arguments.append(f"cache={rw.emit(given['cache_modifier'])}")
    return f"{module}.buffer_store({', '.join(arguments)})"


def _store_role(rw, pointer: ast.expr) -> str:
    names = [n.id for n in ast.walk(pointer) if isinstance(n, ast.Name) and _is_pointer(rw, n)]
    stem = names[0].lower() if names else "out"
    for suffix in ("_ptrs", "_ptr", "_pointers", "_pointer"):
        stem = stem.removesuffix(suffix)
    return f"{stem}_store"


def _is_pointer(rw, node) -> bool:
    fact = rw.fact(node)
    return isinstance(fact, TensorFact) and fact.is_pointer


def _atomic(rw, node: ast.Call, callee: Callee, given, want):
    pointer = given["pointer"]
    fact = rw.tensor(pointer)
    if fact is None:
        return _with_function(rw, node, callee, {})
    names = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "amdg.buffer_atomic_rmw")
    layout = access_layout(rw, node, pointer, names)
    rw.names.suggest(layout, _store_role(rw, pointer).replace("_store", "_atomic"), 3, node.lineno)
    children = {
        a: rw.operand_in(a, fact, layout) for k, a in given.items() if k in ("pointer", "val", "value", "cmp", "mask")
    }
    text = _buffer_atomic(rw, node, callee, given, fact, layout) or _with_function(rw, node, callee, children)
    return text if want is None or want == layout else rw.convert(text, want)


# Operations of buffer atomics and the element types that Gluon takes for them (reference of Triton 3.9.0); int32 and
# int64 additions go through the unsigned type of the same width, which adds the same bits.
_BUFFER_ATOMICS = {
    "atomic_add": ("fp16", "fp32", "fp64", "uint32", "uint64", "int32", "int64"),
    "atomic_max": ("int32", "int64", "uint32", "uint64", "fp64"),
    "atomic_min": ("int32", "int64", "uint32", "uint64", "fp64"),
    "atomic_and": ("int32", "int64"),
    "atomic_or": ("int32", "int64"),
    "atomic_xor": ("int32", "int64"),
    "atomic_xchg": ("int32", "int64"),
}


def _buffer_atomic(rw, node: ast.Call, callee: Callee, given, fact: TensorFact, layout: Layout) -> str | None:
    """The atomic as a buffer operation, where Triton's own passes make it one."""
    if not any((*rw.path, v) in rw.unit.buffer_atomics for v in rw.visits(node)):
        return None
    types = _BUFFER_ATOMICS.get(callee.name, ())
    bf16 = callee.name == "atomic_add" and fact.pointee == "bf16" and rw.unit.target.family == "cdna4"
    if fact.pointee not in types and not bf16:
        return None
    access = pointers.access_of(rw, given["pointer"], layout)
    if access is None:
        return None
    rw.record.buffer_pointers.add(access.root)
    module = rw.record.amd("cdna4" if bf16 else "cdna3")
    base, value = access.base, rw.operand_in(given["val"], fact, layout)
    own = rw.fact(given["val"])
    if isinstance(own, ConstFact):
        value = f"gl.to_tensor({value})"
    if not isinstance(own, TensorFact) or own.dtype != fact.pointee:
        value = f"{operand(value)}.to({operand(base)}.dtype.element_ty)"
    if callee.name == "atomic_add" and fact.pointee in ("int32", "int64"):
        base = f"{operand(base)}.to(gl.pointer_type(gl.u{fact.pointee}), bitcast=True)"
        value = f"{operand(value)}.to(gl.u{fact.pointee}, bitcast=True)"
    arguments = [base, access.offsets, value]
    if "mask" in given and not _is_absent(rw, given["mask"]):
        arguments.append(f"mask={rw.operand_in(given['mask'], fact, layout)}")
    arguments += [f"{k}={rw.emit(given[k])}" for k in ("sem", "scope") if k in given and not _is_none(rw, given[k])]
    return f"{module}.buffer_{callee.name}({', '.join(arguments)})"


def _gather(rw, node, callee, given, want):
    source, index = given["src"], given["index"]
    want = want or rw.home(node)
    placed = rw.placed(node, "tt.gather")
    from_layout = placed[0].operands[0].layout if placed and placed[0].operands else rw.home(source)
    return _with_function(rw, node, callee, {source: rw.emit(source, from_layout), index: rw.emit(index, want)})


def _histogram(rw, node, callee, given, want):
    want = want or rw.home(node)
    data = given["input"]
    layout = rw.home(data)
    children = {data: rw.emit(data, layout)}
    if "mask" in given and not _is_none(rw, given["mask"]):
        children[given["mask"]] = rw.operand_in(given["mask"], rw.tensor(data), layout)
    bins = rw.emit(given["num_bins"])
    arguments = [children[data], bins]
    if given.get("mask") in children:
        arguments.append(f"mask={children[given['mask']]}")
    return f"gl.histogram({', '.join(arguments)}, layout={rw.names.spell(want)})"


def emit_attribute(rw: "FunctionRewriter", node: ast.Attribute, want: Any) -> str:
    """`x.T`, and fields of namedtuples and aggregates that hold tensors."""
    base = rw.tensor(node.value)
    if node.attr == "T" and base is not None:
        return shape_calls.permuted(rw, node, node.value, (1, 0), want, lambda text: f"{operand(text)}.T")
    text = rw.splice(node, {node.value: rw.emit(node.value)})
    homes = rw.home(node.value)
    fact = rw.fact(node.value)
    if isinstance(fact, TupleFact) and fact.fields and isinstance(homes, tuple) and node.attr in fact.fields:
        own = homes[fact.fields.index(node.attr)]
        if want is not None and own != want:
            return rw.convert(text, want)
    return text


def fused_dot(rw: "FunctionRewriter", node: ast.AST, want: Layout | None) -> str | None:
    """`acc + tl.dot(a, b)` as one matrix operation with `acc` as accumulator."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return None
    for dot, other in ((node.right, node.left), (node.left, node.right)):
        if dots.can_accumulate(rw, dot, other, rw.tensor(node)):
            return dots.emit_dot(rw, dot, want, accumulator=other)
    return None


def accumulated_dot(rw: "FunctionRewriter", s: ast.AugAssign, variant: str, layout: Layout) -> str | None:
    """`acc += tl.dot(a, b)` as one matrix operation."""
    if isinstance(s.op, ast.Add) and dots.can_accumulate(rw, s.value, s.target, rw.assigned_fact(s)):
        return dots.emit_dot(rw, s.value, layout, accumulator_text=variant)
    return None


def _dot(rw, node, callee, given, want):
    return dots.emit_dot(rw, node, want)


_EMITTERS = {
    "elementwise": _elementwise,
    "same": _same,
    "creator": _creator,
    "load": _load,
    "store": _store,
    "atomic": _atomic,
    "reduce": shape_calls.emit_reduce,
    "scan": shape_calls.emit_scan,
    "shape": shape_calls.emit_shape,
    "gather": _gather,
    "histogram": _histogram,
    "dot": _dot,
    "dot_scaled": scaled_dots.emit_dot_scaled,
    "descriptor": descriptors.emit_make,
}

__all__ = ["Callee", "DotOperand", "bind", "callee_of", "cheap", "emit_call", "gl", "home"]
