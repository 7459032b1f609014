"""AMD's global and LDS memory ops as common Triton GPU ops.

    amdg.buffer_load %p[%o], %m : !tt.ptr<f16> -> tensor<T>
becomes
    tt.splat %p; tt.addptr; arith.constant dense<0>; tt.load with mask and that zero

A masked-off lane of an AMD load reads zero, so every masked load gets an explicit zero. Direct-to-LDS copies become
`ttg.async_copy_global_to_local`, which also writes zero where the mask is off.
"""

from __future__ import annotations

import re

from translator.device.module_text import VALUE, balanced_end, op_name, tensor_parts
from translator.device.refusal import Refused
from translator.ttgir.types import split_top

_BUFFER = re.compile(rf"(?:({VALUE}) = )?(amdg\.\w+) (.*)$")


class Names:
    """Fresh value names."""

    def __init__(self):
        self.count = 0

    def __call__(self, what: str) -> str:
        self.count += 1
        return f"%cuda_{what}_{self.count}"


def pointer_tensor(names: Names, base: str, pointer: str, offsets: str, offset_type: str) -> tuple[list[str], str, str]:
    """Lines that make a tensor of pointers of scalar `base` and `offsets`; -> (lines, value, type)."""
    shape, element, layout = tensor_parts(offset_type)
    sizes = "".join(f"{n}x" for n in shape)
    kind = f"tensor<{sizes}{pointer}, {layout}>"
    all_same, moved = names("base"), names("pointers")
    lines = [
        f"{all_same} = tt.splat {base} : {pointer} -> {kind}",
        f"{moved} = tt.addptr {all_same}, {offsets} : {kind}, {offset_type}",
    ]
    return lines, moved, kind


def zero_of(kind: str) -> str:
    """`dense<0>` or `dense<0.0>` as a value of the tensor type `kind`."""
    _, element, _ = tensor_parts(kind)
    if element.startswith("!tt.ptr"):
        raise Refused("tt.load", "a masked load of pointers has no zero")
    return "dense<0>" if element.startswith("i") else "dense<0.000000e+00>"


def _attributes(text: str) -> tuple[str, str]:
    """Operands, and the cache modifiers that NVIDIA has too, of what stands before the types."""
    kept = "".join(
        f" {m}" for m in re.findall(r"(?:cacheModifier|evictionPolicy) = \w+", text) if "= ca" in m or "= cg" in m
    )
    plain = re.sub(r"\b(?:cacheModifier|evictionPolicy|stride|contiguity) = (?:%?[\w#]+)", "", text)
    plain = re.sub(r"\{[^}]*\}", "", plain)
    return plain.strip().rstrip(","), kept


def _operands(text: str) -> list[str]:
    return [x for x in split_top(text) if x]


def buffer_load(line: str, names: Names) -> list[str]:
    """`amdg.buffer_load %p[%o](, %mask(, %other)) ... : !tt.ptr<f16> -> tensor<...>`."""
    result, _, rest = _BUFFER.match(line.strip()).groups()
    body, kinds = split_top(rest, " : ")[0], split_top(rest, " : ")[-1]
    pointer, kind = split_top(kinds, "->")
    plain, cache = _attributes(body)
    base, offsets, *more = _split_address(plain)
    shape, _, layout = tensor_parts(kind)
    offset_type = f"tensor<{''.join(f'{n}x' for n in shape)}i32, {layout}>"
    lines, address, address_type = pointer_tensor(names, base, pointer, offsets, offset_type)
    if len(more) == 1:
        zero = names("zero")
        lines.append(f"{zero} = arith.constant {zero_of(kind)} : {kind}")
        more.append(zero)
    lines.append(f"{result} = tt.load {', '.join([address, *more])}{cache} : {address_type}")
    return lines


def buffer_store(line: str, names: Names) -> list[str]:
    """`amdg.buffer_store %v, %p[%o](, %mask) ... : !tt.ptr<f16> -> tensor<...>`."""
    _, _, rest = _BUFFER.match(line.strip()).groups()
    body, kinds = split_top(rest, " : ")[0], split_top(rest, " : ")[-1]
    pointer, kind = split_top(kinds, "->")
    plain, cache = _attributes(body)
    value, address = plain.split(", ", 1)
    base, offsets, *more = _split_address(address)
    shape, _, layout = tensor_parts(kind)
    offset_type = f"tensor<{''.join(f'{n}x' for n in shape)}i32, {layout}>"
    lines, moved, moved_type = pointer_tensor(names, base, pointer, offsets, offset_type)
    lines.append(f"tt.store {', '.join([moved, value, *more])} : {moved_type}")
    return lines


def buffer_atomic(line: str, names: Names) -> list[str]:
    """`amdg.buffer_atomic_rmw fadd, relaxed, gpu, %v, %p[%o](, %mask) : tensor<...>` as `tt.atomic_rmw`."""
    result, _, rest = _BUFFER.match(line.strip()).groups()
    body, kind = split_top(rest, " : ")[0], split_top(rest, " : ")[-1]
    kind = split_top(kind, "->")[-1]
    plain, _ = _attributes(body)
    operation, order, scope, value, address = plain.split(", ", 4)
    base, offsets, *more = _split_address(address)
    shape, element, layout = tensor_parts(kind)
    sizes = "".join(f"{n}x" for n in shape)
    lines, moved, moved_type = pointer_tensor(
        names, base, f"!tt.ptr<{element}>", offsets, f"tensor<{sizes}i32, {layout}>"
    )
    types = [moved_type, kind] + [f"tensor<{sizes}i1, {layout}>"] * len(more)
    head = f"{result} = " if result else ""
    operands = ", ".join([operation, order, scope, moved, value, *more])
    lines.append(f"{head}tt.atomic_rmw {operands} : ({', '.join(types)}) -> {kind}")
    return lines


def buffer_load_to_local(line: str, names: Names) -> list[str]:
    """`amdg.buffer_load_to_local %p[%o] mask = %m (other = %x) into %lds : PTR[OFFSETS] (OTHER) -> <LDS>` as cp.async."""
    result, _, rest = _BUFFER.match(line.strip()).groups()
    body, kinds = split_top(rest, " : ")[0], split_top(rest, " : ")[-1]
    address = body[: body.index("]") + 1]
    base, offsets = _split_address(address)
    mask, other = (_keyword(body, word) for word in ("mask", "other"))
    target = _keyword(body, "into")
    source, local = split_top(kinds, "->")  # a fill value's type may follow the offsets'
    pointer = source[: source.index("[")].strip()
    offset_type = source[source.index("[") + 1 : balanced_end(source, source.index("[")) - 1].strip()
    lines, moved, moved_type = pointer_tensor(names, base, pointer, offsets, offset_type)
    if other:
        raise Refused("amdg.buffer_load_to_local", "a fill value: NVIDIA's cp.async writes zero where the mask is off")
    shape, _, layout = tensor_parts(offset_type)
    element = pointer[len("!tt.ptr<") : -1]
    masked = zero_filled(lines, names, mask, f"tensor<{''.join(f'{n}x' for n in shape)}{element}, {layout}>")
    lines.append(f"{result} = ttg.async_copy_global_to_local {moved}, {target}{masked} : {moved_type} -> {local}")
    return lines


def without_zero_fill(text: str) -> str:
    """The module without fill values of copies to LDS that are zero anyway."""
    zeros = set(re.findall(rf"({VALUE}) = arith\.constant dense<(?:0|0\.0+e\+00|false)> : ", text))

    def change(found: re.Match) -> str:
        return "" if found.group(1) in zeros else found.group(0)

    copies = ("amdg.buffer_load_to_local", "ttg.async_copy_global_to_local")
    return (
        "\n".join(
            re.sub(rf" other(?: =)? ({VALUE})", change, line) if op_name(line) in copies else line
            for line in text.splitlines()
        )
        + "\n"
    )


def zero_filled(lines: list[str], names: Names, mask: str | None, kind: str) -> str:
    """The mask operands of a `ttg.async_copy_global_to_local` of values of type `kind`: zero where the mask is off."""
    if not mask:
        return ""
    zero = names("zero")
    lines.append(f"{zero} = arith.constant {zero_of(kind)} : {kind}")
    return f" mask {mask} other {zero}"


def async_copy(line: str, names: Names) -> list[str]:
    """`%t = ttg.async_copy_global_to_local %p, %lds mask %m (other %o) ... : tensor<ptr> -> <LDS>` with an explicit zero."""
    body, kinds = split_top(line, " : ")[0], split_top(line, " : ")[-1]
    mask, other = _keyword(body, "mask"), _keyword(body, "other")
    if other:
        raise Refused(
            "ttg.async_copy_global_to_local", "a fill value: NVIDIA's cp.async writes zero where the mask is off"
        )
    if not mask:
        return [line]
    shape, pointer, layout = tensor_parts(split_top(kinds, "->")[0])
    kind = f"tensor<{''.join(f'{n}x' for n in shape)}{pointer[len('!tt.ptr<') : -1]}, {layout}>"
    lines: list[str] = []
    masked = zero_filled(lines, names, mask, kind)
    return [*lines, line.replace(f" mask {mask}", masked, 1)]


def masked_load(line: str, names: Names) -> list[str]:
    """`tt.load %p, %mask` without an other value gets an explicit zero."""
    body, kind = line.split(" : ")[0], split_top(line, " : ")[-1]
    if not kind.startswith("tensor<"):
        return [line]
    operands = re.findall(VALUE, body.split(" = tt.load ", 1)[1])
    if len(operands) != 2:
        return [line]
    shape, pointer, layout = tensor_parts(kind)
    element = pointer[len("!tt.ptr<") : -1]
    value_type = f"tensor<{''.join(f'{n}x' for n in shape)}{element}, {layout}>"
    zero = names("zero")
    first = f"{zero} = arith.constant {zero_of(value_type)} : {value_type}"
    return [first, line.replace(f"{operands[0]}, {operands[1]}", f"{operands[0]}, {operands[1]}, {zero}", 1)]


def _split_address(text: str) -> list[str]:
    """`%p[%o], %m, %x` -> [%p, %o, %m, %x]."""
    found = re.match(rf"({VALUE})\[({VALUE})\](?:, )?(.*)$", text)
    if not found:
        raise Refused("amdg.buffer op", f"an operand form that is not known: {text[:80]}")
    return [found.group(1), found.group(2), *_operands(found.group(3))]


def _keyword(text: str, word: str) -> str | None:
    found = re.search(rf"\b{word}(?: =)? ({VALUE})", text)
    return found.group(1) if found else None
