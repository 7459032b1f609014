"""`gluonize raise`: the file compiles to the machine code of the module that it was made from, and computes the same."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.amdgcn import parse_instructions
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.lift.kernel import lift_kernel
from gluonize.product.cli.edge import run
from gluonize.raised.kernel import _in_words, raise_module
from gluonize.raised.naming.unique import with_unique_values
from gluonize.raised.table import ROWS, Row
from gluonize.raised.waits import Groups
from gluonize.read.kernels.load import load_kernel
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.rules import gluon
from gluonize.trace.model.parse import parse_module
from translation_of import launch

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SCHEMA = json.loads(importlib.resources.files("gluonize.product.cli").joinpath("results.schema.json").read_text())
LOWER = "gluonize.judge.lower.jobs:lower_file"
VALIDATE = "gluonize.judge.verdict.run:validate_pair"
# Between them: loops with carried tiles, copies and waits, LDS, products, reductions, scans, branches, masks, casts.
QUICK = [("matmul/fp16", "gfx950"), ("softmax/fp16", "gfx1250"), ("scan/linear_recurrence", "gfx1100")]
SLOW = [
    ("flash_attention/causal", "gfx950"),
    ("layer_norm/backward_dx", "gfx942"),
    ("top_k/topk", "gfx1201"),
    ("int8_matmul/int8", "gfx1250"),
    ("cross_entropy/forward", "gfx942"),
    ("dropout/fp32", "gfx950"),
]
MODULE = """
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @kernel(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %n: i32) attributes {noinline = false} {
BODY
    tt.return
  }
}
"""


def module_of(*lines: str) -> str:
    return MODULE.replace("BODY", "\n".join(f"    {line}" for line in lines))


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(1) as pool:
        yield pool


def launch_of(name: str) -> tuple[str, LaunchSpec]:
    folder = FIXTURES / name.partition("/")[0]
    spec = next(spec for spec in read_launches(str(folder / "launches.json")) if spec.id == name)
    return str(folder / spec.source), spec


def instructions(assembly: str) -> list[tuple[str, str]]:
    """What a machine runs; labels and symbols under one name."""
    found = (line for line in parse_instructions(assembly) if not line.label)
    return [(line.op, re.sub(r"\.L\w+|\w+@\w+", "label", line.operands).strip()) for line in found]


def round_trip(pool: WorkerPool, folder: Path, name: str, target: str) -> tuple[dict, dict, LaunchSpec]:
    """The stages of Triton's compile, those of the raised file, and its launch with the fixture's values."""
    source, spec = launch_of(name)
    stages = pool.call(LOWER, source, spec, target, keep_stages=True).stages
    raised = raise_module(stages["ttgir"])
    file = folder / "raised.py"
    file.write_text(raised.text)
    values = {key: value for key, value in spec.values.items() if key in raised.spec.signature}
    own = replace(raised.spec, values=values, grid=spec.grid)
    return stages, pool.call(LOWER, str(file), own, target, keep_stages=True).stages, own


@pytest.mark.compile
@pytest.mark.parametrize("name, target", [*QUICK, *(pytest.param(*row, marks=pytest.mark.slow) for row in SLOW)])
def test_machine_code_and_results_are_those_of_the_module(pool, tmp_path, name, target):
    module, raised, spec = round_trip(pool, tmp_path, name, target)
    assert instructions(raised["amdgcn"]) == instructions(module["amdgcn"])
    result = pool.call(VALIDATE, module["ttgir"], raised["ttgir"], spec, with_variants=False)
    assert (result.status, result.bitwise) == ("validated", True), result.reason


@pytest.mark.compile
def test_a_mistake_in_the_table_is_found(pool, tmp_path, monkeypatch):
    monkeypatch.setitem(ROWS, "arith.divf", Row("{1} / {0}", broadcasts=True))
    module, raised, spec = round_trip(pool, tmp_path, "softmax/fp16", "gfx1250")
    assert instructions(raised["amdgcn"]) != instructions(module["amdgcn"])
    assert pool.call(VALIDATE, module["ttgir"], raised["ttgir"], spec, with_variants=False).status == "mismatch"


def statements(text: str) -> list[str]:
    """What a file calls, in order."""
    body = text[text.index("\nfrom ") :]
    return [
        word
        for line in body.splitlines()
        if "#" not in line and not line.startswith("def ")
        for word in re.findall(r"(\w+)\(", line)
    ]


# Our own translations: of descriptors, rings, copies, scaled products, scans, and of several warps' work.
OWN = [("softmax/fp16", "gfx1250"), ("matmul/fp16", "gfx1250_warp_specialized")]
SLOW_OWN = [
    ("matmul/fp16", "gfx950"),
    ("matmul/fp16", "gfx1250"),
    ("flash_attention/causal", "gfx950"),
    ("descriptor_matmul/fp16", "gfx1250"),
    ("batched_matmul/64x64x64", "gfx1201"),
    ("flash_attention/causal", "gfx1250_warp_specialized"),
]


@pytest.mark.compile
@pytest.mark.parametrize("name, golden", [*OWN, *(pytest.param(*row, marks=pytest.mark.slow) for row in SLOW_OWN)])
def test_what_we_emit_is_raised_to_the_same_machine_code(pool, tmp_path, name, golden):
    source, spec = launch_of(name)
    target = golden.partition("_")[0]
    golden = Path(source).parent / "golden" / f"{golden}.py"
    stages = pool.call(LOWER, str(golden), spec, target, keep_stages=True).stages
    raised = raise_module(stages["ttgir"])
    file = tmp_path / "raised.py"
    file.write_text(raised.text)
    again = pool.call(LOWER, str(file), raised.spec, target, keep_stages=True).stages
    assert instructions(again["amdgcn"]) == instructions(stages["amdgcn"])
    # Once more, and nothing changes but names and lines of the source; Triton may have the module of another file with this text.
    twice = raise_module(again["ttgir"], numbers=True).text
    assert statements(twice) == statements(raise_module(stages["ttgir"], numbers=True).text)


LIFTED = [("softmax/fp16", "gfx950")]
SLOW_LIFTED = [
    ("dropout/fp32", "gfx950"),
    ("fp8_matmul/64x64x128", "gfx950"),
    ("embedding/backward", "gfx942"),
    ("split_k_matmul/fp16", "gfx950"),
    ("matmul/fp16", "gfx950"),
    ("int8_matmul/int8", "gfx942"),
    ("flash_attention/causal", "gfx950"),
    ("attention_backward/full", "gfx950"),
    ("layer_norm/forward", "gfx942"),
]


@pytest.mark.compile
@pytest.mark.parametrize(
    "name, target", [*LIFTED, *(pytest.param(*row, marks=pytest.mark.slow) for row in SLOW_LIFTED)]
)
def test_what_is_raised_is_lifted_to_the_source_again(pool, tmp_path, name, target):
    """Source, raised kernel and lifted kernel check each other: from the layouts on, before loops are pipelined."""
    source, spec = launch_of(name)
    stages = pool.call(LOWER, source, spec, target, keep_stages=True).stages
    module = pool.call("gluonize.trace.passes.stages:module_at", stages["ttir"], "layouts", target, spec.options)
    raised = raise_module(module)
    file, lifted = tmp_path / "raised.py", tmp_path / "lifted.py"
    file.write_text(raised.text)
    values = {key: value for key, value in spec.values.items() if key in raised.spec.signature}
    own = replace(raised.spec, source=str(file), target=f"hip:{target}", values=values, grid=spec.grid)
    lifted.write_text(lift_kernel(load_kernel(str(file), spec.kernel), own).text)
    again = replace(own, source=str(lifted), target="")
    made = pool.call(LOWER, str(lifted), again, target, keep_stages=True).stages
    result = pool.call(VALIDATE, stages["ttgir"], made["ttgir"], again, with_variants=False)
    assert result.status == "validated", result.reason


def test_an_operation_without_a_spelling_is_refused_with_its_line():
    with pytest.raises(TranslationError, match=r"rocdl\.s\.sleep in line 5 of the module"):
        raise_module(module_of("rocdl.s.sleep 1"))


@pytest.mark.parametrize("text", ["", "not a module", module_of().replace("hip:gfx950", "cuda:90"), 2 * module_of()])
def test_only_modules_for_amd_gpus(text):
    with pytest.raises(TranslationError, match=r"\[raise-module\]"):
        raise_module(text)


def test_unsigned_operations_have_unsigned_operands():
    text = raise_module(
        module_of("%a = arith.divui %n, %n : i32", "%b = arith.cmpi ult, %a, %n : i32", "llvm.intr.assume %b : i1")
    ).text
    assert "gl.assume((n.to(gl.uint32) // n.to(gl.uint32)).to(gl.int32).to(gl.uint32) < n.to(gl.uint32))" in text


STORED = (
    "%q = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #blocked>",
    "%v = tt.splat %f : f32 -> tensor<256xf32, #blocked>",
    "tt.store %q, %v : tensor<256x!tt.ptr<f32>, #blocked>",
)


def test_assembly_without_operands_has_a_type_and_ptx_is_refused():
    def asm(text: str) -> str:
        return f'%a = tt.elementwise_inline_asm "{text}" {{constraints = "=s", packed_element = 1 : i32, pure = false}} -> i32'

    known = module_of(asm("s_getreg_b32 $0, 4"), "%f = arith.sitofp %a : i32 to f32", *STORED)
    assert 'gl.inline_asm_elementwise("s_getreg_b32 $0, 4", "=s", [], gl.int32, False, 1)' in raise_module(known).text
    with pytest.raises(TranslationError, match="this is PTX"):
        raise_module(known.replace("s_getreg_b32 $0, 4", "mov.u32 $0, %smid;"))


@pytest.mark.parametrize(
    "spelled, text",
    [
        ("0x7F", "gl.full([], 127, gl.uint8).to(gl.float8e4nv, bitcast=True)"),
        ("1.0", "1.0"),
        ("-0.0", "(-gl.full([], 0.0,"),
    ],
)
def test_numbers_of_8_bits(spelled, text):
    kind = "tensor<256xf8E4M3FN, #blocked>"
    lines = (
        f"%c = arith.constant dense<{spelled}> : {kind}",
        "%t = arith.constant true",
        f"%q = tt.splat %p : !tt.ptr<f8E4M3FN> -> tensor<256x!tt.ptr<f8E4M3FN>, #blocked>",
        f"%x = tt.load %q : tensor<256x!tt.ptr<f8E4M3FN>, #blocked>",
        f"%y = arith.select %t, %x, %c : i1, {kind}",
        f"tt.store %q, %y : tensor<256x!tt.ptr<f8E4M3FN>, #blocked>",
    )
    assert text in raise_module(module_of(*lines).replace("!tt.ptr<f32> {", "!tt.ptr<f8E4M3FN> {")).text


MASKED = """
import triton
import triton.language as tl


@triton.jit
def _keep_larger(x, y):
    return tl.where(x > y, x, y * 1.5)


@triton.jit
def masked(x_ptr, out_ptr, n, m, stop, BLOCK: tl.constexpr, COLS: tl.constexpr, SKIP: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    cols = tl.arange(0, COLS)
    x_ptrs = x_ptr + rows[:, None] * m + cols[None, :]
    out_ptr += tl.program_id(0) * BLOCK
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, COLS):
        x = tl.load(x_ptrs, mask=(cols[None, :] < n - start) & (rows[:, None] != SKIP), other=0.0)
        total += tl.reduce(x, 1, _keep_larger)
        x_ptrs += COLS * stop
    tl.store(out_ptr + rows, total)
"""


@pytest.mark.compile
def test_names_say_what_things_are(pool, tmp_path):
    """Functions that combine keep their names, what is added to a pointer is no pointer, steps are numbers, masks are as small as in the source."""
    source = tmp_path / "masked.py"
    source.write_text(MASKED)
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "m": "i32", "stop": "i32"}
    spec = launch("masked", signature, {"BLOCK": 64, "COLS": 32, "SKIP": 7})
    stages = pool.call(LOWER, str(source), spec, "gfx950", keep_stages=True).stages
    raised = raise_module(stages["ttgir"])
    for said in ("def _keep_larger(x, y):", "out_offs = ", "x_step = stop * COLS", "!= SKIP", "SKIP: gl.constexpr"):
        assert said in raised.text, said
    assert "out_ptr_2 = " not in raised.text and "gl.full([BLOCK, COLS], stop" not in raised.text
    (tmp_path / "raised.py").write_text(raised.text)
    again = pool.call(LOWER, str(tmp_path / "raised.py"), raised.spec, "gfx950", keep_stages=True).stages
    assert instructions(again["amdgcn"]) == instructions(stages["amdgcn"])


def test_promises_of_numbers_are_kept():
    promise = "{tt.contiguity = dense<4> : tensor<1xi32>, tt.divisibility = dense<16> : tensor<1xi32>}"
    kind = "tensor<256xi32, #blocked>"
    range_, sum_ = (
        f"%r = tt.make_range {{end = 256 : i32, start = 0 : i32}} : {kind}",
        f"%s = arith.addi %r, %r {promise} : {kind}",
    )
    text = raise_module(
        module_of(
            range_,
            sum_,
            f"%q = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #blocked>",
            f"%o = tt.addptr %q, %s : tensor<256x!tt.ptr<f32>, #blocked>, {kind}",
            f"%z = arith.constant dense<1.0> : tensor<256xf32, #blocked>",
            f"tt.store %o, %z : tensor<256x!tt.ptr<f32>, #blocked>",
        )
    ).text
    assert "gl.store(p + gl.max_contiguous(gl.multiple_of(r + r, [16]), [4]), gl.full([256], 1.0, gl.float32" in text


def test_values_of_regions_beside_each_other_get_names_of_their_own():
    text = module_of(
        "%c = arith.cmpi slt, %n, %n : i32",
        "%r = scf.if %c -> (i32) {",
        "  %x = arith.addi %n, %n : i32",
        "  scf.yield %x : i32",
        "} else {",
        "  %x = arith.muli %n, %n : i32",
        "  scf.yield %x : i32",
        "}",
        "%d = arith.cmpi slt, %r, %n : i32",
        "llvm.intr.assume %d : i1",
    )
    function = with_unique_values(parse_module(text).entry)
    results = [value for op in function.walk() for value in op.results]
    assert len(results) == len(set(results)) == 5
    lines = raise_module(text).text.splitlines()
    at = lines.index("    if n < n:")
    assert lines[at : at + 5] == [
        "    if n < n:",
        "        r = n + n",
        "    else:",
        "        r = n * n",
        "    gl.assume(r < n)",
    ]


def groups(*body: str) -> int:
    """The groups that may be under way at the last wait of a loop that begins with one group, whose token it carries."""
    text = module_of(
        "%c0 = arith.constant 0 : i32",
        "%c1 = arith.constant 1 : i32",
        "%first = ttg.async_commit_group",
        "%second = ttg.async_commit_group",
        "%end:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %first, %b = %second) -> (!ttg.async.token, !ttg.async.token)  : i32 {",
        *(f"  {line}" for line in body),
        "}",
    )
    function = parse_module(text).entry
    wait = [op for op in function.walk() if op.name == "ttg.async_wait"][-1]
    return Groups(function, "ttg.async_commit_group").after(wait.operands, wait)


def test_groups_behind_what_is_waited_for_are_counted():
    """Of a ring of two: when the oldest is waited for, one more is under way; behind a further copy two are."""
    wait, more = "%w = ttg.async_wait %a {num = 0 : i32}", "%new = ttg.async_commit_group"
    hand_on = "scf.yield %b, %new : !ttg.async.token, !ttg.async.token"
    assert groups(wait, more, hand_on) == 1
    assert groups(more, wait, hand_on) == 2
    assert groups(more, wait.replace("%a", "%new"), hand_on) == 0
    assert groups(more, wait, hand_on.replace("%b, %new", "%new, %new")) == 1


def lines_of(*body: str) -> list[str]:
    """The statements that a module's kernel becomes."""
    text = raise_module(module_of(*body)).text
    return text[text.index("def kernel") :].rstrip().splitlines()[1:]


CONDITIONS = ("%c = arith.cmpi slt, %n, %n : i32", "%d = arith.cmpi sgt, %n, %n : i32")


def test_a_return_in_a_branch_ends_it():
    """Triton makes one block of equal ones: each branch says its own return."""
    ways = "cf.cond_br %c, ^bb1, ^bb2", "^bb1:", "tt.return", "^bb2:", "cf.cond_br %d, ^bb1, ^bb3", "^bb3:"
    assert lines_of(*CONDITIONS, *ways, "llvm.intr.assume %c : i1") == [
        "    c = n < n",
        "    d = n > n",
        "    if c:",
        "        return",
        "    if d:",
        "        return",
        "    gl.assume(c)",
    ]


def test_branches_of_which_one_may_return_go_on_together():
    given = "^bb3(%x : i32)"
    ways = (
        "%k = arith.constant 7 : i32",
        f"cf.cond_br %c, ^bb1, {given.replace('%x', '%n')}",
        "^bb1:",
        f"cf.cond_br %d, ^bb2, {given.replace('%x', '%k')}",
        "^bb2:",
        "tt.return",
        "^bb3(%r: i32):",
        "%e = arith.cmpi slt, %r, %n : i32",
        "llvm.intr.assume %e : i1",
    )
    assert lines_of(*CONDITIONS, *ways) == [
        "    c = n < n",
        "    d = n > n",
        "    if c:",
        "        if d:",
        "            return",
        "        r = 7",
        "    else:",
        "        r = n",
        "    gl.assume(r < n)",
    ]


def test_the_branch_that_ends_stands_inside():
    """Only one of two branches goes on where those around them do: it may not be the one that is written first."""
    ways = (
        "cf.cond_br %c, ^bb1, ^bb4",
        "^bb1:",
        "cf.cond_br %d, ^bb4, ^bb2",
        "^bb2:",
        "llvm.intr.assume %c : i1",
        "tt.return",
        "^bb4:",
        "llvm.intr.assume %d : i1",
    )
    assert lines_of(*CONDITIONS, *ways)[2:] == [
        "    if c:",
        "        if not d:",
        "            gl.assume(c)",
        "            return",
        "    gl.assume(d)",
    ]


def test_blocks_that_come_back_to_themselves_are_refused():
    with pytest.raises(TranslationError, match="come back to themselves"):
        raise_module(module_of(*CONDITIONS, "cf.br ^bb1", "^bb1:", "cf.cond_br %c, ^bb1, ^bb2", "^bb2:"))


EARLY = """
import triton
import triton.language as tl


@triton.jit
def early(x_ptr, y_ptr, n, limit, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= limit:
        return
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    if pid == 1:
        tl.store(y_ptr + offs, x + 1.0, mask=offs < n)
        return
    tl.store(y_ptr + offs, x * 2.0, mask=offs < n)
"""


@pytest.mark.compile
@pytest.mark.parametrize("stage", ["last", "layouts"])
def test_a_kernel_that_returns_early_and_stages(pool, tmp_path, stage):
    """The machine code is the module's; at an earlier stage the results are."""
    source, file = tmp_path / "early.py", tmp_path / "raised.py"
    source.write_text(EARLY)
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "limit": "i32"}
    values = {"n": 700, "limit": 3}
    spec = launch("early", signature, {"BLOCK": 256}, values=values)
    spec = replace(spec, grid=(4,))
    stages = pool.call(LOWER, str(source), spec, "gfx1100", keep_stages=True).stages
    module = stages["ttgir"]
    if stage != "last":
        module = pool.call("gluonize.trace.passes.stages:module_at", stages["ttir"], stage, "gfx1100", spec.options)
        assert "tt.load" in module and "buffer_load" not in module and "buffer_load" in stages["ttgir"]
    raised = raise_module(module)
    file.write_text(raised.text)
    own = replace(raised.spec, values=values, grid=spec.grid)
    made = pool.call(LOWER, str(file), own, "gfx1100", keep_stages=True).stages
    if stage == "last":
        assert instructions(made["amdgcn"]) == instructions(stages["amdgcn"])
    result = pool.call(VALIDATE, stages["ttgir"], made["ttgir"], own, with_variants=False)
    assert (result.status, result.bitwise) == ("validated", True), result.reason


def test_files_and_caches(tmp_path, capsys, monkeypatch):
    """A file beside which its launch lies; the list of a cache, its newest kernel, all of them with what is refused."""
    monkeypatch.chdir(tmp_path)
    good, bad = module_of(
        "llvm.intr.assume %true : i1",
    ).replace(
        "llvm", "%true = arith.constant true\n    llvm"
    ), module_of("rocdl.s.barrier")
    for name, text, kernel in (("one", good, "kernel"), ("two", bad, "other")):
        folder = tmp_path / "cache" / name
        folder.mkdir(parents=True)
        (folder / f"{kernel}.ttgir").write_text(text.replace("@kernel", f"@{kernel}"))
        (folder / f"{kernel}.ttir").write_text("")
        (folder / f"{kernel}.json").write_text('{"num_warps": 4, "waves_per_eu": 2}')
    assert run(["raise", "cache/one/kernel.ttgir", "-o", "out.py"]) == 0
    spec = json.loads((tmp_path / "out.launches.json").read_text())["launches"][0]
    assert spec["signature"] == {"p": "*fp32", "n": "i32"} and spec["attrs"] == {"p": "DS"}
    assert spec["options"] == {"num_warps": 4, "waves_per_eu": 2} and spec["source"] == "out.py"
    capsys.readouterr()
    assert run(["raise", "--cache", "cache"]) == 0
    listed = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in listed[1:]]
    assert [[row[0], row[1], row[2], row[3], row[-1]] for row in rows] == [
        ["kernel", "gfx950", "f32", "4", "one"],
        ["other", "gfx950", "f32", "4", "two"],
    ]
    assert run(["raise", "cache/one"]) == 0
    assert capsys.readouterr().out == (tmp_path / "out.py").read_text()
    for asked, said in (
        (["cache"], "0 modules are in this folder"),
        (["--cache", "cache", "-t", "gfx942"], "no kernel that Triton compiled for gfx942"),
        (["--cache", "cache", "-k", "kernel", "-k", "other"], "several kernels need a folder"),
        (["--cache", "cache", "-k", "no"], "there are kernel, other"),
        (["--cache", "cache", "--together"], "--together needs"),
        (["cache/one/kernel.ttgir", "-k", "kernel"], "-k names kernels of a cache"),
    ):
        assert run(["raise", *asked]) == 2 and said in capsys.readouterr().err
    assert run(["raise", "--cache", "cache", "-k", "kernel"]) == 0
    assert capsys.readouterr().out == (tmp_path / "out.py").read_text()
    assert run(["raise", "--cache", "cache", "-o", "all"]) == 2
    assert "rocdl.s.barrier" in capsys.readouterr().err
    assert [path.name for path in sorted((tmp_path / "all").glob("*.py"))] == ["kernel_gfx950.py"]
    assert run(["raise", "--cache", "cache", "-k", "missing"]) == 2


@pytest.mark.compile
def test_tile_sizes_that_move_together_are_parameters(pool, tmp_path, monkeypatch, capsys):
    """Of a kernel that was compiled for several tiles there is one text; with each tile it has the machine code of that module."""
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "early.py"
    source.write_text(EARLY)
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "limit": "i32"}
    codes = {}
    for block in (256, 512):
        folder = tmp_path / "cache" / str(block)
        folder.mkdir(parents=True)
        stages = pool.call(
            LOWER, str(source), launch("early", signature, {"BLOCK": block}), "gfx1100", keep_stages=True
        )
        codes[block] = instructions(stages.stages["amdgcn"])
        for name in ("ttir", "ttgir"):
            (folder / f"early.{name}").write_text(stages.stages[name])
        (folder / "early.json").write_text('{"num_warps": 4}')
    assert run(["raise", "--cache", "cache", "-k", "early", "--together", "-o", "early_raised.py"]) == 0
    text = (tmp_path / "early_raised.py").read_text()
    assert "BLOCK: gl.constexpr):" in text and "gl.arange(0, BLOCK, " in text and "pid * BLOCK" in text
    specs = list(read_launches(str(tmp_path / "early_raised.launches.json")))
    assert sorted(spec.constexprs["BLOCK"] for spec in specs) == [256, 512]
    for spec in specs:
        made = pool.call(LOWER, str(tmp_path / "early_raised.py"), spec, "gfx1100", keep_stages=True).stages
        assert instructions(made["amdgcn"]) == codes[spec.constexprs["BLOCK"]]
    for path in (tmp_path / "cache" / "512").iterdir():
        path.write_text(path.read_text().replace("arith.mulf", "arith.addf"))
    capsys.readouterr()
    assert run(["raise", "--cache", "cache", "-k", "early", "--together", "-o", "other.py"]) == 2
    assert "differ in more than tile sizes" in capsys.readouterr().err and not (tmp_path / "other.py").exists()


@pytest.mark.compile
def test_what_translation_refuses_is_raised_and_said_so(tmp_path, capsys, monkeypatch):
    """A kernel without a loop has no steps to cut between: asked for all the same, it is refused, and raised."""
    monkeypatch.chdir(tmp_path)
    source, spec = launch_of("vector_add/fp32")
    (tmp_path / "launches.json").write_text(json.dumps({"version": 1, "launches": [spec.as_json()]}))
    words = ["translate", source, "-k", "add_kernel", "-t", "gfx1100", "-l", "launches.json", "-o", "add.py"]
    asked = [*words, "--choose", "programs=stream-k"]
    assert run([*asked, "--fallback", "raise", "--json", "results.json"]) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    jsonschema.validate(results, SCHEMA)
    (entry,) = results["results"]
    raised = entry["raised"]
    assert (entry["status"], entry["output"], raised["verdict"]) == ("refused", None, "validated")
    assert raised["output"] == "add.add_kernel.raised.py" and raised["why"] == entry["diagnostics"][0]["message"]
    last = capsys.readouterr().out.splitlines()[-3:]
    assert "RAISED, NOT TRANSLATED: add.add_kernel.raised.py is what Triton compiled, validated" in last[0]
    assert "no loop" in last[1] or "cannot be cut" in last[1]
    assert "def add_kernel(" in (tmp_path / "add.add_kernel.raised.py").read_text()
    assert not (tmp_path / "add.py").exists() and (tmp_path / "add.add_kernel.raised.launches.json").exists()
    assert run([*asked, "--fallback", "nothing"]) == 2


def test_a_reduction_takes_elements_where_they_are():
    """Of a reshape that may change their order: no reduction needs them moved, whatever else reads them does."""
    blocked = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>"
    made = (
        "%x = arith.constant dense<1.0> : tensor<1024xf32, #blocked>",
        "%y = math.exp %x : tensor<1024xf32, #blocked>",
        f"%z = tt.reshape %y allow_reorder : tensor<1024xf32, #blocked> -> tensor<1024xf32, {blocked}>",
    )
    sum_ = (
        '%s = "tt.reduce"(%z) <{axis = 0 : i32}> ({',
        "^bb0(%a: f32, %b: f32):",
        "  %c = arith.addf %a, %b : f32",
        "  tt.reduce.return %c : f32",
        f"}}) : (tensor<1024xf32, {blocked}>) -> f32",
        "tt.store %p, %s : !tt.ptr<f32>",
    )
    assert (
        "gl.store(p, gl.sum(gl.exp(gl.full([1024], 1.0, gl.float32, layout)), 0))"
        in raise_module(module_of(*made, *sum_)).text
    )
    other = f"%w = arith.addf %z, %z : tensor<1024xf32, {blocked}>"
    assert "gl.convert_layout(" in raise_module(module_of(*made, *sum_, other)).text


def test_a_descriptor_that_host_code_makes_is_one_parameter():
    text = module_of("%o = tt.get_program_id x : i32", "llvm.intr.assume %c : i1").replace(
        "%p: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}",
        '%d: !tt.tensordesc<64x32xf16, #shared> loc("d"(#loc)), '
        '%r: i32 loc("d.shape.0"(#loc)), %s: i64 loc("d.stride.0"(#loc))',
    )
    shared = '#loc = loc("kernel.py":1:1)\n'
    shared += "#shared = #ttg.padded_shared<[32:+8] {order = [1, 0], shape = [64, 32]}>\n"
    text = text.replace("%o = tt.get_program_id x : i32", "%c = arith.cmpi slt, %r, %n : i32")
    raised = raise_module((shared + text).replace("gfx950", "gfx1250").replace("64 : i32}", "32 : i32}"))
    assert "def kernel(d, n):" in raised.text and "gl.assume(d.shape[0] < n)" in raised.text
    assert raised.spec.signature["d"].startswith("tensordesc<fp16[64, 32],PaddedSharedLayout.with_identity_for(")
    assert "d: a triton.experimental.gluon.amd.cdna5.TensorDescriptor of blocks [64, 32]" in raised.text


def test_each_turn_of_a_loop_starts_those_inside_anew():
    """A variable that an inner loop goes on with is made in the loop around it."""
    inner = (
        "%first = arith.muli %n, %n : i32",
        "%c0 = arith.constant 0 : i32",
        "%c1 = arith.constant 1 : i32",
        "scf.for %i = %c0 to %n step %c1  : i32 {",
        "  %own = arith.addi %i, %n : i32",
        "  %two:2 = scf.for %j = %c0 to %n step %c1 iter_args(%x = %first, %y = %own) -> (i32, i32)  : i32 {",
        "    %next = arith.addi %x, %j : i32",
        "    %other = arith.addi %y, %j : i32",
        "    scf.yield %next, %other : i32, i32",
        "  }",
        "  %c = arith.cmpi slt, %two#0, %two#1 : i32",
        "  llvm.intr.assume %c : i1",
        "}",
    )
    assert lines_of(*inner) == [
        "    first = n * n",
        "    for i in range(n):",
        "        x = first",
        "        y = i + n",
        "        for j in range(n):",
        "            x = x + j",
        "            y = y + j",
        "        gl.assume(x < y)",
    ]


def test_a_raised_kernel_is_written_in_the_words_of_its_triton(monkeypatch):
    """A function that was renamed, one that became a method, and a module that moved: one row each."""
    names = {"arange": "steps"}
    rows = (replace(op, spelled=(("3.9", names[op.name]),)) if op.name in names else op for op in gluon.OPS)
    monkeypatch.setattr(gluon, "OPS", tuple(rows))
    copies = replace(gluon.MODULES["async_copy"], spelled=(("3.9", f"{gluon.GLUON}.language.amd.copies"),))
    monkeypatch.setitem(gluon.MODULES, "async_copy", copies)
    body = "x = gl.arange(0, 4)\ngl.amd.cdna4.async_copy.wait_group(0)\ny = cdna4.load_shared_relaxed(t.index(0), d)\n"
    body = body.replace("cdna4.load", "gl.amd.cdna4.async_copy.load")
    assert _in_words(body, "3.10.1") == "x = gl.steps(0, 4)\ngl.amd.copies.wait_group(0)\ny = t.index(0).load(d)\n"
    assert _in_words(body, "3.9.0") == body.replace("arange", "steps").replace("cdna4.async_copy", "copies")
    first = "from triton.experimental import gluon\n"  # and one that Gluon had not, which the language has
    assert (
        _in_words(f"{first}y = gl.cumsum(x, 0)\n", "3.8.0")
        == f"import triton.language as tl\n{first}y = tl.cumsum(x, 0)\n"
    )


def test_buffer_accesses_keep_their_cache_policy():
    policy = "cachePolicy = #tt.cache_policy<cache_modifier = cs, eviction_policy = evict_normal>"
    kind = "tensor<256xi32, #blocked>"
    lines = lines_of(
        f"%r = tt.make_range {{end = 256 : i32, start = 0 : i32}} : {kind}",
        f"%x = amdg.buffer_load %p[%r] {{{policy.replace('= cs', '= ca')}}} : !tt.ptr<f32> -> tensor<256xf32, #blocked>",
        f"amdg.buffer_store %x, %p[%r] {{{policy}}} : !tt.ptr<f32> -> tensor<256xf32, #blocked>",
    )
    assert any('buffer_load(p, r, cache=".ca")' in line for line in lines)
    assert any(line.endswith('p, r, cache=".cs")') for line in lines)


@pytest.mark.parametrize("stays", [True, False])
def test_functions_stay_functions_where_the_module_says_so(stays):
    function = f"  tt.func private @twice(%x: i32) -> i32 attributes {{noinline = {str(stays).lower()}}} {{"
    body = ["    %y = arith.addi %x, %x : i32", "    tt.return %y : i32", "  }"]
    call = module_of(
        "%t = tt.call @twice(%n) : (i32) -> i32", "%c = arith.cmpi slt, %t, %n : i32", "llvm.intr.assume %c : i1"
    )
    text = raise_module(call.rstrip().removesuffix("}") + "\n".join([function, *body, "}"]) + "\n").text
    assert ("@gluon.jit(noinline=True)\ndef twice(x):" in text) == stays and "gl.assume(twice(n) < n)" in text


def test_a_loop_carries_variables_in_the_order_of_the_module():
    """Gluon carries them in the order in which they are first assigned: what takes no instruction is assigned before what is there."""
    loop = (
        "%c0 = arith.constant 0 : i32",
        "%c1 = arith.constant 1 : i32",
        "%there = arith.muli %n, %n : i32",
        "%more = arith.addi %there, %n : i32",
        "%end:3 = scf.for %i = %c0 to %more step %c1 iter_args(%x = %c1, %y = %there, %z = %n) -> (i32, i32, i32)  : i32 {",
        "  %a = arith.addi %x, %n : i32",
        "  %b = arith.addi %y, %i : i32",
        "  %c = arith.muli %z, %i : i32",
        "  scf.yield %a, %b, %c : i32, i32, i32",
        "}",
        "%d = arith.cmpi slt, %end#0, %end#1 : i32",
        "%e = arith.cmpi slt, %end#2, %end#1 : i32",
        "%f = arith.andi %d, %e : i1",
        "llvm.intr.assume %f : i1",
    )
    lines = lines_of(*loop)
    at = next(at for at, line in enumerate(lines) if line.startswith("    for i in "))
    # `there` is read by the end of the loop too, so that the loop goes on with a copy of it.
    assert [line.split()[0] for line in lines[:at]] == ["there", "x", "y", "z"]
    lines = lines_of(*(line.replace("%more = arith.addi %there", "%more = arith.addi %n") for line in loop))
    assert lines[:4] == ["    x = 1", "    there = n * n", "    z = n", "    for i in range(n + n):"]


def test_equal_ends_that_triton_merged_stand_in_each_branch():
    function = "  tt.func private @size(%x: i32) -> i32 attributes {noinline = false} {"
    body = [
        "    %k3 = arith.constant 3 : i32",
        "    %k5 = arith.constant 5 : i32",
        "    %c = arith.cmpi sgt, %x, %k5 : i32",
        "    cf.cond_br %c, ^bb1(%k3 : i32), ^bb1(%k5 : i32)",
        "  ^bb1(%y: i32):",
        "    %z = arith.addi %x, %y : i32",
        "    tt.return %z : i32",
        "  }",
    ]
    call = module_of(
        "%t = tt.call @size(%n) : (i32) -> i32", "%c = arith.cmpi slt, %t, %n : i32", "llvm.intr.assume %c : i1"
    )
    text = raise_module(call.rstrip().removesuffix("}") + "\n".join([function, *body, "}"]) + "\n").text
    assert "def size(x):\n    if x > 5:\n        return x + 3\n    return x + 5\n" in text


MATRIX = """
#mma = #ttg.amd_mfma<{version = VERSION, warpsPerCTA = [2, 2], instrShape = [32, 32, 64], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>
"""


@pytest.mark.parametrize(
    "element, product, called",
    [
        ("f32", "tt.dot %a, %b, %c, inputPrecision = tf32 : A * B -> C", "mfma_tf32"),
        ("f32", "tt.dot %a, %b, %c : A * B -> C", "cdna3.mfma"),
        (
            "f8E4M3FN",
            "tt.dot_scaled %a, %b, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : A * B -> C",
            "multiply_e4m3_e4m3",
        ),
        ("i8", "tt.dot_scaled %a, %b, %c lhs = e2m1 rhs = e2m1 {fastMath = false} : A * B -> C", "multiply_e2m1_e2m1"),
    ],
)
def test_products_that_gluon_has_no_function_for(element, product, called):
    """A builtin of the file's own says what the operation under Gluon's takes; bytes of fp4 have no sign for Gluon."""
    types = {"A": f"tensor<64x64x{element}, #a>", "B": f"tensor<64x64x{element}, #b>", "C": "tensor<64x64xf32, #mma>"}
    types["P"] = types["C"].replace("f32", "!tt.ptr<f32>")
    lines = (
        f"%a = arith.constant dense<{0 if element == 'i8' else 0.0}> : A",
        f"%b = arith.constant dense<{0 if element == 'i8' else 0.0}> : B",
        "%c = arith.constant dense<0.0> : C",
        f"%d = {product}",
        "%q = tt.splat %p : !tt.ptr<f32> -> P",
        "tt.store %q, %d : P",
    )
    typed = [re.sub(r"\b[ABCP]\b", lambda found: types[found[0]], line) for line in lines]
    text = raise_module(MATRIX.replace("VERSION", "3" if element == "f32" else "4") + module_of(*typed)).text
    own = "." not in called
    assert f" {called}(" in text or f"({called}(" in text
    assert ("@builtin\ndef" in text and "import builtin" in text and "_semantic.dot" in text) == own
    assert text.count(".to(gl.uint8)") == 2 * (element == "i8")


def test_layouts_and_variables_say_what_they_are_for():
    """Of an operand: where it is loaded, where it lies in LDS, how the product reads it; and of numbers, for whom they are."""
    other = "#other = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>\n"
    other += "#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}>\n"
    types = {"A": "tensor<64x64xf32, #a>", "B": "tensor<64x64xf32, #b>", "C": "tensor<64x64xf32, #mma>"}
    types |= {"O": "tensor<64x64xf32, #other>", "P": "tensor<64x64x!tt.ptr<f32>, #other>"}
    types |= {"S": "!ttg.memdesc<64x64xf32, #shared, #ttg.shared_memory>", "R": "tensor<64xi32, ROWS>"}
    slice_ = "#ttg.slice<{dim = 1, parent = #PARENT}>"
    lines = (
        "%q = tt.splat %p : !tt.ptr<f32> -> P",
        "%a = tt.load %q : P",
        "%a_1 = ttg.local_alloc %a : (O) -> S",
        "%a_2 = ttg.local_load %a_1 : S -> A",
        "%b = arith.constant dense<0.0> : B",
        "%c = arith.constant dense<0.0> : C",
        "%d = tt.dot %a_2, %b, %c : A * B -> C",
        *(
            f"%offs{number} = tt.make_range {{end = 64 : i32, start = 0 : i32}} : {types['R'].replace('ROWS', slice_)}".replace(
                "PARENT", parent
            )
            for number, parent in (("", "mma"), ("_1", "other"))
        ),
        *(
            f"%m{number} = arith.cmpi slt, %offs{number}, %offs{number} : tensor<64xi32, {slice_}>".replace(
                "PARENT", parent
            )
            for number, parent in (("", "mma"), ("_1", "other"))
        ),
        "%e = ttg.convert_layout %d : C -> O",
        "tt.store %q, %e : P",
    )
    typed = [re.sub(r"\b[ABCOPS]\b", lambda found: types[found[0]], line) for line in lines]
    text = raise_module(
        MATRIX.replace("VERSION", "3").replace("32, 32, 64", "32, 32, 2") + other + module_of(*typed)
    ).text
    for defined in (
        "mma: ",
        "a_load: ",
        "a_shared: ",
        "a_operand: gl.constexpr = gl.DotOperandLayout(0, mma",
        "b_operand: ",
    ):
        assert f"\n    {defined}" in text
    assert "offs = gl.arange(0, 64, gl.SliceLayout(1, mma))" in text
    assert "offs_a = gl.arange(0, 64, gl.SliceLayout(1, a_load))" in text


TILES = """
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, D: tl.constexpr):
    pid = tl.program_id(0)
    width = GROUP * tl.cdiv(N, BN)
    offs_m = (pid // width) * BM + tl.arange(0, BM)
    offs_n = (pid.to(tl.uint32) % GROUP).to(tl.int32) * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    offs_d = tl.arange(0, D)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + offs_m[:, None] * K + (k + offs_k)[None, :])
        b = tl.load(b_ptr + offs_n[None, :] * K + (k + offs_k)[:, None])
        acc = tl.dot(a, b, acc)
    b = tl.load(b_ptr + offs_n[:, None] * D + offs_d[None, :])
    tl.store(c_ptr + offs_m[:, None] * D + offs_d[None, :], tl.dot(acc.to(b.dtype), b).to(b.dtype))
"""


@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx1100", "gfx950"])
def test_constexprs_of_the_source_come_back(pool, tmp_path, target):
    """Sizes that are equal are told from each other by what the source says, and the machine code is the module's. On gfx950 warps have priorities,
    which are assembly in Gluon: LLVM orders instructions otherwise around it."""
    source, file = tmp_path / "tiles.py", tmp_path / "raised.py"
    source.write_text(TILES)
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
    given = {"GROUP": 3, "BM": 64, "BN": 64, "BK": 32, "D": 128}
    stages = pool.call(LOWER, str(source), launch("product", signature, given), target, keep_stages=True).stages
    module = re.sub(
        r'"[^"]*tiles\.py"', f'"{source}"', stages["ttgir"]
    )  # Triton may have the module of another file with this text
    raised = raise_module(module)
    assert raised.spec.constexprs == given
    text = raised.text
    for said in (
        "gl.static_assert(\n        GROUP == 3 and BM == 64 and BN == 64 and BK == 32 and D == 128,",
        "gl.cdiv(N, BN) * GROUP",
        "pid.to(gl.uint32) % GROUP",
        "gl.arange(0, BK, gl.SliceLayout(0, a_load))",
        "gl.arange(0, D, gl.SliceLayout(0, ",
        "for k in range(0, K - BK, BK):",
    ):
        assert said in text
    file.write_text(text)
    own = replace(raised.spec, values={"M": 192, "N": 64, "K": 64}, grid=(1,))
    again = pool.call(LOWER, str(file), own, target, keep_stages=True).stages
    made, module_code = instructions(again["amdgcn"]), instructions(stages["amdgcn"])
    if target == "gfx950":
        assert 'gl.inline_asm("s_setprio 1")' in text and "sched_barrier_non_mem_non_sideeffect()" in text
        assert sorted(op for op, _ in made) == sorted(op for op, _ in module_code)
        result = pool.call(VALIDATE, stages["ttgir"], again["ttgir"], own, with_variants=False)
        assert (result.status, result.bitwise) == ("validated", True), result.reason
    else:
        assert made == module_code
    numbers = raise_module(module, numbers=True)
    assert not numbers.spec.constexprs and "BM" not in re.sub("#.*", "", numbers.text)
    source.write_text("import os\n" + TILES)  # another text than what was compiled says nothing
    other = raise_module(module)
    assert not other.spec.constexprs and "BM" not in other.text


def test_scales_that_are_numbers():
    kinds = {"X": "tensor<64x64xi8, #blocked2>", "Y": "tensor<64x128xbf16, #blocked2>"}
    blocked = "#blocked2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>\n"
    lines = (
        f"%x = arith.constant dense<1> : {kinds['X']}",
        f"%s = arith.constant dense<2.0> : {kinds['Y']}",
        f"%y = amdg.scaled_upcast_fp4 %x scale %s {{axis = 1 : i32}} : {kinds['X']}, {kinds['Y']} -> {kinds['Y']}",
        f"%z = arith.extf %y : {kinds['Y']} to tensor<64x128xf32, #blocked2>",
        "%q = tt.splat %p : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #blocked2>",
        "tt.store %q, %z : tensor<64x128x!tt.ptr<f32>, #blocked2>",
    )
    text = raise_module(blocked + module_of(*lines)).text
    assert "builder.create_scaled_upcast_fp4(x.handle, scale.handle, gl.bfloat16.to_ir(builder), 1)" in text
    assert "upcast_fp4_along_1(" in text
    bytes_ = [line.replace("bf16", "i8").replace("2.0", "127") for line in lines[:2]]
    text = raise_module(
        blocked
        + module_of(
            *bytes_, lines[2].replace(f", {kinds['Y']} ->", f", {kinds['Y'].replace('bf16', 'i8')} ->"), *lines[3:]
        )
    ).text
    assert "cdna4.scaled_upcast(\n" in text and "gl.bfloat16, 1" in text.replace("\n", "") and "builder" not in text


def test_what_programs_hand_each_other_and_print():
    lines = lines_of(
        "%k = arith.constant 1 : i32",
        "%zero = arith.constant -0.000000e+00 : f32",
        "%f = tt.atomic_poll acquire, gpu, %p, %k : !tt.ptr<f32>, i32 -> i1",
        "%true = arith.constant true",
        "%x = tt.atomic_load relaxed, gpu, %p, %true : (!tt.ptr<f32>, i1) -> f32",
        "tt.atomic_store release, gpu, %p, %x, %true : !tt.ptr<f32>",
        "%y = arith.mulf %x, %zero : f32",
        'tt.print " y: " {hex = false, isSigned = array<i32: 0, 1>} : %y, %n : f32, i32',
    )
    assert lines == [
        '    gl.atomic_poll(p, 1, sem="acquire", scope="gpu")',
        '    x = gl.atomic_load(p, sem="relaxed", scope="gpu")',
        '    gl.atomic_store(p, x, sem="release", scope="gpu")',
        '    gl.device_print(" y: ", x * (-gl.full([], 0.0, gl.float32)), n)',
    ]


def test_the_ping_pong_schedule_is_refused_with_the_stage_that_has_none():
    with pytest.raises(TranslationError) as refused:
        raise_module(module_of("%t = rocdl.workitem.id.x : i32"))
    assert "--stage loops" in refused.value.diagnostics[0].help
    assert "half of the warps" in refused.value.diagnostics[0].message
