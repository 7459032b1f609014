"""Which arguments direct copies of tensors of pointers rest on; Triton's compiler is asked whether these, and no others."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from gluonize.diagnostics import TranslationError
from gluonize.read.spec.launch import LaunchSpec
from launch_checks_of import check_of
from translation_of import compiled, dedent, launch, translate

HEAD = "import triton\nimport triton.language as tl\n\n\n"
PRODUCT = """
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = {rows}, {columns}, tl.arange(0, BK)
    {pointers}
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, {end}, BK):
        a = tl.load(a_ptrs{a_mask})
        b = tl.load(b_ptrs{b_mask})
        acc = tl.dot(a, b, acc)
        {moves}
    at = c_ptr + (tl.program_id(0) * BM + tl.arange(0, BM))[:, None] * sc + tl.arange(0, BN)[None, :]
    tl.store(at, acc)
"""
PLAIN = {
    "rows": "tl.program_id(0) * BM + tl.arange(0, BM)",
    "columns": "tl.program_id(1) * BN + tl.arange(0, BN)",
    "pointers": "a_ptrs = a_ptr + m[:, None] * sa + k[None, :]; b_ptrs = b_ptr + k[:, None] * sb + n[None, :]",
    "end": "K",
    "a_mask": "",
    "b_mask": "",
    "moves": "a_ptrs += BK; b_ptrs += BK * sb",
}
INTEGERS = ("M", "N", "K", "sa", "sb", "sc")
# What is written otherwise, and what the copies rest on then.
WAYS = {
    "no masks": ({}, {"sa", "sb"}),
    "a row without a dimension of its own": (
        {"pointers": "a_ptrs = a_ptr + m[:, None] * sa + k; b_ptrs = b_ptr + k[:, None] * sb + n", "a_mask": ", mask=k < K - i, other=0.0"},
        {"sa", "sb", "K"},
    ),
    "a mask along the row": ({"a_mask": ", mask=k[None, :] < K - i, other=0.0"}, {"sa", "sb", "K"}),
    "a mask from behind": ({"a_mask": ", mask=K - i > k[None, :], other=0.0"}, {"sa", "sb", "K"}),
    "masks of rows": ({"a_mask": ", mask=m[:, None] < M, other=0.0"}, {"sa", "sb"}),
    "masks of both": (
        {"b_mask": ", mask=(k[:, None] < K - i) & (n[None, :] < N), other=0.0"}, {"sa", "sb", "N"}
    ),
    "rows that wrap": ({"rows": "(tl.program_id(0) * BM + tl.arange(0, BM)) % M"}, {"sa", "sb"}),
    "columns that wrap": ({"columns": "(tl.program_id(1) * BN + tl.arange(0, BN)) % N"}, {"sa", "sb", "N"}),
    "columns that are hinted": (
        {"columns": "tl.max_contiguous(tl.multiple_of((tl.program_id(1) * BN + tl.arange(0, BN)) % N, BN), BN)"}, {"sa", "sb"}
    ),
    "a start in the row": (
        {"pointers": "a_ptrs = a_ptr + M + m[:, None] * sa + k[None, :]; b_ptrs = b_ptr + k[:, None] * sb + n[None, :]"},
        {"sa", "sb", "M"},
    ),
    "a start whose hint says nothing to the compiler": (
        {"pointers": "a_ptrs = a_ptr + tl.multiple_of(M, 8) + m[:, None] * sa + k[None, :]; b_ptrs = b_ptr + k[:, None] * sb + n[None, :]"},
        {"sa", "sb", "M"},
    ),
    "a base that is computed": (
        {"pointers": "base = a_ptr + tl.program_id(2) * sa; a_ptrs = base + m[:, None] * sa + k[None, :]; b_ptrs = b_ptr + k[:, None] * sb + n[None, :]"},
        {"sa", "sb"},
    ),
    "rows of a known length": (
        {"pointers": "a_ptrs = a_ptr + m[:, None] * 256 + k[None, :]; b_ptrs = b_ptr + k[:, None] * sb + n[None, :]"}, {"sb"}
    ),
    "addresses of each iteration": (
        {
            "pointers": "a_rows = a_ptr + m[:, None] * sa",
            "a_mask": "", "b_mask": "", "moves": "pass",
            "a": "a_rows + (i + k)[None, :]", "b": "b_ptr + (i + k)[:, None] * sb + n[None, :]",
        },
        {"sa", "sb"},
    ),
}  # fmt: skip


def written(name: str) -> str:
    changes, _ = WAYS[name]
    text = HEAD + dedent(PRODUCT)
    for pointer in ("a", "b"):
        text = text.replace(f"tl.load({pointer}_ptrs", f"tl.load({changes.get(pointer, f'{pointer}_ptrs')}")
    return text.format(**(PLAIN | {key: value for key, value in changes.items() if key in PLAIN}))


def product_launch(without: str = "") -> LaunchSpec:
    """A launch in which every integer but one is a multiple of 16, or every tensor but one starts at one."""
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    attrs = {name: "DS" if name != without else "S" for name in pointers}
    attrs |= {name: "D" for name in INTEGERS if name != without}
    signature = pointers | dict.fromkeys(INTEGERS, "i32")
    return launch("product", signature, {"BM": 64, "BN": 64, "BK": 64}, attrs=attrs)


def asked(text: str) -> set[str]:
    """What the header of a translation says has to be a multiple, or to start at one."""
    lines = re.findall(r"assumes (.*) divisible by 16", text)
    return {name for line in lines for name in re.split(", | and ", line.replace("addresses of ", ""))}


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", WAYS)
def test_what_copies_rest_on(name: str, tmp_path: Path):
    text = translate(tmp_path, written(name), product_launch(), target="gfx950").text
    assert "_load_to_shared" in text and asked(text) == WAYS[name][1] | {"a_ptr", "b_ptr"}, text


def test_a_launch_without_it_is_refused_by_name(tmp_path: Path):
    text = translate(tmp_path, written("no masks"), product_launch(), target="gfx950").text
    check = check_of(text, "product")
    numbers = dict(M=64, N=64, K=64, BM=64, BN=64, BK=64) | dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"))
    check(sa=32, sb=16, sc=1, **numbers)
    with pytest.raises(ValueError, match="product: .*sb=24.*"):
        check(sa=32, sb=24, sc=1, **numbers)


def test_nothing_is_asked_where_any_element_may_be_copied(tmp_path: Path):
    """Of 32 bits each."""
    spec = product_launch()
    spec = replace(spec, signature=spec.signature | {"a_ptr": "*fp32", "b_ptr": "*fp32"})
    text = translate(tmp_path, written("no masks"), spec, target="gfx950").text
    assert "buffer_load_to_shared" in text and asked(text) == set(), text


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if i else []) for i, name in enumerate(WAYS)]
)
def test_the_compiler_rests_on_the_same(name: str, tmp_path: Path):
    text = translate(tmp_path, written(name), product_launch(), target="gfx950").text
    for argument in (*INTEGERS, "a_ptr", "b_ptr", "c_ptr"):
        try:
            compiled(tmp_path, text, product_launch(without=argument), "gfx950")
        except TranslationError as error:
            assert argument in asked(text) and "direct-to-LDS" in str(error), (argument, error)
        else:
            assert argument not in asked(text), argument


def test_a_slice_is_refused_by_name(tmp_path: Path):
    text = translate(tmp_path, written("no masks"), product_launch(), target="gfx950").text
    check, numbers = check_of(text, "product"), dict(sa=32, sb=16, sc=1, M=64, N=64, K=64, BM=64, BN=64, BK=64)
    check(a_ptr=At(64), b_ptr=At(32), c_ptr=At(2), **numbers)
    with pytest.raises(ValueError, match="product: one of a_ptr, b_ptr is not at a multiple of 16 bytes"):
        check(a_ptr=At(64), b_ptr=At(34), c_ptr=At(2), **numbers)


@dataclass(frozen=True)
class At:
    """A tensor by where it starts."""

    start: int

    def data_ptr(self) -> int:
        return self.start


TILES = """
@triton.jit
def tiles(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr):
    r = tl.arange(0, B)
    a_desc = tl.make_tensor_descriptor({a}, [M, K], [K, 1], [B, B])
    b_base = {b}
    b_desc = tl.make_tensor_descriptor(b_base, [K, N], [N, 1], [B, B])
    acc = tl.zeros((B, B), tl.float32)
    for kk in range(0, K, B):
        a = a_desc.load([-1, kk])
        b = b_desc.load([kk - 1, 0])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + r[:, None] * N + r[None, :], acc)
"""
# Where tensors of descriptors start, which arguments are unaligned, and which copies rest on; none where there are none.
STARTS = {
    "aligned": ("a_ptr", "b_ptr", "", {"a_ptr", "b_ptr", "K", "N"}),
    "an argument that is not": ("a_ptr", "b_ptr", "a_ptr b_ptr", set()),
    "an element later": ("a_ptr + 1", "b_ptr + 1", "", set()),
    "rows later": ("a_ptr + tl.program_id(0) * K", "16 * N + b_ptr", "", {"a_ptr", "b_ptr", "K", "N"}),
    "elements later": ("a_ptr + tl.program_id(0) * M", "b_ptr - M", "", set()),
}


@pytest.mark.one_of(4)
@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
@pytest.mark.parametrize("start", STARTS)
def test_where_tensors_of_descriptors_start(start: str, target: str, tmp_path: Path):
    a, b, unaligned, rests = STARTS[start]
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    attrs = {name: "S" if name in unaligned.split() else "DS" for name in ("a_ptr", "b_ptr", "c_ptr")}
    spec = launch("tiles", signature, {"B": 64}, attrs=attrs | {"N": "D", "K": "D"})
    text = translate(tmp_path, HEAD + dedent(TILES).format(a=a, b=b), spec, target=target).text
    assert asked(text) == rests and ("_to_shared(" in text) == bool(rests), text
    compiled(tmp_path, text, spec, target)
    for name in ("a_ptr", "b_ptr") if rests else ():
        with pytest.raises(TranslationError, match="direct-to-LDS"):
            compiled(tmp_path, text, replace(spec, attrs=spec.attrs | {name: "S"}), target)
