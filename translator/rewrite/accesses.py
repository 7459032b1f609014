"""Loads, stores and atomics by pointer: as buffer operations where the address is a base and 32-bit offsets."""

from __future__ import annotations

import ast

from translator.rewrite.emission import HomeOf
from translator.facts.function import FunctionFacts
from translator.frontend.trace import TensorFact
from translator.rewrite import copied_stores, fp8, pointers
from translator.rewrite.addresses import is_pointer
from translator.rewrite.call_text import append_argument, with_function
from translator.facts.callees import Callee, is_absent, is_empty, is_none, is_plain_access, is_zero
from translator.rewrite.costs import loaded_again, small_load
from translator.rewrite.run_time import as_tensor, may_be_fixed
from translator.rewrite.splice import expression, operand
from translator.rewrite.statements import statement_of
from translator.rewrite.unit import Record
from translator.ttgir.elements import bits_of
from translator.ttgir.layouts import Layout

# Integers of one sign that Gluon's buffer atomics take as those of the other, where the bits are the same.
_OTHER_SIGN = {("atomic_add", f"int{bits}"): f"uint{bits}" for bits in (32, 64)} | {
    (f"atomic_{name}", f"uint{bits}"): f"int{bits}" for name in ("and", "or", "xor", "xchg") for bits in (32, 64)
}


def access_layout(
    facts: FunctionFacts, home_of: HomeOf, node: ast.Call, pointer: ast.expr, op_names: tuple[str, ...]
) -> Layout:
    """The layout of a memory access: Triton's for this access, else the pointer's own."""
    fact = facts.tensor(pointer)
    for name in op_names:
        for op in facts.placed(node, name):
            for ty in op.types:
                if ty.shape == fact.shape:
                    return ty.layout
    return home_of(pointer)


def emit_load(rw, node: ast.Call, callee: Callee, given, want):
    pointer = given["pointer"]
    exists = rw.guards[node].text(rw.facts, rw.emit) if node in rw.guards else ""
    if rw.facts.tensor(pointer) is None:
        return _with_mask(rw, node, callee, given, {}, exists)
    want = want or rw.home(node)
    if small_load(rw.facts, rw.cheap, node) and want != rw.home(node) and not loaded_again(rw.facts, node, want):
        return rw.convert(emit_load(rw, node, callee, given, rw.home(node)), want)
    access = None
    if is_plain_access(rw.facts, node, given):
        access = pointers.access_of(rw, pointer, want)
    fact = rw.facts.tensor(node)
    rest = {k: v for k, v in given.items() if k in ("mask", "other")}
    if access is None:
        children = {pointer: rw.emit(pointer, want)}
        children.update({a: rw.operand_in(a, fact, want) for a in rest.values()})
        return _with_mask(rw, node, callee, given, children, exists)
    rw.record.reaches(access.root)
    module = rw.record.amd(rw.facts.kernel.buffer_module)
    arguments = [access.base, access.offsets]
    mask = rest.get("mask")
    if mask is None or is_absent(rw.facts, mask):
        arguments += [f"mask={exists}"] if exists else []
    else:
        text = as_tensor(rw.facts, mask, rw.operand_in(mask, fact, want))
        arguments.append(f"mask={both_masks(text, exists)}")
        other = rest.get("other")
        # Masked-off lanes of a buffer load read as zero, so `other=0` needs no argument.
        if other is not None and not is_none(rw.facts, other):
            if is_zero(rw.facts, other):
                rw.record.explain("buffer loads need no other=0: what their mask excludes reads as zero")
            else:
                arguments.append(f"other={rw.operand_in(other, fact, want)}")
    if "cache_modifier" in given and not is_empty(rw.facts, given["cache_modifier"]):
        arguments.append(f"cache={rw.emit(given['cache_modifier'])}")
    return f"{module}.buffer_load({', '.join(arguments)})"


def _with_mask(rw, node: ast.Call, callee: Callee, given, children: dict[ast.AST, str], exists: str) -> str:
    """A load by pointers; exists: what has to be true beside its mask, "" for nothing."""
    mask = given.get("mask")
    if not exists:
        return with_function(rw, node, callee, children)
    if mask is None:
        return append_argument(with_function(rw, node, callee, children), f"mask={exists}, other=0")
    if is_absent(rw.facts, mask):
        none = {given["other"]: "0"} if "other" in given and is_none(rw.facts, given["other"]) else {}
        return with_function(rw, node, callee, children | {mask: exists} | none)
    text = children.get(mask) or rw.emit(mask)
    return with_function(rw, node, callee, children | {mask: both_masks(text, exists)})


def both_masks(mask: str, condition: str) -> str:
    """`mask & condition`; condition: a comparison, "" for none."""
    if not condition:
        return mask
    node = expression(mask)
    bare = isinstance(node, (ast.Name, ast.Call, ast.Subscript, ast.Attribute)) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd)
    )
    return f"{mask if bare else operand(mask)} & ({condition})"


def emit_store(rw, node: ast.Call, callee: Callee, given, want):
    pointer, value = given["pointer"], given["value"]
    fact = rw.facts.tensor(pointer)
    if fact is None:
        return with_function(rw, node, callee, {})
    as_buffer = is_plain_access(rw.facts, node, given)
    rows = copied_stores.rows_of(rw, value, fact) if as_buffer else None
    layout = rows or access_layout(rw.facts, rw.home, node, pointer, ("tt.store",))
    rw.names.suggest(layout, _store_role(rw.facts, pointer), 2, node.lineno)
    access = pointers.access_of(rw, pointer, layout) if as_buffer else None
    if access is None:
        children = {a: rw.operand_in(a, fact, layout) for k, a in given.items() if k in ("pointer", "value", "mask")}
        return with_function(rw, node, callee, children)
    rw.record.reaches(access.root)
    module = rw.record.amd(rw.facts.kernel.buffer_module)
    text = rw.operand_in(value, fact, layout) if rows is None else rw.emit(value)
    own = rw.facts.fact(value)
    plain = not rw.facts.path and not rw.rebound(access.root)
    pointee = f"{access.root if plain else operand(access.base)}.dtype.element_ty"
    if may_be_fixed(rw.facts, value):
        text = f"gl.to_tensor({text}).to({pointee})"
    elif own.dtype != fact.pointee:
        text = _cast(rw.facts, rw.record, text, own, fact, pointee)
    mask = given.get("mask")
    mask_text = ""
    if mask is not None and not is_absent(rw.facts, mask):
        mask_text = as_tensor(rw.facts, mask, rw.operand_in(mask, fact, layout))
    if rows is not None:
        return copied_stores.store_text(rw.facts, rw.names, rw.record, text, access, mask_text, fact)
    arguments = [text, access.base, access.offsets]
    if mask_text:
        arguments.append(f"mask={mask_text}")
    if "cache_modifier" in given and not is_empty(rw.facts, given["cache_modifier"]):
        arguments.append(f"cache={rw.emit(given['cache_modifier'])}")
    return f"{module}.buffer_store({', '.join(arguments)})"


def _cast(facts: FunctionFacts, record: Record, text: str, own: object, fact: TensorFact, pointee: str) -> str:
    """`text`, a value with the fact `own`, as the type that `fact` points to; what moves to another layout moves in fewer bits."""
    node = expression(text)
    narrows = isinstance(own, TensorFact) and bits_of(own.dtype) > bits_of(fact.pointee)
    if narrows and isinstance(node, ast.Call) and ast.unparse(node.func) == "gl.convert_layout":
        moved = ast.get_source_segment(text, node.args[0])
        start = text.index(moved, text.index("("))
        cast = fp8.cast(facts, record, moved, own.dtype, fact.pointee, pointee)
        return f"{text[:start]}{cast}{text[start + len(moved) :]}"
    return fp8.cast(facts, record, text, getattr(own, "dtype", ""), fact.pointee, pointee)


def _store_role(facts: FunctionFacts, pointer: ast.expr) -> str:
    names = [n.id for n in ast.walk(pointer) if isinstance(n, ast.Name) and is_pointer(facts, n)]
    stem = names[0].lower() if names else "out"
    for suffix in ("_ptrs", "_ptr", "_pointers", "_pointer"):
        stem = stem.removesuffix(suffix)
    return f"{stem}_store"


def emit_atomic(rw, node: ast.Call, callee: Callee, given, want):
    pointer = given["pointer"]
    fact = rw.facts.tensor(pointer)
    if fact is None:
        return with_function(rw, node, callee, {})
    names = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "amdg.buffer_atomic_rmw")
    layout = access_layout(rw.facts, rw.home, node, pointer, names)
    rw.names.suggest(layout, _store_role(rw.facts, pointer).replace("_store", "_atomic"), 3, node.lineno)
    children = {
        a: rw.operand_in(a, fact, layout) for k, a in given.items() if k in ("pointer", "val", "value", "cmp", "mask")
    }
    text = _buffer_atomic(rw, node, callee, given, fact, layout) or with_function(rw, node, callee, children)
    return text if want is None or want == layout else rw.convert(text, want)


def _buffer_atomic(rw, node: ast.Call, callee: Callee, given, fact: TensorFact, layout: Layout) -> str | None:
    """The atomic as a buffer operation, where Triton's own passes make it one; they leave out extremes that are signed or fp64.

    Of the latter the instruction is another function, so it is used only where it is asked for.
    """
    instruction = (
        rw.unit.decided.choices.asks("fp64-extremes", "instruction") and rw.facts.kernel.target.buffer_fp64_extremes
    )
    extremes = ("int32", "int64", "fp64") if instruction else ("int32", "int64")
    extreme = callee.name in ("atomic_max", "atomic_min") and fact.pointee in extremes
    if not extreme and not any((*rw.facts.path, v) in rw.facts.kernel.buffer_atomics for v in rw.facts.visits(node)):
        return None
    types = callee.row.buffer_types
    bf16 = callee.name == "atomic_add" and fact.pointee == "bf16"  # cdna4's function alone takes it, on any target
    if fact.pointee not in types and not bf16:
        return None
    access = pointers.access_of(rw, given["pointer"], layout)
    if access is None:
        return None
    rw.record.reaches(access.root)
    if extreme and fact.pointee == "fp64":
        rw.record.explain(
            f"{callee.name} of fp64 is the instruction's own: a NaN in memory gives way to a number, -0.0 and 0.0 are equal"
        )
    module = rw.record.amd("cdna4" if bf16 else "cdna3")
    base, value = access.base, rw.operand_in(given["val"], fact, layout)
    own = rw.facts.fact(given["val"])
    fixed = may_be_fixed(rw.facts, given["val"])
    if fixed:
        value = f"gl.to_tensor({value})"
    if fixed or own.dtype != fact.pointee:
        value = _cast(rw.facts, rw.record, value, own, fact, f"{operand(base)}.dtype.element_ty")
    other_sign = _OTHER_SIGN.get((callee.name, fact.pointee), "")
    if other_sign:
        base = f"{operand(base)}.to(gl.pointer_type(gl.{other_sign}), bitcast=True)"
        value = f"{operand(value)}.to(gl.{other_sign}, bitcast=True)"
    arguments = [base, access.offsets, value]
    if "mask" in given and not is_absent(rw.facts, given["mask"]):
        mask = given["mask"]
        arguments.append(f"mask={as_tensor(rw.facts, mask, rw.operand_in(mask, fact, layout))}")
    arguments += [
        f"{k}={rw.emit(given[k])}" for k in ("sem", "scope") if k in given and not is_none(rw.facts, given[k])
    ]
    text = f"{module}.buffer_{callee.name}({', '.join(arguments)})"
    statement = statement_of(rw.facts.tree, node)
    unused = isinstance(statement, ast.Expr) and statement.value is node
    return f"{text}.to(gl.{fact.pointee}, bitcast=True)" if other_sign and not unused else text
