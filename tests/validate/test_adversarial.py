"""Inputs made to go other ways and to break what a translation may rest on: each finds a mistake that the launch does not show."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from gluonize.judge.inputs.inputs import make_inputs
from gluonize.judge.machine.stages import source_stage
from gluonize.judge.verdict.launch_check import NO_ANSWER, launch_check
from gluonize.judge.verdict.run import validate_pair
from gluonize.read.spec.launch import LaunchSpec

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
BRANCH = """def kernel(x_ptr, out_ptr, n, mode, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    if mode == 37:
        for k in range(0, n, B):
            x += tl.load(x_ptr + i + k)
        n += 1
        x += n
    tl.store(out_ptr + i, x)
"""
GRID = """def kernel(x_ptr, out_ptr, n, tiles, B: tl.constexpr):
    i = tl.arange(0, B)
    p = x_ptr + i
    for t in range(tl.program_id(0), tiles, tl.num_programs(0)):
        acc = tl.zeros((B,), tl.float32)
        for k in range(0, n, B):
            acc += tl.load(p)
            p += B
        p -= tl.cdiv(n, B) * B
        tl.store(out_ptr + t * B + i, acc)
"""
ADDRESS = """def kernel(x_ptr, out_ptr, lo, S, B: tl.constexpr):
    i = tl.arange(0, B)
    p = x_ptr + (tl.program_id(0) + 1) * S
    tl.store(out_ptr + tl.program_id(0) * B + i, tl.load(p + (i - lo)))
"""
SHARED = """def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    y = tl.load(x_ptr + i) * 3.0
    tl.store(out_ptr + i, x * 2.0)
    tl.store(out_ptr + B + i, y)
"""
BYTES = """def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.int32) >> 4)
"""
# What a comparison chooses without a branch; the other value of the mode shows nothing.
MODE = """def kernel(x_ptr, out_ptr, mode, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    x = tl.where(mode == 6, x * 2.0, x)
    x = tl.where(mode != 9, x, x + 1.0)
    tl.store(out_ptr + i, x)
"""
INDEX = """def kernel(x_ptr, index_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + tl.load(index_ptr + i)))
"""
B = 16


def tensor(count: int, dtype: str = "float32", **more) -> dict:
    return {"tensor": {"dtype": dtype, "shape": [count], "stride": [1], "storage": count, "offset": 0, **more}}


def launch(
    tensors: dict[str, dict], scalars: dict[str, int], grid: tuple[int, ...] = (1,), signs: str = "i32"
) -> LaunchSpec:
    kinds = {"float32": "*fp32", "int32": "*i32", "int8": "*i8"}
    signature = {name: kinds[value["tensor"]["dtype"]] for name, value in tensors.items()}
    signature |= dict.fromkeys(scalars, signs) | {"B": "constexpr"}
    attrs = dict.fromkeys(tensors, "DS")
    return LaunchSpec("a", "kernel", "", signature, {"B": B}, attrs, {"num_warps": 1}, grid, {}, tensors | scalars)


PLAIN = {"x_ptr": tensor(512), "out_ptr": tensor(512)}
CASES = {
    "branch": (BRANCH, "n += 1", "n += 2", launch(PLAIN, {"n": 48, "mode": 5}), "mode = 37"),
    "persistent": (GRID, "p -= tl.cdiv(n, B) * B", "p -= 0", launch(PLAIN, {"n": 48, "tiles": 4}, (4,)), "a grid of"),
    "negative": (
        ADDRESS,
        "(i - lo)",
        "tl.maximum(i - lo, 0)",
        launch(PLAIN, {"lo": 0, "S": 100}, (2,)),
        "lo = 5, in larger storage",
    ),
    "shared": (
        SHARED,
        "    y = tl.load(x_ptr + i) * 3.0\n    tl.store(out_ptr + i, x * 2.0)\n",
        "    tl.store(out_ptr + i, x * 2.0)\n    y = tl.load(x_ptr + i) * 3.0\n",
        launch(PLAIN, {}),
        "out_ptr is x_ptr",
    ),
    "bytes": (
        BYTES,
        ">> 4",
        ">> 4 & 15",
        launch({"x_ptr": tensor(B, "int8", range=[0, 7]), "out_ptr": tensor(B, "int32")}, {}),
        "bytes over their full range",
    ),
    "a mode": (MODE, "mode == 6", "mode == 7", launch(PLAIN, {"mode": 0}), "mode = 6"),
    "another mode": (MODE, "mode != 9", "mode != 8", launch(PLAIN, {"mode": 0}), "mode = 9"),
    "indices": (
        INDEX,
        "tl.load(index_ptr + i)",
        "(tl.load(index_ptr + i) & 127)",
        launch({"x_ptr": tensor(512), "index_ptr": tensor(B, "int32", range=[0, 99]), "out_ptr": tensor(B)}, {}),
        "index_ptr up to 511",
    ),
}


def run(folder: Path, text: str, other: str, spec: LaunchSpec, **more):
    texts = []
    for name, body in (("source.py", text), ("other.py", other)):
        (folder / name).write_text(HEAD + body)
        texts.append(source_stage(str(folder / name), spec, "gfx950").text)
    return validate_pair(*texts, spec, **more)


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_found_on_inputs_made_for_it(case: str, tmp_path: Path):
    text, before, after, spec, variant = CASES[case]
    assert text.count(before) == 1
    result = run(tmp_path, text, text.replace(before, after), spec)
    assert result.status in ("mismatch", "hazard") and variant in result.variant, result
    result = run(tmp_path, text, text, spec)
    assert (
        result.status == "validated" and any(variant in one for one in result.variants) and not result.coverage.gaps()
    ), result


def test_inputs_that_the_launch_check_refuses_are_not_tried(tmp_path: Path):
    text, before, after, spec, variant = CASES["negative"]

    def refusal(inputs) -> str:
        return "lo is not 0" if inputs.arguments["lo"] else ""

    result = run(tmp_path, text, text.replace(before, after), spec, refusal=refusal)
    assert result.status == "validated" and not any(one.startswith("lo") for one in result.variants)


def test_a_launch_that_the_launch_check_refuses_is_not_judged(tmp_path: Path):
    """Though the two differ: the translation never runs with it."""
    text, before, after, spec, _ = CASES["negative"]
    result = run(tmp_path, text, text.replace(before, after), spec, refusal=lambda inputs: "kernel: n is odd")
    assert (result.status, result.reason) == (
        "not_runnable",
        "launch: the translation refuses this launch: kernel: n is odd",
    )


def test_a_default_that_no_launch_gave_is_tried(tmp_path: Path):
    text, before, after, spec, _ = CASES["negative"]
    result = run(tmp_path, text, text.replace(before, after), spec, defaults={"lo": 7})
    assert result.variant == "lo left to the defaults" and result.status == "mismatch"


def test_trip_counts_that_no_launch_can_make_are_not_asked_for(tmp_path: Path):
    # As many trips as the program's number and one.
    text = ADDRESS.replace("    i = ", "    for k in range(0, tl.program_id(0) + 1):\n        lo += 0 * S\n    i = ")
    text = text.replace("lo += 0 * S", "tl.store(out_ptr + 300 + k, 1.0)")
    result = run(tmp_path, text, text, launch(PLAIN, {"lo": 0, "S": 100}, (4,)))
    assert result.status == "validated" and not result.coverage.gaps(), result.coverage.verdict()


CHECK = """
kernel.add_pre_run_hook(_check_kernel)


def _check_kernel(x_ptr, out_ptr, lo=LOWEST, *_, **__):
    storage = x_ptr.untyped_storage()
    if storage.size() > 2000:
        raise ValueError("kernel: storage of x_ptr exceeds 2 GiB")
    if lo < 0:
        raise ValueError("kernel: lo is negative")
"""


@pytest.mark.parametrize(
    "lo, x, left_out, said",
    [
        (0, 64, (), ""),
        (-1, 64, (), "kernel: lo is negative"),
        (0, 512, (), "kernel: storage of x_ptr exceeds 2 GiB"),
        (4, 64, ("lo",), "kernel: lo is negative"),
    ],
)
def test_the_launch_check_of_a_file_is_asked(lo: int, x: int, left_out: tuple, said: str):
    from dataclasses import replace

    inputs = make_inputs(launch({"x_ptr": tensor(x), "out_ptr": tensor(64)}, {"lo": lo, "S": 1}))
    refusal = launch_check(ast.parse(CHECK), "kernel", LaunchSpec("k", "kernel", constexprs={"B": B}), {"lo": -5})
    assert refusal(replace(inputs, left_out=left_out)) == said


@pytest.mark.parametrize("statement", ["import sys", "lo.__class__", "open('file')"])
def test_only_what_reads_arguments_is_run(statement: str):
    inputs = make_inputs(launch({"x_ptr": tensor(64)}, {"lo": 0, "S": 1}))
    refusal = launch_check(
        ast.parse(CHECK + f"    {statement}\n"), "kernel", LaunchSpec("k", "kernel", constexprs={"B": B}), {}
    )
    assert refusal(inputs).startswith(NO_ANSWER)


def test_a_file_without_a_check_takes_everything():
    inputs = make_inputs(launch({"x_ptr": tensor(64)}, {"lo": 0, "S": 1}))
    assert launch_check(ast.parse("x = 1"), "kernel", LaunchSpec("k", "kernel"), {})(inputs) == ""


def test_host_code_beside_a_check_is_not_run():
    """Its defaults may be anything."""
    inputs = make_inputs(launch({"x_ptr": tensor(64)}, {"lo": 0, "S": 1}))
    host = "def _pick(n, most=MOST_PROGRAMS):\n    return min(n, most)\n\n\n"
    spec = LaunchSpec("k", "kernel", constexprs={"B": B})
    with_host, alone = (
        launch_check(ast.parse(text), "kernel", spec, {"lo": -5})(inputs) for text in (host + CHECK, CHECK)
    )
    assert with_host == alone
