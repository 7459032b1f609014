"""Loads, stores and atomics by pointer: as buffer operations where the address is a base and 32-bit offsets."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from gluonize.facts.callees import Callee, bound, is_absent, is_empty, is_given, is_none, is_plain_access, is_zero
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.read_once import read_once
from gluonize.gluon.layout_names import store_role
from gluonize.gluon.written import Moved, Written, binary, grouped, keyword, literal, method, operand
from gluonize.gluon.written import call as called
from gluonize.rules.gluon import buffer_atomics
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses import copied_stores, pointers
from gluonize.write.accesses.addresses import Addressing, is_pointer
from gluonize.write.accesses.run_time import as_tensor, may_be_fixed
from gluonize.write.costs import loaded_again, small_load
from gluonize.write.products import fp8
from gluonize.write.state import shapes
from gluonize.write.state.call_text import Called, Texts, with_function
from gluonize.write.state.relations import Wants, operands_in
from gluonize.write.state.statements import statement_of
from gluonize.write.state.writing import Asking, HomeOf, Writing

STREAMED = '".cs"'

# Integers of one sign that Gluon's buffer atomics take as those of the other, where the bits are the same.
_OTHER_SIGN = {("atomic_add", f"int{bits}"): f"uint{bits}" for bits in (32, 64)} | {
    (f"atomic_{name}", f"uint{bits}"): f"int{bits}" for name in ("and", "or", "xor", "xchg") for bits in (32, 64)
}


_ATOMIC_OPS = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "amdg.buffer_atomic_rmw")
_ATOMIC_OPERANDS = ("pointer", "val", "value", "cmp", "mask")


def access_layout(
    facts: FunctionFacts, home_of: HomeOf, node: ast.Call, pointer: ast.expr, op_names: tuple[str, ...]
) -> Layout:
    """The layout of a memory access: Triton's for this access, else the pointer's own."""
    return facts.placed_in(node, op_names, facts.tensor(pointer).shape) or home_of(pointer)


def emit_load(writing: Writing, addressing: Addressing, call: Called, want: Layout | None) -> Written:
    facts = writing.facts
    node, callee, given = call.node, call.callee, call.given
    pointer, guard = given["pointer"], addressing.guards.get(node)
    exists = guard.text(facts, writing.emit) if guard is not None else None
    if facts.tensor(pointer) is None:
        return _with_mask(writing, node, callee, given, {}, exists)
    streamed = streams_load(writing, node)
    wanted = want or writing.home(node)
    want = loaded_in(writing, node, wanted)
    if want != wanted:
        return writing.convert(emit_load(writing, addressing, call, want), wanted)
    access = None
    if is_plain_access(facts, given):
        access = pointers.access_of(writing, addressing, pointer, want)
    fact = facts.tensor(node)
    rest = {k: v for k, v in given.items() if k in ("mask", "other")}
    if access is None:
        children = writing.texts(operands_in(facts, [pointer, *rest.values()], fact, want), fact)
        more = (keyword("cache_modifier", STREAMED),) if streamed else ()
        return _with_mask(writing, node, callee, given, children, exists, more)
    access.rest_on_storage(writing.record)
    module = writing.record.amd(facts.kernel.buffer_module)
    arguments = [access.base, access.offsets]
    mask = rest.get("mask")
    if mask is None or is_absent(facts, mask):
        arguments += [keyword("mask", exists)] if exists is not None else []
    else:
        text = as_tensor(facts, mask, writing.operand_in(mask, fact, want))
        arguments.append(keyword("mask", both_masks(text, exists)))
        arguments += other_argument(writing, rest.get("other"), fact, want, as_buffer=True)
    return called(f"{module}.buffer_load", *arguments, *cache_argument(writing, given, streamed))


def other_argument(
    writing: Writing, other: ast.expr | None, fact: TensorFact, layout: Layout, as_buffer: bool
) -> list[Written]:
    """What lanes of a masked load have that its mask excludes. Those of a buffer load read as zero; other accesses leave what was there."""
    facts = writing.facts
    if not is_given(facts, other):
        return []
    if not is_zero(facts, other):
        return [keyword("other", writing.operand_in(other, fact, layout))]
    if not as_buffer:
        return [keyword("other", writing.emit(other))]
    writing.record.explain("buffer loads need no other=0: what their mask excludes reads as zero")
    return []


def cache_argument(
    writing: Writing, given: Mapping[str, ast.expr], streamed: bool, word: str = "cache"
) -> list[Written]:
    """What an access says of caches: the author's word, or that nothing reads it again."""
    modifier = given.get("cache_modifier")
    if modifier is not None and not is_empty(writing.facts, modifier):
        return [keyword(word, writing.emit(modifier))]
    return [keyword(word, STREAMED)] if streamed else []


def loaded_in(writing: Writing, node: ast.Call, want: Layout | None) -> Layout:
    """The layout in which a load is made that is wanted in `want`."""
    home = writing.home(node)
    if want in (None, home) or not small_load(writing.facts, writing.cheap, node):
        return want or home
    return want if loaded_again(writing.facts, node, want) else home


def load_wants(asking: Asking, addressing: Addressing, call: Called, want: Layout | None) -> Wants:
    """In which layouts a load, wanted in `want`, wants its arguments."""
    facts, node, given = asking.facts, call.node, call.given
    pointer = given["pointer"]
    if facts.tensor(pointer) is None:
        return dict.fromkeys(given.values())
    layout, as_buffer = loaded_in(asking, node, want), is_plain_access(facts, given)
    rest = [a for k, a in given.items() if k in ("mask", "other")]
    wants = pointers.pointer_wants(addressing, asking.record, pointer, layout, as_buffer)
    return wants | operands_in(facts, rest, facts.tensor(node), layout)


def streams_load(writing: Writing, node: ast.Call) -> bool:
    """Whether a load is to say that nothing reads it again: one of which that is so, and the source says nothing."""
    if not writing.decided.choices.asks("load-cache", "streamed"):
        return False
    given = bound(writing.facts, node)
    said = {"cache_modifier", "eviction_policy", "volatile"} & given.keys()
    return not said and read_once(writing.facts, node, given["pointer"])


def _with_mask(
    writing: Writing,
    node: ast.Call,
    callee: Callee,
    given,
    children: Texts,
    exists: Written | None,
    more: tuple[Written, ...] = (),
) -> Written:
    """A load by pointers; exists: what has to be true beside its mask, if anything; more: arguments of its own."""
    facts = writing.facts
    mask = given.get("mask")
    if exists is None:
        return with_function(writing, node, callee, children, more)
    if mask is None:
        return with_function(writing, node, callee, children, (keyword("mask", exists), keyword("other", "0"), *more))
    if is_absent(facts, mask):
        none = {given["other"]: literal(0)} if "other" in given and is_none(facts, given["other"]) else {}
        return with_function(writing, node, callee, children | {mask: exists} | none, more)
    text = children.get(mask) or writing.emit(mask)
    return with_function(writing, node, callee, children | {mask: both_masks(text, exists)}, more)


def both_masks(mask: Written, condition: Written | None) -> Written:
    """`mask & condition`; condition: a comparison, None for none."""
    if condition is None:
        return mask
    return binary(mask if mask.form is ast.BitAnd else operand(mask), "&", grouped(condition))


def emit_store(writing: Writing, addressing: Addressing, call: Called, alone: bool) -> Written:
    """alone: outside of loops, in a function whose warps all do the same."""
    facts = writing.facts
    node, callee, given = call.node, call.callee, call.given
    pointer, value = given["pointer"], given["value"]
    fact = facts.tensor(pointer)
    if fact is None:
        return with_function(writing, node, callee, {})
    as_buffer, rows, layout = _stored_in(writing, call, alone)
    writing.names.suggest(layout, _store_role(facts, pointer), 2, node.lineno)
    access = pointers.access_of(writing, addressing, pointer, layout) if as_buffer else None
    if access is None:
        own = [a for k, a in given.items() if k in ("pointer", "value", "mask")]
        children = writing.texts(operands_in(facts, own, fact, layout), fact)
        more = (keyword("cache_modifier", STREAMED),) if _streams(writing, given) else ()
        return with_function(writing, node, callee, children, more)
    access.rest_on_storage(writing.record)
    dimensions = shapes.dimensions(facts, writing.emit, writing.rebound, pointer)
    shapes.tell(writing.names, layout, fact.shape, dimensions)
    module = writing.record.amd(facts.kernel.buffer_module)
    text = writing.operand_in(value, fact, layout) if rows is None else writing.emit(value)
    own = facts.fact(value)
    plain = not facts.path and not writing.rebound(access.root)
    pointee = f"{access.root if plain else operand(access.base)}.dtype.element_ty"
    if may_be_fixed(facts, value):
        text = method(called("gl.to_tensor", text), "to", pointee)
    elif own.dtype != fact.pointee:
        text = _cast(writing, text, own, fact, pointee)
    mask = given.get("mask")
    mask_text = None
    if mask is not None and not is_absent(facts, mask):
        mask_text = as_tensor(facts, mask, writing.operand_in(mask, fact, layout))
    if rows is not None:
        return copied_stores.store_text(writing, text, access, mask_text, fact)
    arguments = [text, access.base, access.offsets]
    if mask_text is not None:
        arguments.append(keyword("mask", mask_text))
    return called(f"{module}.buffer_store", *arguments, *cache_argument(writing, given, _streams(writing, given)))


def _stored_in(writing: Writing, call: Called, alone: bool) -> tuple[bool, Layout | None, Layout]:
    """(whether a store may be a buffer operation, the rows in which copies make it, its layout)."""
    facts, node, given = writing.facts, call.node, call.given
    as_buffer, pointer = is_plain_access(facts, given), given["pointer"]
    rows = copied_stores.rows_of(writing, given["value"], facts.tensor(pointer)) if as_buffer and alone else None
    return as_buffer, rows, rows or access_layout(facts, writing.home, node, pointer, ("tt.store",))


def store_wants(asking: Asking, addressing: Addressing, call: Called, alone: bool) -> Wants:
    """In which layouts a store wants its arguments."""
    facts, given = asking.facts, call.given
    pointer, value = given["pointer"], given["value"]
    fact = facts.tensor(pointer)
    if fact is None:
        return dict.fromkeys(given.values())
    as_buffer, rows, layout = _stored_in(asking, call, alone)
    wants = pointers.pointer_wants(addressing, asking.record, pointer, layout, as_buffer)
    wants |= operands_in(facts, [value, *(a for k, a in given.items() if k == "mask")], fact, layout)
    return wants | {value: None} if rows is not None and wants[pointer] != layout else wants


def _streams(writing: Writing, given) -> bool:
    """Whether a store is to say that nothing reads it again: one of which the source says nothing."""
    return (
        writing.decided.choices.asks("store-cache", "streamed")
        and not {"cache_modifier", "eviction_policy"} & given.keys()
    )


def _cast(writing: Writing, text: Written, own: object, fact: TensorFact, pointee: str) -> Written:
    """`text`, a value with the fact `own`, as the type that `fact` points to; what moves to another layout moves in fewer bits."""
    narrows = isinstance(own, TensorFact) and bits_of(own.dtype) > bits_of(fact.pointee)
    if narrows and isinstance(text, Moved):
        return text.moving(fp8.cast(writing, text.tensor, own.dtype, fact.pointee, pointee))
    return fp8.cast(writing, text, getattr(own, "dtype", ""), fact.pointee, pointee)


def _store_role(facts: FunctionFacts, pointer: ast.expr) -> str:
    names = [n.id for n in ast.walk(pointer) if isinstance(n, ast.Name) and is_pointer(facts, n)]
    return store_role(names[0] if names else "")


def emit_atomic(writing: Writing, addressing: Addressing, call: Called, want: Layout | None) -> Written:
    facts = writing.facts
    node, callee, given = call.node, call.callee, call.given
    pointer = given["pointer"]
    fact = facts.tensor(pointer)
    if fact is None:
        return with_function(writing, node, callee, {})
    layout = access_layout(facts, writing.home, node, pointer, _ATOMIC_OPS)
    writing.names.suggest(layout, _store_role(facts, pointer).replace("_store", "_atomic"), 3, node.lineno)
    text = _buffer_atomic(writing, addressing, call, fact, layout)
    if text is None:
        operands = operands_in(facts, [a for k, a in given.items() if k in _ATOMIC_OPERANDS], fact, layout)
        text = with_function(writing, node, callee, writing.texts(operands, fact))
    return text if want is None or want == layout else writing.convert(text, want)


def atomic_wants(asking: Asking, addressing: Addressing, call: Called) -> Wants:
    """In which layouts an atomic operation wants its arguments."""
    facts, given = asking.facts, call.given
    pointer = given["pointer"]
    fact = facts.tensor(pointer)
    if fact is None:
        return dict.fromkeys(given.values())
    layout = access_layout(facts, asking.home, call.node, pointer, _ATOMIC_OPS)
    as_buffer = _may_be_buffer_atomic(asking, call, fact)
    wants = pointers.pointer_wants(addressing, asking.record, pointer, layout, as_buffer)
    rest = [a for k, a in given.items() if k in _ATOMIC_OPERANDS and a is not pointer]
    return wants | operands_in(facts, rest, fact, layout)


def _may_be_buffer_atomic(writing: Writing, call: Called, fact: TensorFact) -> bool:
    """Whether an atomic is a buffer operation where its pointers allow it: where Triton's own passes make it one; they leave out
    extremes that are signed or fp64. Of the latter the instruction is another function, so it is used only where it is asked for.
    """
    facts, callee = writing.facts, call.callee
    instruction = (
        writing.decided.choices.asks("fp64-extremes", "instruction") and facts.kernel.target.buffer_fp64_extremes
    )
    extremes = ("int32", "int64", "fp64") if instruction else ("int32", "int64")
    extreme = callee.name in ("atomic_max", "atomic_min") and fact.pointee in extremes
    if not extreme and not any((*facts.path, v) in facts.kernel.buffer_atomics for v in facts.visits(call.node)):
        return False
    return fact.pointee in callee.row.buffer_types or _is_bf16_add(callee, fact)


def _is_bf16_add(callee: Callee, fact: TensorFact) -> bool:
    """Whether it is the one that cdna4's function alone takes, on any target."""
    return callee.name == "atomic_add" and fact.pointee == "bf16"


def _buffer_atomic(
    writing: Writing, addressing: Addressing, call: Called, fact: TensorFact, layout: Layout
) -> Written | None:
    """The atomic as a buffer operation; None where it is none."""
    facts = writing.facts
    node, callee, given = call.node, call.callee, call.given
    if not _may_be_buffer_atomic(writing, call, fact):
        return None
    access = pointers.access_of(writing, addressing, given["pointer"], layout)
    if access is None:
        return None
    access.rest_on_storage(writing.record)
    if callee.name in ("atomic_max", "atomic_min") and fact.pointee == "fp64":
        writing.record.explain(
            f"{callee.name} of fp64 is the instruction's own: a NaN in memory gives way to a number, -0.0 and 0.0 are equal"
        )
    module = writing.record.amd(buffer_atomics(_is_bf16_add(callee, fact)))
    base, value = access.base, writing.operand_in(given["val"], fact, layout)
    own = facts.fact(given["val"])
    fixed = may_be_fixed(facts, given["val"])
    if fixed:
        value = called("gl.to_tensor", value)
    if fixed or own.dtype != fact.pointee:
        value = _cast(writing, value, own, fact, f"{operand(base)}.dtype.element_ty")
    other_sign = _OTHER_SIGN.get((callee.name, fact.pointee), "")
    if other_sign:
        base = method(base, "to", f"gl.pointer_type(gl.{other_sign})", "bitcast=True")
        value = method(value, "to", f"gl.{other_sign}", "bitcast=True")
    arguments = [base, access.offsets, value]
    if "mask" in given and not is_absent(facts, given["mask"]):
        mask = given["mask"]
        arguments.append(keyword("mask", as_tensor(facts, mask, writing.operand_in(mask, fact, layout))))
    named = [k for k in ("sem", "scope") if k in given and not is_none(facts, given[k])]
    text = called(f"{module}.buffer_{callee.name}", *arguments, *(keyword(k, writing.emit(given[k])) for k in named))
    statement = statement_of(facts, node)
    unused = isinstance(statement, ast.Expr) and statement.value is node
    return method(text, "to", f"gl.{fact.pointee}", "bitcast=True") if other_sign and not unused else text
