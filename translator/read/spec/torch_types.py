"""torch dtypes as signatures write them."""

from __future__ import annotations

TRITON_TYPE = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "u1",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float8_e4m3fnuz": "fp8e4b8", "float8_e5m2fnuz": "fp8e5b16",
}  # fmt: skip
# Methods of a tensor that convert it.
CASTS = {
    "half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "bfloat16": "bf16",
    "int": "i32",
    "long": "i64",
    "bool": "u1",
}


__all__ = ["CASTS", "TRITON_TYPE"]
