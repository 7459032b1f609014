"""What a kernel may not lose of its source, though it computes the same terms: barriers and atomic operations between accesses, and what it may not
promise beside them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import fixture_set
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.prove.both_sides import prove
from gluonize.judge.prove.stated_bounds import Contract, read_contract
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.trace.model.module import Module
from gluonize.trace.model.parse import parse_module

SIGNATURE = {"x": "*fp32", "y": "*fp32", "i": "*i32", "n": "i32"}
KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x, y, i, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    {}
"""
BARRIER, FOR = "tl.debug_barrier()", "for k in range(0, n):"
STORE, TURNED, BACK = "tl.store(y + offs, tl.load(x + offs))", "z = tl.load(y + B - 1 - offs)", "tl.store(x + offs, z)"
IN_PLACE = ("    z = tl.load(x + B - 1 - offs)", "    tl.store(x + offs, z + 1.0)")
COUNT, PART = "k = tl.atomic_add(i, 1)", "w = tl.load(x + offs)"
LAST = "tl.store(y + offs, tl.where(k == n, w, 0.0))"
INDEX, HINTED = "j = tl.load(i + offs)", "j = tl.multiple_of(tl.load(i + offs), [{0}])"
TAKEN = "tl.store(y + offs, tl.load(x + j))"
PAIRS = {
    "a barrier is kept": (True, (STORE, BARRIER, TURNED, BACK), (STORE, BARRIER, TURNED, BACK)),
    "none before a load": (False, (STORE, BARRIER, TURNED, BACK), (STORE, TURNED, BACK)),
    "none before a store": (False, (PART, BARRIER, "tl.store(x + offs, -w)"), (PART, "tl.store(x + offs, -w)")),
    "none was there": (True, (FOR, *IN_PLACE), (FOR, *IN_PLACE)),
    "two in a loop": (
        True,
        (FOR, IN_PLACE[0], f"    {BARRIER}", IN_PLACE[1], f"    {BARRIER}"),
        (FOR, IN_PLACE[0], f"    {BARRIER}", IN_PLACE[1], f"    {BARRIER}"),
    ),
    "one of two in a loop": (
        False,
        (FOR, IN_PLACE[0], f"    {BARRIER}", IN_PLACE[1], f"    {BARRIER}"),
        (FOR, IN_PLACE[0], f"    {BARRIER}", IN_PLACE[1]),
    ),
    "a load before what it waits for": (False, (COUNT, PART, LAST), (PART, COUNT, LAST)),
    "a load before what orders nothing": (
        True,
        (COUNT.replace("1)", "1, sem='relaxed')"), PART, LAST),
        (PART, COUNT.replace("1)", "1, sem='relaxed')"), LAST),
    ),
    "a load behind what tells that it was made": (
        False,
        (PART, "tl.atomic_add(i, 1)", "tl.store(y + offs, w)"),
        ("tl.atomic_add(i, 1)", PART, "tl.store(y + offs, w)"),
    ),
    "a load that was behind it": (
        True,
        ("tl.atomic_add(i, 1)", PART, "tl.store(y + offs, w)"),
        (PART, "tl.atomic_add(i, 1)", "tl.store(y + offs, w)"),
    ),
    "what is assumed in a branch": (
        False,
        ("if n > 3:", "    tl.assume(n < 9)", f"    {STORE}", "else:", f"    {BACK.replace(', z', ', 1.0')}"),
        ("tl.assume(n < 9)", "if n > 3:", f"    {STORE}", "else:", f"    {BACK.replace(', z', ', 1.0')}"),
    ),
    "what is assumed in a loop": (
        False,
        (FOR, "    tl.assume(n < 9)", *IN_PLACE),
        ("tl.assume(n < 9)", FOR, *IN_PLACE),
    ),
    "what is assumed in the same loop": (
        True,
        (FOR, "    tl.assume(n < 9)", *IN_PLACE),
        (FOR, "    tl.assume(n < 9)", *IN_PLACE),
    ),
    "a quotient before its branch": (
        False,
        ("if n > 0:", "    tl.store(y + offs, tl.load(x) / (7 // n))"),
        ("z = 7 // n", "if n > 0:", "    tl.store(y + offs, tl.load(x) / z)"),
    ),
    "a quotient in its branch": (
        True,
        ("z = 7 // n", "if n > 0:", "    tl.store(y + offs, tl.load(x) / z)"),
        ("if n > 0:", "    tl.store(y + offs, tl.load(x) / (7 // n))"),
    ),
    "the same hint": (True, (HINTED.format(4), TAKEN), (HINTED.format(4), TAKEN)),
    "a hint of its own": (False, (INDEX, TAKEN), (HINTED.format(4), TAKEN)),
    "a stronger hint": (False, (HINTED.format(4), TAKEN), (HINTED.format(8), TAKEN)),
    "a hint that follows": (
        True,
        ("tl.store(y + offs, tl.load(x + offs + 8 * n))",),
        ("tl.store(y + offs, tl.load(x + offs + tl.multiple_of(8 * n, 8)))",),
    ),
    "a cached load of what others store": (
        False,
        ("tl.store(y + offs, tl.load(x + offs, cache_modifier='.cv'))",),
        ("tl.store(y + offs, tl.load(x + offs))",),
    ),
}


def module(folder, *lines: str) -> Module:
    file = folder / "kernel.py"
    file.write_text(KERNEL.format("\n    ".join(lines)))
    given = {**SIGNATURE, "B": "constexpr"}
    attrs = {"x": "DS", "y": "DS", "i": "DS"}
    spec = LaunchSpec("kernel", "kernel", str(file), given, {"B": 128}, attrs, {"num_warps": 4}, (1,))
    return parse_module(source_stage(str(file), spec, "gfx950").text)


@pytest.mark.parametrize("holds, source, other", PAIRS.values(), ids=PAIRS)
def test_order_and_hints(tmp_path, holds, source, other):
    verdict = prove(module(tmp_path, *source), module(tmp_path, *other))
    assert verdict.holds == holds, (verdict.word, verdict.why)


def test_arguments_are_promised_what_the_launch_says(tmp_path):
    source = module(tmp_path, STORE)
    text = source.text.replace("%n: i32 ", "%n: i32 {tt.divisibility = 16 : i32} ")
    assert text != source.text and prove(source, source).holds
    assert "it promises of n" in prove(source, parse_module(text)).why


@pytest.mark.parametrize("line", ["arith.addi", "tt.store"])
def test_what_is_not_defined_is_refused(tmp_path, line):
    source = module(tmp_path, STORE)
    assert line in source.text
    other = re.sub(rf"({line} )%\w+", r"\1%nothing", source.text, count=1)
    verdict = prove(source, parse_module(other))
    assert (verdict.word, verdict.why) == ("not proved", "%nothing is used where it is not defined")


def golden(fixture: str, target: str, **changed) -> tuple[str, str, Contract]:
    """Both stages of the first launch of a fixture, and what the output's header states."""
    folder = fixture_set.Fixture(fixture_set.ROOT / fixture)
    spec = replace(read_launches(str(folder.launches_file))[0], **changed)
    source = source_stage(str(folder.kernel_file), spec, target)
    output = folder.golden_file(target)
    contract = read_contract(output.read_text(), spec.kernel, spec.constexprs)
    return source.text, translated_stage(str(output), spec, target).text, contract


@pytest.mark.parametrize("programs, holds", [(1 << 18, True), (1 << 20, False)])
def test_buffers_reach_2_gib(programs, holds):
    """Behind that they load 0, though the address is the source's."""
    aligned = dict.fromkeys(("x_ptr", "y_ptr", "output_ptr", "n_elements"), "D")
    most = (("n_elements", programs * 1024), ("grid[0]", programs))
    stages = map(parse_module, golden("vector_add", "gfx950", attrs=aligned)[:2])
    verdict = prove(*stages, Contract(most=most, near=frozenset()))
    assert verdict.holds == holds, verdict.why


@pytest.mark.parametrize("behind", [True, False])
def test_nothing_is_accessed_while_a_store_is_under_way(behind):
    """A store behind the wait for the tile that the data mover stores is the source's, one before it may come first."""
    added = (
        "%one = arith.constant 1 : i32",
        "%next = tt.addptr %c_ptr, %one : !tt.ptr<f16>, i32",
        "%value = arith.constant 1.000000e+00 : f16",
        "tt.store %next, %value : !tt.ptr<f16>",
    )
    *texts, contract = golden("descriptor_matmul", "gfx1250")
    source, other = (text.splitlines() for text in texts)
    last = [max(i for i, line in enumerate(other) if word in line) for word in ("async_tdm_wait", "tt.return")]
    end = max(i for i, line in enumerate(source) if "tt.return" in line)
    source[end:end] = added
    other[last[behind] : last[behind]] = added
    verdict = prove(*(parse_module("\n".join(lines)) for lines in (source, other)), contract)
    assert verdict.holds == behind, verdict.why
