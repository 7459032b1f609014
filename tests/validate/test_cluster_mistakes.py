"""Mistakes planted into the goldens of clusters: the reference machine finds each, at its line.

Sizes are smaller than those of the fixtures, with as many trips of the loops as a ring has slots, and more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import fixture_set
import pytest
from gluonize.decide.choices.chosen import choices_of
from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.request import with_options
from translation_of import tensor

COUNTS = (2, 4)


def _matmul() -> dict:
    numbers = {"M": 128, "N": 128, "K": 256, "stride_am": 256, "stride_bk": 128, "stride_cm": 128}
    return {"a_ptr": tensor(128, 256), "b_ptr": tensor(256, 128), "c_ptr": tensor(128, 128), **numbers}


def _attention() -> dict:
    rows = {name: tensor(1, 208, 64) for name in ("Q", "K", "V", "Out")}
    strides = {f"stride_{name}{d}": size for name in "qkvo" for d, size in (("h", 208 * 64), ("m", 64), ("n", 64))}
    return {**rows, "L": tensor(1, 208), **strides, "N_CTX": 208}


def _softmax() -> dict:
    return {"output_ptr": tensor(4, 784), "input_ptr": tensor(4, 784), "n_rows": 4, "n_cols": 784} | dict.fromkeys(
        ("input_row_stride", "output_row_stride"), 784
    )


# Which launch of each fixture, its arguments and its grid.
SMALLER = {
    "matmul": (0, _matmul(), (1,)),
    "flash_attention": (1, _attention(), (1, 1)),
    "softmax": (0, _softmax(), (2,)),
}


@cache
def case(fixture: str, count: int) -> tuple[Path, LaunchSpec, str]:
    """The source, a small launch, and the golden."""
    found = fixture_set.Fixture(fixture_set.ROOT / fixture)
    launch, values, grid = SMALLER[fixture]
    spec = with_options(read_launches(str(found.launches_file))[launch], choices_of(num_ctas=str(count)))
    given = {name: _typed(values.get(name, old), old) for name, old in spec.values.items()}
    text = found.golden_file(f"gfx1250_{count}_ctas").read_text()
    return found.kernel_file, replace(spec, values=given, grid=grid), text


def _typed(value: object, old: object) -> object:
    if isinstance(value, dict) and "tensor" in value and value is not old:
        return {"tensor": value["tensor"] | {"dtype": old["tensor"]["dtype"]}}
    return value


@dataclass(frozen=True)
class Mistake:
    """One edit of a golden, and what has to be found.

    old, new: a regular expression and what stands there instead, of those with it the one `at`. kind, line: of the finding, the line by a
    part of its text, of those with it `which`.
    """

    old: str
    new: str
    kind: str
    line: str
    which: int = 0
    at: int = 0

    def planted(self, text: str) -> str:
        found = list(re.finditer(self.old, text))
        assert found, f"{self.old!r} is not in the golden"
        return text[: found[self.at].start()] + found[self.at].expand(self.new) + text[found[self.at].end() :]


SYNC = r"( +)cluster\.arrive\(\)\n +cluster\.wait\(\)\n"
START = r"    gl\.barrier\(\)\n" + SYNC
IN_LOOP = r"        cluster\.arrive\(\)\n        cluster\.wait\(\)\n"
LANDED = r"        tdm\.async_wait\(\(NUM_BUFFERS - 2\) \* 2\)\n"
LAST = r"    tdm\.async_wait\(0\)\n"
LEFT = r"(?<=way to this one any more\.\n)" + SYNC
COPY, FIRST, SECOND = "tdm.async_load(", "a_smem.index(slot).load(", "b_smem.index(slot).load("
ARRIVE, WAIT = "        cluster.arrive()\n", "        cluster.wait()\n"
CTAS = r"(\[\[[-\d, \[\]]*\]\])"  # of a layout
LOOP = 2  # copies before that of the loop
SLOT, FREE = r"\.index\(slot\)", r"\.index\(free_slot\)"
TAIL = r"    c = acc\.to\("
MATMUL = {
    "no barrier before the first copies": Mistake(START, "", "cluster-start", COPY),
    "the start is announced and not waited for": Mistake(START, "    cluster.arrive()\n", "cluster-start", COPY),
    "the start is waited for and not announced": Mistake(START, "    cluster.wait()\n", "cluster-wait", "cluster.wait()"),
    "a barrier of the workgroup alone before the first copies": Mistake(START, "    gl.barrier()\n", "cluster-start", COPY),
    "a slot refilled before a peer has read it": Mistake(IN_LOOP, "", "cluster-overwrite", COPY, LOOP),
    "a barrier of the workgroup in place of the cluster's": Mistake(IN_LOOP, "        gl.barrier()\n", "cluster-overwrite", COPY, LOOP),
    "an arrival without a wait": Mistake(IN_LOOP, ARRIVE, "cluster-arrive", "cluster.arrive()", 1),
    "a wait without an arrival": Mistake(IN_LOOP, WAIT, "cluster-wait", "cluster.wait()", 1),
    "the wait before the arrival": Mistake(IN_LOOP, WAIT + ARRIVE, "cluster-wait", "cluster.wait()", 1),
    "two arrivals": Mistake(IN_LOOP, ARRIVE * 2 + WAIT, "cluster-arrive", "cluster.arrive()", 2),
    "two waits": Mistake(IN_LOOP, ARRIVE + WAIT * 2, "cluster-wait", "cluster.wait()", 2),
    "the arrival before the own copies are waited for": Mistake(
        f"({LANDED})(?:.*#.*\n)({IN_LOOP})", ARRIVE + r"\1" + WAIT, "cluster-overwrite", COPY, LOOP
    ),
    "the barrier behind the copies": Mistake(
        IN_LOOP + r"((?:.*\n)*?)( +a = a_smem)", r"\1" + ARRIVE + WAIT + r"\2", "cluster-overwrite", COPY, LOOP
    ),
    "the barrier in every other iteration": Mistake(
        IN_LOOP, f"        if k % 2 == 1:\n    {ARRIVE}    {WAIT}", "cluster-overwrite", COPY, LOOP
    ),
    "the barrier in a branch that one workgroup takes": Mistake(
        IN_LOOP,
        f"        if gl.atomic_add(c_ptr.to(gl.pointer_type(gl.int32)), 1) == 0:\n    {ARRIVE}    {WAIT}",
        "cluster-peer",
        "gl.atomic_add",
    ),
    "the old value of an atomic that one workgroup has": Mistake(
        TAIL,
        "    acc += gl.atomic_add(c_ptr.to(gl.pointer_type(gl.int32)), 0) * 0.0\n" r"\g<0>",
        "cluster-peer",
        "gl.atomic_add",
    ),
    "no wait for the copies of the loop": Mistake(LANDED, "", "lds-in-flight", FIRST),
    "a wait that leaves too many copies under way": Mistake(LANDED, "        tdm.async_wait((NUM_BUFFERS - 1) * 2)\n", "lds-in-flight", FIRST),
    "a wait that leaves one copy under way": Mistake(LANDED, "        tdm.async_wait(1)\n", "lds-in-flight", SECOND),
    "the wrong slot is read": Mistake(SLOT, ".index(free_slot)", "lds-in-flight", "a = a_smem.index(free_slot)"),
    "the slot that is read is filled": Mistake(FREE, ".index(slot)", "lds-in-flight", FIRST),
    "the slot of the iteration before is filled for ever": Mistake(
        r"gl\.minimum\(\(slot - 1\)\.to\(gl\.uint32\), NUM_BUFFERS - 1\)\.to\(gl\.int32\)", "0", "lds-in-flight", FIRST
    ),
    "no wait behind the loop": Mistake(LAST, "", "lds-load-unwaited", COPY, LOOP),
    "no barrier behind the loop": Mistake(LEFT, "", "cluster-exit", COPY, LOOP),
    "an arrival alone behind the loop": Mistake(LEFT, "    cluster.arrive()\n", "cluster-exit", COPY, LOOP),
    "the barrier before the wait behind the loop": Mistake(
        LAST + r"(.*\n)(" + SYNC + ")", r"\2" + "    tdm.async_wait(0)\n", "cluster-exit", COPY, LOOP
    ),
    "a workgroup that returns from the prologue": Mistake(
        r"(\n    for k in range\(0, gl\.cdiv\(K, BLOCK_K\)\):)", r"    if M > 0:\n        return\n\1", "lds-load-unwaited", COPY
    ),
    "the ring is used for something else while peers copy": Mistake(
        LEFT,
        "    a_smem.index(0).store(gl.zeros([BLOCK_M, BLOCK_K], a_smem.dtype, layout=TILE))\n    cluster.arrive()\n    cluster.wait()\n",
        "cluster-reuse",
        "a_smem.index(0).store(",
    ),
    "the mask of a copy lacks a peer": Mistake(
        r"(a_shared.*\[1, 0\], )\[\[.*?\]\]\)", r"\1HALVES)", "cluster-peer", FIRST
    ),
    "the mask of a copy has the wrong peers": Mistake(
        r"(b_shared.*\[1, 0\], )\[\[.*?\]\]\)", r"\1ROWS)", "cluster-peer", SECOND
    ),
    "the product is shared in another way than its operands": Mistake(
        r"(instr_shape=\[16, 16, 32\], cga_layout=)\[\[.*?\]\]\n", r"\1SWAPPED\n", "cluster-peer", SECOND
    ),
    "both halves are stored to the first": Mistake(
        r"offs_cn\[None, :\](?=\n)", "(offs_cn % (BLOCK_N // 2))[None, :]", "store-conflict", "cdna5.buffer_store("
    ),
    "what a peer stores is read": Mistake(
        r"(    cdna5\.buffer_store\(c, c_ptr, c_offs, mask=c_mask\)\n)",
        r"\1    cdna5.buffer_store(cdna5.buffer_load(c_ptr, READ), c_ptr, READ)\n",
        "cluster-memory",
        "cdna5.buffer_load(c_ptr",
    ),
}  # fmt: skip
# Copies before those of the first loop, and of the second one where no key is hidden.
FIRST_LOOP, SECOND_LOOP = 2, 9
LEFT_UNLESS_CAUSAL = r"    if not CAUSAL:\n        # Nothing that another workgroup copies.*\n" + SYNC
ATTENTION = {
    "no barrier before the first copies": Mistake(START, "", "cluster-start", COPY, FIRST_LOOP - 2),
    "no barrier in one loop of two": Mistake(IN_LOOP, "", "cluster-overwrite", COPY, FIRST_LOOP),
    "no barrier between two loops": Mistake(START, "", "cluster-overwrite", COPY, SECOND_LOOP - 3, at=1),
    "no barrier behind the loops": Mistake(LEFT_UNLESS_CAUSAL, "", "cluster-exit", COPY, SECOND_LOOP),
    "the mask of the copies of keys lacks peers": Mistake(
        r"(k_shared.*\[1, 0\], )\[\[.*?\]\]\)", r"\1ROWS_ALONE)", "cluster-peer", ".permute([1, 0]).load(k_operand)"
    ),
    "the mask of the copies of values lacks peers": Mistake(
        r"(v_shared.*\[1, 0\], )\[\[.*?\]\]\)", r"\1ROWS_ALONE)", "cluster-peer", "v_smem.index(slot).load("
    ),
    "scores are shared by columns and reduced by rows": Mistake(
        r"(wmma(?:_2)?: .*\n.*cga_layout=)\[\[.*?\]\]\n", r"\1COLUMNS\n", "cluster-peer", "q_dot = "
    ),
    "rows of the result go to another workgroup": Mistake(
        r"(l_store: .*cga_layout=)\[\[.*?\]\]\)", r"\1VECTOR_WHOLE)", "cluster-peer", "l_store), L"
    ),
    "the phase of the ring of another loop": Mistake(
        r"slot = tile % NUM_BUFFERS", "slot = (tile + 1) % NUM_BUFFERS", "lds-uninitialised", "k = k_smem.index(slot)", 1
    ),
    "a wait that leaves too many copies under way": Mistake(
        LANDED, "        tdm.async_wait((NUM_BUFFERS - 1) * 2)\n", "lds-in-flight", "k = k_smem.index(slot)"
    ),
    "a workgroup that leaves before the second loop": Mistake(
        r"    tile = 0\n", "    if N_CTX > 0:\n        return\n    tile = 0\n", "lds-load-unwaited", COPY, SECOND_LOOP - 3
    ),
}  # fmt: skip
SOFTMAX = {
    "a reduction of what workgroups share": Mistake(
        r"(\[8\], \[32\], .*cga_layout=)\[\[.*?\]\]\n", r"\1VECTOR\n", "cluster-peer", "gl.max(row, axis=0)"
    ),
    "a vector that is converted to what a workgroup has not": Mistake(
        r"softmax_output = numerator", r"softmax_output = gl.convert_layout(gl.convert_layout(numerator, PARTS), layout)",
        "cluster-peer", "softmax_output = "
    ),
    "both workgroups store the first half": Mistake(
        r"col_offsets \+ output_row_offs, mask=mask", "col_offsets % 512 + output_row_offs, mask=mask", "store-conflict", "cdna5.buffer_store("
    ),
}  # fmt: skip
PLANTED = {"matmul": MATMUL, "flash_attention": ATTENTION, "softmax": SOFTMAX}
# What stands in a mistake for a layout of 2 CTAs and of 4.
LAYOUTS = {
    "HALVES": ("[[1, 0]]", "[[1, 0], [2, 0]]"),
    "ROWS_ALONE": ("[[1, 0]]", "[[1, 0], [2, 0]]"),
    "COLUMNS": ("[[0, 1]]", "[[0, 1], [0, 2]]"),
    "ROWS": ("[[1, 0]]", "[[0, 0], [0, 1]]"),
    "SWAPPED": ("[[1, 0]]", "[[1, 0], [2, 0]]"),
    "VECTOR_WHOLE": ("[[0]]", "[[0], [0]]"),
    "VECTOR": ("[[1]]", "[[1], [2]]"),
    "TILE": (
        "gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 0]])",
        "gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 0], [1, 0]])",
    ),
    "PARTS": (
        "gl.BlockedLayout([4], [32], [4], [0], cga_layout=[[1]])",
        "gl.BlockedLayout([4], [32], [4], [0], cga_layout=[[1], [2]])",
    ),
    "READ": tuple(
        "gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, OTHER))[:, None] * stride_cm + "
        "gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, OTHER))[None, :]".replace(
            "OTHER", f"gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout={ctas})"
        )
        for ctas in ("[[1, 0]]", "[[1, 0], [0, 1]]")
    ),
}


def judged(fixture: str, count: int, text: str, folder: Path) -> dict:
    source, spec, _ = case(fixture, count)
    (folder / "output.py").write_text(text)
    return validate_launch(str(source), str(folder / "output.py"), spec, "gfx1250")


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("fixture", PLANTED)
def test_goldens_have_none(fixture: str, count: int, tmp_path: Path):
    answer = judged(fixture, count, case(fixture, count)[2], tmp_path)
    assert answer["status"] == "validated", answer


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("fixture, name", [(fixture, name) for fixture, found in PLANTED.items() for name in found])
def test_a_planted_mistake_is_found_at_its_line(fixture: str, name: str, count: int, tmp_path: Path):
    mistake = PLANTED[fixture][name]
    text = mistake.planted(case(fixture, count)[2])
    for word, ways in LAYOUTS.items():
        text = re.sub(rf"\b{word}\b", lambda _, ways=ways: ways[COUNTS.index(count)], text)
    answer = judged(fixture, count, text, tmp_path)
    assert answer["status"] == "mismatch", (answer, text)
    found, *_ = answer["hazards"] or [{"kind": answer["found"], "line": answer["line"]}]
    lines = [number for number, line in enumerate(text.splitlines(), 1) if mistake.line in line]
    expected = (mistake.kind, lines[mistake.which]) if lines else lines
    assert (found["kind"], found["line"]) == expected, (answer["reason"], text.splitlines()[found["line"] - 1])
