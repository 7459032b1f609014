"""Workgroups of a cluster on the reference machine: each planted mistake is found, at its line, and nothing else is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from translation_of import dedent, launch, tensor, translate

from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.inputs import make_inputs
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.hazards import Hazard
from gluonize.judge.machine.memory.cluster import PeerAccesses
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.stages import translated_stage
from gluonize.judge.verdict import validate_launch
from gluonize.trace.model.parse import parse_module

MATMUL = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        m = tl.program_id(0) * BM + tl.arange(0, BM)
        n = tl.program_id(1) * BN + tl.arange(0, BN)
        o = tl.arange(0, BK)
        a_ptrs = a_ptr + m[:, None] * sa + o[None, :]
        b_ptrs = b_ptr + o[:, None] * sb + n[None, :]
        acc = tl.zeros((BM, BN), tl.float32)
        for i in range(0, K, BK):
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
            acc = tl.dot(a, b, acc)
            a_ptrs += BK
            b_ptrs += BK * sb
        tl.store(c_ptr + m[:, None] * sc + n[None, :], acc.to(tl.float16))
""")
# Tiles past the end are copied too: nothing but their masks keeps them off.
MASKED = (
    MATMUL.replace("tl.load(a_ptrs)", "tl.load(a_ptrs, mask=o[None, :] < K - i, other=0.0)")
    .replace("tl.load(b_ptrs)", "tl.load(b_ptrs, mask=o[:, None] < K - i, other=0.0)")
)  # fmt: skip
SIGNATURE = {f"{name}_ptr": "*fp16" for name in "abc"} | dict.fromkeys("M N K sa sb sc".split(), "i32")
SHAPE = {"BM": 64, "BN": 64, "BK": 32}


def matmul_launch(count: int, k: int = 128):
    values = {"a_ptr": tensor(64, k), "b_ptr": tensor(k, 64), "c_ptr": tensor(64, 64), "M": 64, "N": 64, "K": k}
    attrs = {f"{name}_ptr": "DS" for name in "abc"} | dict.fromkeys("M N K sa sb sc".split(), "D")
    spec = launch("k", SIGNATURE, SHAPE, attrs=attrs, values={**values, "sa": k, "sb": 64, "sc": 64})
    spec.options["num_ctas"] = count
    return spec


@pytest.fixture(scope="module", params=[2, 4])
def translation(request, tmp_path_factory):
    """The folder of the source, the launch, and its translation."""
    folder, spec = tmp_path_factory.mktemp("matmul"), matmul_launch(request.param)
    return folder, spec, translate(folder, MATMUL, spec, target="gfx1250").text


@pytest.fixture(scope="module", params=[2, 4])
def past_the_end(request, tmp_path_factory):
    """As `translation`, of loops that copy tiles past the end."""
    folder, spec = tmp_path_factory.mktemp("masked"), matmul_launch(request.param)
    return folder, spec, translate(folder, MASKED, spec, target="gfx1250").text


def judged(folder: Path, spec, text: str) -> dict:
    (folder / "output.py").write_text(text)
    return validate_launch(str(folder / "source.py"), str(folder / "output.py"), spec, "gfx1250")


def test_a_product_is_validated(translation):
    folder, spec, text = translation
    answer = judged(folder, spec, text)
    assert answer["status"] == "validated", answer
    # Before the first copies and in each iteration; no copy is past the end, so nothing is under way behind the loop.
    assert text.count("cluster.arrive()") == text.count("cluster.wait()") == 2


def test_workgroups_leave_when_nothing_is_copied_any_more(past_the_end):
    folder, spec, text = past_the_end
    answer = judged(folder, spec, text)
    assert answer["status"] == "validated", answer
    assert text.count("cluster.arrive()") == text.count("cluster.wait()") == 3


@dataclass(frozen=True)
class Mistake:
    """old, new: in the translation. kind, line: of what is found; the line by a part of its text, of those with it by `which`."""

    old: str
    new: str
    kind: str
    line: str
    which: int = 0


START = "    gl.barrier()\n    cluster.arrive()\n    cluster.wait()\n"
LOOP = "        cluster.arrive()\n        cluster.wait()\n"
WAIT = "        tdm.async_wait((NUM_BUFFERS - 2) * 2)\n"
READ = "        b = b_smem.index(slot).load(b_operand)\n"
END = "    tdm.async_wait(0)\n"
COPY, READS = "tdm.async_load(", "_smem.index(slot).load("
IN_LOOP = 2  # copies before it
MISTAKES = {
    "others may not have started": Mistake(START, "", "cluster-start", COPY),
    "the start is announced and not waited for": Mistake(
        START, "    gl.barrier()\n    cluster.arrive()\n", "cluster-start", COPY
    ),
    "the start is waited for and not announced": Mistake(
        START, "    gl.barrier()\n    cluster.wait()\n", "cluster-wait", "cluster.wait()"
    ),
    "a slot filled before a peer has read it": Mistake(LOOP, "", "cluster-overwrite", COPY, IN_LOOP),
    "an arrival that nobody waits for": Mistake(LOOP, "        cluster.arrive()\n", "cluster-arrive", "cluster.arrive()", 1),
    "a wait without an arrival": Mistake(LOOP, "        cluster.wait()\n", "cluster-wait", "cluster.wait()", 1),
    "the wait before the arrival": Mistake(
        LOOP, "        cluster.wait()\n        cluster.arrive()\n", "cluster-wait", "cluster.wait()", 1
    ),
    "two arrivals": Mistake(LOOP, f"        cluster.arrive()\n{LOOP}", "cluster-arrive", "cluster.arrive()", 2),
    "two waits": Mistake(LOOP, f"{LOOP}        cluster.wait()\n", "cluster-wait", "cluster.wait()", 2),
    "arrived before the own warps are done": Mistake(
        WAIT + "@" + LOOP, "        cluster.arrive()\n" + WAIT + "        cluster.wait()\n", "cluster-overwrite", COPY, IN_LOOP
    ),
    "a barrier of the workgroup alone": Mistake(LOOP, "        gl.barrier()\n", "cluster-overwrite", COPY, IN_LOOP),
    "an arrival left open at the end": Mistake(
        END, f"{END}    cluster.arrive()\n", "cluster-arrive", "cluster.arrive()", 2
    ),
}  # fmt: skip


SYNC = "    cluster.arrive()\n    cluster.wait()\n"
STORE = "    a_smem.index(0).store(gl.zeros([BM, BK], gl.float16, layout=gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0], CTAS)))\n"
PAST_THE_END = {
    "a workgroup that leaves early": Mistake(f"{END}@{SYNC}", END, "cluster-exit", COPY, IN_LOOP),
    "it leaves without waiting": Mistake(f"{END}@{SYNC}", f"{END}    cluster.arrive()\n", "cluster-exit", COPY, IN_LOOP),
    "the ring is used for something else while peers copy": Mistake(END, END + STORE, "cluster-reuse", "gl.zeros([BM, BK]"),
    "it leaves before its own copies have landed": Mistake(f"{END}@{SYNC}", SYNC, "lds-load-unwaited", COPY, IN_LOOP),
}  # fmt: skip


def planted(text: str, mistake: Mistake) -> str:
    """The text with the mistake; parts of `old` are joined by `@` for a comment between them."""
    before, at, behind = mistake.old.partition("@")
    start = text.index(before)
    end = text.index(behind, start) + len(behind) if at else start + len(before)
    return text[:start] + mistake.new + text[end:]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found_at_its_line(name: str, translation):
    _found(*translation, MISTAKES[name])


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", PAST_THE_END)
def test_a_mistake_behind_the_loop_is_found_at_its_line(name: str, past_the_end):
    _found(*past_the_end, PAST_THE_END[name])


def test_every_kind_is_planted():
    kinds = {"cluster-start", "cluster-arrive", "cluster-wait", "cluster-overwrite", "cluster-reuse", "cluster-exit"}
    assert {mistake.kind for mistake in (*MISTAKES.values(), *PAST_THE_END.values())} >= kinds


ALL, OWN, SWAPPED = ([3] * 4, [1, 1, 2, 2], [2, 2, 1, 1])
ACCESSES = {
    "each reads what it stores": ([("load", OWN), ("store", OWN)], ""),
    "one stores what another has not read yet": ([("load", ALL), ("store", OWN)], "may not have read yet"),
    "all have read it": ([("load", ALL), ("barrier", ALL), ("store", OWN)], ""),
    "another reads what one has stored": ([("store", OWN), ("load", SWAPPED)], "has stored to"),
    "no barrier shows it": ([("store", OWN), ("barrier", ALL), ("load", SWAPPED)], "has stored to"),
    "each reads what it has stored": ([("store", OWN), ("load", OWN)], ""),
    "two store to one element": ([("store", OWN), ("store", SWAPPED)], "two workgroups of a cluster store"),
    "of those that have an element one stores": ([("store", ALL), ("store", ALL)], ""),
    "one stores what all have": ([("store", ALL), ("load", ALL)], "has stored to"),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_memory_that_workgroups_share(name: str):
    """Four elements of two workgroups; each access is in an interval of its own."""
    steps, expected = ACCESSES[name]
    hazards: list[Hazard] = []
    accesses = PeerAccesses(hazards.append)
    buffer = Memory().add("x", "f32", np.zeros(4, np.float32))
    offset = np.arange(4) * 4
    for interval, (step, held) in enumerate(steps):
        accesses.interval, accesses.held = interval, np.array(held, np.uint16)
        if step == "load":
            accesses.load(buffer, offset, 4, None, slice(None))
        elif step == "store":
            accesses.store(buffer, offset, None, slice(None), np.full(4, interval + 1, np.uint32))
        else:
            accesses.known = interval
    assert bool(hazards) == bool(expected)
    assert all(expected in hazard.message and hazard.kind == "cluster-memory" for hazard in hazards), hazards


PEER = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def k(x_ptr, y_ptr):
    split: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0], [[1]])
    other: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0], [[HALF]])
    x = gl.load(x_ptr + gl.arange(0, 256, layout=split))
    gl.store(y_ptr + gl.arange(0, 256, layout=other), gl.convert_layout(x, other))
"""


@pytest.mark.parametrize("half, kind", [("1", ""), ("0", "cluster-peer")], ids=["its own half", "both halves"])
def test_a_conversion_that_needs_what_another_workgroup_has(tmp_path: Path, half: str, kind: str):
    spec = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {}, values={"x_ptr": tensor(256), "y_ptr": tensor(256)})
    spec.options["num_ctas"] = 2
    try:
        assert fetched(tmp_path, spec, PEER.replace("HALF", half)) and not kind
    except Hazard as hazard:
        assert hazard.kind == kind


def test_memory_that_is_accessed_by_halves():
    """A store of two bytes after a load of four: the other half is as it was."""
    found: list[str] = []
    accesses = PeerAccesses(lambda hazard: found.append(hazard.message))
    buffer = Memory().add("x", "f32", np.zeros(2, np.float32))
    accesses.held = np.array([1, 2], np.uint16)
    accesses.load(buffer, np.array([0, 4]), 4, None, slice(None))
    accesses.store(buffer, np.array([2, 6]), None, slice(None), np.full(2, 1, np.uint16))
    assert not found
    accesses.held = np.array([2], np.uint16)
    accesses.store(buffer, np.array([0]), None, slice(None), np.full(1, 1, np.uint16))
    assert len(found) == 1


def fetched(folder: Path, spec, text: str) -> int:
    """The bytes that a translation reads from memory, by copies and by lanes."""
    (folder / "output.py").write_text(text)
    stage, inputs, memory = translated_stage(str(folder / "output.py"), spec, "gfx1250"), make_inputs(spec), Memory()
    addresses = place_tensors(memory, inputs)
    module = parse_module(stage.text, stage.file)
    machine = Machine(module, memory, tuple(spec.grid))
    machine.run(bind(module, list(stage.names), inputs, addresses), [0])
    return sum(machine.fetched.values())


def test_operands_are_read_from_memory_once_for_all_workgroups(tmp_path: Path):
    """A and B, each byte once; where each lane loads for itself, once for every workgroup that has it."""
    a = b = 64 * 128 * 2
    for count in (1, 2, 4):
        spec = matmul_launch(count)
        text = translate(tmp_path, MATMUL, spec, target="gfx1250").text
        assert fetched(tmp_path, spec, text) == a + b, count
    spec = matmul_launch(2)
    text = translate(tmp_path, MATMUL, spec, target="gfx1250").text
    start, end = text.index("    # Every workgroup of the cluster has started"), text.index("    cdna5.buffer_store(")
    loop = """
    o_a = gl.arange(0, BK, layout=gl.SliceLayout(0, a_load))
    o_b = gl.arange(0, BK, layout=gl.SliceLayout(1, b_load))
    m_a = gl.arange(0, BM, layout=gl.SliceLayout(1, a_load))
    n_b = gl.arange(0, BN, layout=gl.SliceLayout(0, b_load))
    for i in range(0, K, BK):
        a = cdna5.buffer_load(a_ptr, m_a[:, None] * sa + o_a[None, :] + i)
        b = cdna5.buffer_load(b_ptr, (o_b[:, None] + i) * sb + n_b[None, :])
        acc = cdna5.wmma(gl.convert_layout(a, a_operand), gl.convert_layout(b, b_operand), acc)
"""
    layouts = "".join(
        f"    {name}_load: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0], [[0, {split}]])\n"
        for name, split in (("a", 0), ("b", 1))
    )
    assert fetched(tmp_path, spec, text[:start] + layouts + loop + text[end:]) == 2 * a + b


def _found(folder: Path, spec, text: str, mistake: Mistake) -> None:
    ctas = text.partition("a_shared: gl.constexpr")[2].split("[1, 0], ")[1].split(")\n")[0]
    wrong = planted(text, mistake).replace("CTAS", ctas)
    answer = judged(folder, spec, wrong)
    assert answer["status"] == "mismatch", (answer, wrong)
    found, *_ = answer["hazards"]
    lines = [number for number, line in enumerate(wrong.splitlines(), 1) if mistake.line in line]
    assert (found["kind"], found["line"]) == (mistake.kind, lines[mistake.which]), (found, lines)
