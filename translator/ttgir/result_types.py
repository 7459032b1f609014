"""The types of what an operation gives, from how it is printed."""

from __future__ import annotations

import re
from dataclasses import replace

from translator.ttgir.types import Type, parse_type, pointee, split_top

COMPARE = frozenset({"arith.cmpi", "arith.cmpf"})
_REGION_TYPES = re.compile(r"-> \((.*)\)")


def result_types(name: str, count: int, text: str, signature: str) -> list[Type]:
    """The types of the `count` results of the operation `name`, whose line goes on with `text` and ends in the types `signature`."""
    if not count:
        return []
    if name in ("scf.for", "scf.if"):
        # `iter_args(...) -> (types)  : i32 {`
        return [parse_type(t) for t in split_top(_REGION_TYPES.search(text).group(1))]
    parts = split_top(signature, "->")
    if len(parts) > 1:
        out = parts[-1].strip()
        out = out[1:-1] if out.startswith("(") else out
        types = [parse_type(t) for t in split_top(out)]
    else:
        types = _implied_types(name, signature)
    if len(types) < count:
        types = types[:1] * count
    return types[:count]


def _implied_types(name: str, text: str) -> list[Type]:
    """The result types of an operation that is printed without an arrow."""
    types = [parse_type(t) for t in split_top(split_top(text, " to ")[-1])] if text else [Type("token")]
    if name == "arith.select":
        return types[-1:]
    if name in COMPARE:
        return [Type("int", "i1", types[0].shape, types[0].layout)]
    if name == "tt.load":
        return [pointee(types[0])]
    if name == "tt.make_tensor_descriptor":
        return [replace(types[-1], kind="desc")]
    if name == "tt.unsplat":
        return [Type(types[0].kind, types[0].element)]
    if name == "arith.constant" and not text:
        return [Type("int", "i1")]
    return types
