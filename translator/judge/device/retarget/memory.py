"""AMD's global and LDS memory ops as common Triton GPU ops.

    amdg.buffer_load %p[%o], %m : !tt.ptr<f16> -> tensor<T>
becomes
    tt.splat %p; tt.addptr; arith.constant dense<0>; tt.load with mask and that zero

A masked-off lane of an AMD load reads zero, so every masked load gets an explicit zero. Direct-to-LDS copies become
`ttg.async_copy_global_to_local`, which also writes zero where the mask is off.
"""

from __future__ import annotations

from gluonize.judge.device.refusal import Refused
from gluonize.trace.model.module_text import ops_named, printed, with_ops
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type

COPIES = ("amdg.buffer_load_to_local", "ttg.async_copy_global_to_local")


class Names:
    """Fresh value names."""

    def __init__(self):
        self.count = 0

    def __call__(self, what: str) -> str:
        self.count += 1
        return f"%cuda_{what}_{self.count}"


def pointer_tensor(
    names: Names, base: str, pointer: str, offsets: str, offset_type: Type
) -> tuple[list[str], str, Type]:
    """Lines that make a tensor of pointers of scalar `base` and `offsets`; -> (lines, value, type)."""
    kind = offset_type.of(pointer)
    all_same, moved = names("base"), names("pointers")
    lines = [
        f"{all_same} = tt.splat {base} : {pointer} -> {kind.printed}",
        f"{moved} = tt.addptr {all_same}, {offsets} : {kind.printed}, {offset_type.printed}",
    ]
    return lines, moved, kind


def zero(lines: list[str], names: Names, kind: Type) -> str:
    """A constant zero of the tensor type `kind`, made in `lines`."""
    if kind.kind == "ptr":
        raise Refused("tt.load", "a masked load of pointers has no zero")
    value = names("zero")
    text = "dense<0>" if kind.element.startswith("i") else "dense<0.000000e+00>"
    lines.append(f"{value} = arith.constant {text} : {kind.printed}")
    return value


def _cache(op: Op) -> str:
    """The cache modifier, where NVIDIA has it too."""
    modifier = op.attribute("cacheModifier", "")
    return f" cacheModifier = {modifier}" if modifier in ("ca", "cg") else ""


def _result(op: Op) -> str:
    return f"{op.results[0]} = " if op.results else ""


def buffer_load(op: Op, names: Names) -> list[str]:
    """`amdg.buffer_load %p[%o](, %mask(, %other)) ... : !tt.ptr<f16> -> tensor<...>`."""
    base, offsets, mask, other = op.buffer
    lines, address, address_type = pointer_tensor(names, base, op.operand_types[0].printed, offsets, op.type.of("i32"))
    if mask and not other:
        other = zero(lines, names, op.type)
    operands = ", ".join(filter(None, (address, mask, other)))
    return [*lines, f"{op.results[0]} = tt.load {operands}{_cache(op)} : {address_type.printed}"]


def buffer_store(op: Op, names: Names) -> list[str]:
    """`amdg.buffer_store %v, %p[%o](, %mask) ... : !tt.ptr<f16> -> tensor<...>`."""
    base, offsets, mask, _ = op.buffer
    pointer = op.operand_types[0].printed
    lines, moved, moved_type = pointer_tensor(names, base, pointer, offsets, op.tensors[-1].of("i32"))
    operands = ", ".join(filter(None, (moved, op.operands[0], mask)))
    return [*lines, f"tt.store {operands} : {moved_type.printed}"]


def buffer_atomic(op: Op, names: Names) -> list[str]:
    """`amdg.buffer_atomic_rmw fadd, relaxed, gpu, %v, %p[%o](, %mask) : tensor<...>` as `tt.atomic_rmw`."""
    base, offsets, mask, _ = op.buffer
    kind = op.tensors[-1]
    lines, moved, moved_type = pointer_tensor(names, base, f"!tt.ptr<{kind.element}>", offsets, kind.of("i32"))
    types = [moved_type, kind] + [kind.of("i1")] * (mask is not None)
    operands = ", ".join([*op.words[:3], *filter(None, (moved, op.operands[0], mask))])
    printed = ", ".join(ty.printed for ty in types)
    return [*lines, f"{_result(op)}tt.atomic_rmw {operands} : ({printed}) -> {kind.printed}"]


def buffer_load_to_local(op: Op, names: Names) -> list[str]:
    """`amdg.buffer_load_to_local %p[%o] mask = %m (other = %x) into %lds : PTR[OFFSETS] (OTHER) -> <LDS>` as cp.async."""
    base, offsets, mask, other = op.buffer
    if other:
        raise Refused(op.name, "a fill value: NVIDIA's cp.async writes zero where the mask is off")
    offset_type = op.tensors[0]
    lines, moved, moved_type = pointer_tensor(names, base, op.pointer.printed, offsets, offset_type)
    target = op.operands[op.keyword("into")]
    masked = zero_filled(lines, names, mask, offset_type.of(op.pointer.element))
    copy = f"ttg.async_copy_global_to_local {moved}, {target}{masked} : {moved_type.printed} -> {op.target.short}"
    return [*lines, f"{op.results[0]} = {copy}"]


def without_zero_fill(text: str) -> str:
    """The module without fill values of copies to LDS that are zero anyway."""
    zeros = {op.results[0] for op in ops_named(text, "arith.constant") if op.constant.is_zero}

    def change(op: Op, line: str) -> list[str]:
        other = op.keyword("other")
        name = op.operands[other] if other is not None else ""
        without = line.replace(f" other = {name}", "", 1).replace(f" other {name}", "", 1)
        return [without if name in zeros else line]

    return with_ops(text, COPIES, change)


def zero_filled(lines: list[str], names: Names, mask: str | None, kind: Type) -> str:
    """The mask operands of a `ttg.async_copy_global_to_local` of values of type `kind`: zero where the mask is off."""
    return f" mask {mask} other {zero(lines, names, kind)}" if mask else ""


def async_copy(op: Op, names: Names) -> list[str]:
    """`%t = ttg.async_copy_global_to_local %p, %lds mask %m (other %o) ... : tensor<ptr> -> <LDS>` with an explicit zero."""
    mask, other = op.keyword("mask"), op.keyword("other")
    if other is not None:
        raise Refused(op.name, "a fill value: NVIDIA's cp.async writes zero where the mask is off")
    lines: list[str] = []
    before = masked = ""
    if mask is not None:
        pointers, name = op.tensors[0], op.operands[mask]
        before, masked = f" mask {name}", zero_filled(lines, names, name, pointers.of(pointers.element))
    return [*lines, f"{_result(op)}{printed(op).replace(before, masked, 1)}"]


def masked_load(op: Op, names: Names) -> list[str]:
    """`tt.load %p, %mask` without an other value gets an explicit zero."""
    lines: list[str] = []
    both = filled = ", ".join(op.operands)
    kind = op.operand_types[0]
    if kind.is_tensor and len(op.operands) == 2:
        filled = f"{both}, {zero(lines, names, kind.of(kind.element))}"
    return [*lines, f"{_result(op)}{printed(op).replace(both, filled, 1)}"]
