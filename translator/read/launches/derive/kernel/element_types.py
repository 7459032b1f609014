"""The element type of what a pointer points to, from what is done with what is loaded and stored."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gluonize.read.launches.derive.kernel.roles import is_index, is_scale, is_statistic
from gluonize.read.launches.derive.kernel.uses import Use, Uses

# What models are trained and run in, where a kernel shows that it converts; it has the range of fp32.
HALF = "bf16"
# What the formats of scaled products are kept in; pairs of e2m1 share a byte.
FORMATS = {"e4m3": "fp8e4nv", "e5m2": "fp8e5", "e2m1": "u8"}


@dataclass(frozen=True)
class Element:
    """An element type, and what it was concluded from. stored: that is nothing but what is stored there."""

    kind: str
    why: str
    confidence: str
    stored: bool = False


def element_of(
    names: list[str], uses: Uses, converts: bool, *, fp8: str = "", quantized: bool = False, like: str = ""
) -> Element:
    """The type of the pointers `names`, which share one. converts: the kernel converts between types somewhere; fp8: the 8-bit type
    that it is named for, "" if for none; quantized: it is named for operands of 8 bits; like: the tensor that host code makes them like, of which nothing
    else is known."""
    loads = _joined([uses.loads[name] for name in names])
    stores: Counter = sum((uses.stores[name] for name in names), Counter())
    name = names[0]
    if loads.any("address"):
        return Element("i64", "what it points to is used as an address", "use")
    for text, kind in FORMATS.items():
        if loads.any(f"format:{text}"):
            return Element(kind, f"an operand of a scaled product in {text}", "use")
    if loads.any("scale"):
        return Element("u8", "the scales of a product, exponents of 8 bits", "use")
    if (integer := _integer(name, loads, stores)) is not None:
        return integer
    if loads.any("condition", "cast:int1") and not loads.any("float", "dot") or stores["truth"] and not stores["cast"]:
        return Element("u1", "its values are conditions", "use")
    if "mask" in name.lower() and not loads.any("float", "float-other", "cast:fp32"):
        return Element("u1", "its name: a mask", "name")
    if quantized and is_scale(name) and not stores["cast"]:
        return Element("fp32", "its name: scales of 8-bit operands, which are kept in fp32", "name")
    product = any(use.any("dot") for use in uses.loads.values())  # whose result is not in 8 bits
    if fp8 and (loads.any("dot") or stores["cast"] and not product):
        return Element(fp8, "the kernel is named for fp8", "name")
    return _float(name, loads, stores, converts, like)


def copied_from(names: list[str], uses: Uses) -> str:
    """The pointer whose values are stored to `names` without being converted; "" where there is none."""
    loads, stores = _joined([uses.loads[name] for name in names]), sum((uses.stores[n] for n in names), Counter())
    if loads.kinds or stores["plain"] != stores.total() or is_statistic(names[0]):
        return ""
    return next((n for n, use in uses.loads.items() if use.any(*(f"stored:{name}" for name in names))), "")


def _joined(parts: list[Use]) -> Use:
    out = Use()
    for part in parts:
        out.kinds.update(part.kinds)
        out.numbers += part.numbers
        out.reach += part.reach
    return out


def _integer(name: str, loads: Use, stores: Counter) -> Element | None:
    floating = loads.any("float", "dot", "float-other", "cast:fp32", "cast:fp16", "cast:bf16")
    if loads.any("offset", "bound", "integer", "tile") and not loads.any("float", "dot", "float-other"):
        return Element(_index_width(loads), "its values are used as indices", "use")
    if loads.any("bits", "shift") and not loads.any("float", "dot", "float-other"):
        if loads.any("shift") and loads.any("masked") and all(bits is not None and bits <= 8 for bits in loads.reach):
            return Element("u8", "its values are taken apart by shifts and masks within 8 bits", "use")
        return Element("i32", "its values take part in bit operations", "use")
    if loads.any("cast:int32", "cast:int64", "cast:int16") and not floating:
        return Element(_index_width(loads), "its values are converted to integers", "use")
    if any(type(number) is int for number in loads.numbers) and not floating and is_index(name):
        return Element("i64", "its values are compared with integers", "use")
    widths = [kind for word, kind in _STORED.items() if stores[f"to:{word}"]]
    if widths:
        return Element(widths[0], "what is stored is converted to it", "use")
    if stores["bits"] and stores["byte"] == stores["bits"] and not loads.any("float", "dot"):
        return Element("u8", "what is stored is put together by shifts within 8 bits", "use")
    if stores["bits"] and not loads.any("float", "dot"):
        return Element("i32", "what is stored is made by shifts", "use")
    if is_index(name) and not floating and not stores["cast"]:
        return Element("i64", "its name; torch indices are int64", "name")
    return None


_FLOATS = {
    "bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64", "float8e4nv": "fp8e4nv", "float8e5": "fp8e5",
    "float8e4b8": "fp8e4b8", "float8e5b16": "fp8e5b16",
}  # fmt: skip
_STORED = {"int32": "i32", "int64": "i64", "int8": "i8", "uint8": "u8", "int1": "i1"}


def _index_width(loads: Use) -> str:
    """torch's indices are int64; who widens them has int32."""
    return "i32" if loads.any("cast:int64") and not loads.any("cast:int32") else "i64"


def _float(name: str, loads: Use, stores: Counter, converts: bool, like: str) -> Element:
    converted = [kind for word, kind in _FLOATS.items() if stores[f"to:{word}"]]
    widened = converted == ["fp32"] and loads.any("cast:fp32")  # to compute in it, and then stored
    if len(converted) == 1 and not widened and not stores["plain"] and not stores["cast"]:
        return Element(converted[0], "what is stored is converted to it", "use")
    if is_statistic(name) and not stores["cast"]:
        return Element("fp32", "its name: a statistic, which is kept in fp32", "name")
    if loads.any("register:fp32") and not loads.any("cast:fp32"):
        return Element("fp32", "assembly takes its values in registers of fp32", "use")
    if loads.any("cast:fp32"):
        return Element(HALF, "its values are converted to fp32", "use")
    if stores["to:float32"] and not stores["cast"]:
        return Element("fp32", "what is stored is converted to it", "use")
    if stores["cast"]:
        return Element(HALF, "what is stored is converted to its type", "use")
    if like:
        return Element(HALF, f"the host gives it the type of {like}: what models run in", "name")
    if stores["atomic"]:
        return Element("fp32", "it is accumulated into", "use")
    if stores and not loads.kinds:
        return Element("fp32", "fp32 values are stored as they are", "use", stored=True)
    if loads.any("dot"):
        return Element(HALF, "its values go into a dot as they are", "use")
    if converts and loads.kinds:
        return Element(HALF, "as the other tensors of the launch", "name")
    return Element(HALF, "no type is shown: what models run in", "name")
