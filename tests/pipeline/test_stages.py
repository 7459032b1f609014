"""Ping-pong and sliced accumulators: plans as values, generated code on the reference machine, planted mistakes."""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from slow_rows import slow_but, slow_but_every

VALIDATE = Path(__file__).resolve().parent.parent / "validate"
sys.path.insert(0, str(VALIDATE))

from planted import KERNELS, matmul_launch, source  # noqa: E402

from gluonize.decide.choices.chosen import Choices, choices_of  # noqa: E402
from gluonize.gluon.code import assignment, line, text_of
from gluonize.gluon.nodes import (  # noqa: E402
    Assign,
    Authored,
    ElementType,
    Named,
    Operand,
    Permuted,
    Product,
    Read,
    Slot,
    walk,
)
from gluonize.gluon.printer import lines, printed  # noqa: E402
from gluonize.judge.machine.stages import source_stage, translated_stage  # noqa: E402
from gluonize.judge.verdict.run import validate_pair  # noqa: E402
from gluonize.loops.passes.prefetch import prefetched  # noqa: E402
from gluonize.loops.passes.slices import layout_tile  # noqa: E402
from gluonize.loops.passes.stages import StagePlan, late_read, plan_stages, stage_contents  # noqa: E402
from gluonize.loops.plan.schedule import copy_schedule, register_schedule  # noqa: E402
from gluonize.read.spec.launch import read_launches  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.search.choose import barriers_inside_stages  # noqa: E402
from gluonize.trace.model.layouts import Mfma, Wmma  # noqa: E402
from gluonize.translation import translate_kernel  # noqa: E402

BLOCK_K = 64
COPIES, REGISTERS = copy_schedule(3), register_schedule(2)
M, C = "memory", "compute"


@pytest.mark.parametrize(
    "reads, dots, schedule, expected",
    [
        ([1, 1, 0, 0], [0, 0, 1, 0], COPIES, [(M, (0, 1)), (C, (2, 3))]),
        ([0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1], COPIES, [(M, (0, 1)), (C, (2,)), (M, (3, 4)), (C, (5,))]),
        ([1, 0, 0], [0, 0, 1], COPIES, [(M, (0, 1)), (C, (2,))]),
        ([1, 1, 0], [0, 0, 1], REGISTERS, [(M, (0, 1)), (C, (2,)), (M, (3,))]),
        ([0, 0], [0, 1], COPIES, []),
        ([1, 0], [0, 0], COPIES, []),
        ([0, 1], [1, 0], COPIES, []),
        ([0, 1, 0], [1, 0, 1], COPIES, []),
        ([1, 0], [0, 1], register_schedule(1), []),
    ],
    ids=[
        "matmul", "attention", "arithmetic on a tile", "stored tiles", "no read", "no product",
        "nothing after the last read", "a product before the first read", "one slot",
    ],
)  # fmt: skip
def test_stages(reads, dots, schedule, expected):
    found = plan_stages([bool(r) for r in reads], [bool(d) for d in dots], schedule)
    assert found == tuple(StagePlan(*e) for e in expected)


def test_memory_stages_have_the_higher_priority():
    memory, compute = plan_stages([True, False], [False, True], COPIES)
    assert memory.priority > compute.priority


def product(a, b, acc: str = "acc", after: str = "", target: str = "acc") -> Assign:
    """`target = mfma(a, b, acc)after`; an operand is the name of a variable, or code with its stem and what it reads."""
    holes = [Operand((x,), x, frozenset({x})) if isinstance(x, str) else Operand(*x) for x in (a, b)]
    made = Product(("cdna4.mfma(", holes[0], ", ", holes[1], f", {acc})"), frozenset({acc}))
    return assignment(target, (made, after) if after else (made,))


def value(target: str, *code, reads=()) -> Assign:
    return assignment(target, code, frozenset(reads))


def contents(steps: list[tuple], dots: list[bool]) -> list[tuple]:
    stages = plan_stages([i == 0 for i in range(len(dots))], dots, COPIES)
    return stage_contents(steps, stages, {"v": "v_smem"}, lambda name: name)


def texts(stages: list) -> list[list[str]]:
    return [[text_of(line) for step in steps for line in lines(step, "")] for steps in stages]


READ = value("a", Read(Slot("a_smem", "slot"), "a_operand", "async_copy"))
BIAS = Read(Slot("bias_smem", "slot"), "mfma")
NAMED = Read(Permuted(Named("b"), (1, 0)), "b_operand", "async_copy")


@pytest.mark.parametrize(
    "compute, found",
    [
        (product("a", "b"), ""),
        (value("acc", *product("a", "b").value, " + ", BIAS), "bias_smem.index(slot)"),
        (Authored(("c[0] = cdna4.mfma(a, ", NAMED, ", acc)")), "b"),
        (value("acc", "gl.load(p) + ", *product("a", "b").value), ""),
    ],
    ids=["registers", "accumulator", "not a plain assignment", "global memory"],
)
def test_a_read_in_a_compute_stage_is_seen(compute, found: str):
    dots = [False, True]
    assert late_read(contents([(READ,), (compute,)], dots), plan_stages([True, False], dots, COPIES)) == found


CONVERTED = ("gl.convert_layout(p.to(", ElementType("v"), "), layout)"), "p", frozenset({"p"})
ATTENTION = [
    (value("k", "K"),),
    (line("# Scores"), product("q", "k", "zeros", " * s", "qk")),
    (value("p", "gl.exp2(qk)", reads=["qk"]),),
    (value("l", "p + l", reads=["p", "l"]),),
    (value("v", "V"),),
    (product(CONVERTED, "v"),),
    (value("m", "n", reads=["n"]),),
]


@pytest.mark.parametrize(
    "steps, dots, expected",
    [
        (
            [(READ,), (product("a", ((Read(Permuted(Slot("b_smem", "slot"), (1, 0)), "b_operand"),), "b_smem")),)],
            [0, 1],
            [
                ["a = async_copy.load_shared_relaxed(a_smem.index(slot), a_operand)",
                 "b_smem_as_operand = b_smem.index(slot).permute([1, 0]).load(b_operand)"],
                ["acc = cdna4.mfma(a, b_smem_as_operand, acc)"],
            ],
        ),
        (
            ATTENTION,
            [0, 1, 0, 0, 0, 1, 0],
            [
                ["k = K"],
                ["# Scores", "qk_dot = cdna4.mfma(q, k, zeros)"],
                ["qk = qk_dot * s", "p = gl.exp2(qk)", "p_as_operand = gl.convert_layout(p.to(v_smem.dtype), layout)",
                 "l = p + l", "v = V"],
                ["acc = cdna4.mfma(p_as_operand, v, acc)", "m = n"],
            ],
        ),
        (
            [(value("a", "A"),), (product("a", "b", "zero", target="x"),),
             (product((("gl.convert_layout(x.to(h), l)",), "x", frozenset({"x"})), "b", "y", " + z", "y"),)],
            [0, 1, 1],
            [
                ["a = A"],
                ["x = cdna4.mfma(a, b, zero)", "x_as_operand = gl.convert_layout(x.to(h), l)",
                 "y_dot = cdna4.mfma(x_as_operand, b, y)", "y = y_dot + z"],
            ],
        ),
        ([(READ,), (), (product("a", "b"),), ()], [0, 0, 1, 0], [[text_of(printed(READ))], [text_of(printed(product("a", "b")))]]),
    ],
    ids=["operand read late", "attention", "a product of a product", "statements that are left out"],
)  # fmt: skip
def test_statements_with_a_product_are_taken_apart(steps, dots, expected):
    assert texts(contents(steps, [bool(d) for d in dots])) == expected


LOOP = """
.LBB0_1:
\ts_setprio 1
\tds_read_b128 v[0:3], v4
\ts_barrier
\ts_setprio 0
\tv_mfma_f32_32x32x16_f16 v[0:15], v[6:9], v[6:9], v[0:15]
{inside}\ts_barrier
\ts_cbranch_scc1 .LBB0_1
\ts_endpgm
"""


@pytest.mark.parametrize("inside, extra", [("", 0), ("\ts_barrier\n", 1), ("\ts_barrier_signal -1\n", 1)])
def test_barriers_beside_those_of_stages(inside: str, extra: int):
    assert barriers_inside_stages(LOOP.format(inside=inside)) == extra


def test_a_loop_without_stages_may_have_any_barriers():
    assert (
        barriers_inside_stages(
            LOOP.format(inside="\ts_barrier\n").replace("\ts_setprio 1\n", "").replace("\ts_setprio 0\n", "")
        )
        == 0
    )


@pytest.mark.parametrize(
    "layout, tile",
    [
        (Mfma(4, (32, 32, 16), True, (2, 4)), (64, 128)),
        (Mfma(4, (16, 16, 32), True, (2, 2), 32, (2, 1)), (64, 32)),
        (Wmma(3, True, ((0, 1), (1, 0)), (), (16, 16, 32)), (32, 32)),
        (Wmma(3, True, ((0, 2), (2, 0)), ((0, 1), (1, 0)), (16, 16, 32)), (64, 64)),
    ],
    ids=["mfma", "mfma with tiles per warp", "wmma", "wmma with tiles per warp"],
)
def test_the_tile_that_slices_are_made_of(layout, tile):
    assert tuple(layout_tile(layout)) == tile


def launch(size=(256, 64, 256), warps=8):
    spec = matmul_launch(*size)
    return replace(spec, options={**spec.options, "num_warps": warps})


@functools.lru_cache(maxsize=None)
def translation(target: str, choices: Choices) -> str:
    spec = launch()
    request = TranslateRequest(str(KERNELS / "matmul.py"), target, launches=(spec,), chosen=((spec.kernel, choices),))
    result = translate_kernel(request)
    assert result.text is not None, result.outcomes
    return result.text


def statuses(text: str, target: str, folder: Path, trips: range) -> dict[int, str]:
    file = folder / "translated.py"
    file.write_text(text)
    compiled = translated_stage(str(file), launch(), target)
    out = {}
    for n in trips:
        size = (32, 16, max(0, BLOCK_K * n - 16))
        left = source(KERNELS / "matmul.py", target, *size)
        out[n] = validate_pair(
            left.text,
            compiled.text,
            launch(size),
            source_names=left.names,
            translated_names=compiled.names,
            with_variants=False,
        ).status
    return out


def assert_found(planted: str, target: str, folder: Path) -> None:
    """That the reference machine objects to a planted mistake, with 3 tiles or with 4."""
    found = statuses(planted, target, folder, range(3, 5))
    assert set(found.values()) != {"validated"}


PING_PONG = choices_of(depth="3", warp_groups="alternating")
PREFETCH = choices_of(depth="3", operand_reads="one-ahead", slot_form="told-apart")
UNROLLED_PING_PONG = choices_of(depth="3", slot_indices="literal", warp_groups="alternating", slot_form="told-apart")
L2 = choices_of(l2_prefetch="2")
LATE_COPIES = choices_of(copy_order="after-reads", slot_form="told-apart")
PARTITIONED = choices_of(lds_partitions="two", slot_form="told-apart")
COPIED_STORES = choices_of(stores="copied", slot_form="told-apart")
CHOSEN = [
    ("gfx950", PING_PONG),
    ("gfx950", choices_of(depth="2", warp_groups="alternating")),
    ("gfx942", choices_of(depth="2", warp_groups="alternating")),
    ("gfx1250", PING_PONG),
    ("gfx950", choices_of(slot_indices="literal")),
    ("gfx950", choices_of(depth="3", slot_indices="literal")),
    ("gfx1250", choices_of(slot_indices="literal")),
    ("gfx950", PREFETCH),
    ("gfx1250", PREFETCH),
    ("gfx950", UNROLLED_PING_PONG),
    ("gfx1250", UNROLLED_PING_PONG),
    ("gfx1250", L2),
    ("gfx950", LATE_COPIES),
    ("gfx950", LATE_COPIES.replacing(depth="3")),
    ("gfx1250", LATE_COPIES),
    ("gfx1250", PARTITIONED),
    ("gfx1250", COPIED_STORES),
    ("gfx1250", PARTITIONED.replacing(depth="3", warp_groups="alternating")),
]


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("target, choices", slow_but_every(CHOSEN, 3), ids=[f"{t} {x.name}" for t, x in CHOSEN])
def test_all_trip_counts_are_right(target: str, choices: Choices, tmp_path: Path):
    text = translation(target, choices)
    assert ("warp_pipeline_stage" in text) == choices.asks("warp-groups", "alternating")
    assert ("NUM_BUFFERS >= 3" in text) == choices.asks("operand-reads", "one-ahead")
    assert ("for slot in gl.static_range(NUM_BUFFERS)" in text) == choices.asks("slot-indices", "literal")
    assert ("tdm.prefetch(" in text) == bool(choices.number("l2-prefetch"))
    assert text.count("cdna5.PartitionedSharedLayout(") == 2 * choices.asks("lds-partitions", "two")
    assert ("async_copy.shared_to_global(" in text) == choices.asks("stores", "copied")
    assert statuses(text, target, tmp_path, range(7)) == dict.fromkeys(range(7), "validated")


WAIT = "        async_copy.wait_group(NUM_BUFFERS - 2)\n"
PLANTED = {
    "waits for one group too few": (WAIT, WAIT.replace("- 2", "- 1")),
    "waits at the top of the loop": (None, None),
    "copies into the slot being read": ("_smem.index(free_slot)", "_smem.index(slot)"),
    "does not wait before the loop": ("    async_copy.wait_group(NUM_BUFFERS - 2)\n\n", "\n"),
}


@pytest.mark.compile
@pytest.mark.parametrize("what", PLANTED)
def test_planted_mistakes_are_found(what: str, tmp_path: Path):
    text = translation("gfx950", PING_PONG)
    old, new = PLANTED[what]
    if old is None:
        planted = text.replace(WAIT, "", 1).replace("        slot = ", WAIT + "        slot = ", 1)
    else:
        assert old in text
        planted = text.replace(old, new)
    assert planted != text
    assert_found(planted, "gfx950", tmp_path)


COPIED_OUT = {
    "does not wait for the store": ("    async_copy.wait_group(0)\n", ""),
    "waits for no group": ("    async_copy.commit_group()\n", ""),
    "stores what is outside": ("smem, mask=mask)", "smem)"),
}


@pytest.mark.compile
@pytest.mark.parametrize("what", COPIED_OUT)
def test_planted_mistakes_in_copied_stores_are_found(what: str, tmp_path: Path):
    text, (old, new) = translation("gfx1250", COPIED_STORES), COPIED_OUT[what]
    at = text.index("def store_by_copy(")
    assert old in text[at:]
    assert_found(text[:at] + text[at:].replace(old, new, 1), "gfx1250", tmp_path)


READ_AHEAD = {
    "waits for one tile too few": ("(NUM_BUFFERS - 3)", "(NUM_BUFFERS - 2)"),
    "reads the tile that is multiplied": ("slot = (k + 1) % NUM_BUFFERS", "slot = k % NUM_BUFFERS"),
    "fills the slot being read": ("free_slot = (k + NUM_BUFFERS - 1)", "free_slot = (k + NUM_BUFFERS - 2)"),
    "starts with another tile": ("a_smem.index(0)", "a_smem.index(1)"),
}


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize("what", READ_AHEAD)
def test_planted_mistakes_in_reads_ahead_are_found(what: str, tmp_path: Path):
    text, (old, new) = translation("gfx950", PREFETCH), READ_AHEAD[what]
    old, new = (old[1:-1], new[1:-1]) if old not in text else (old, new)
    assert old in text
    assert_found(text.replace(old, new), "gfx950", tmp_path)


A_TILE, B_TILE = value("a", Read(Slot("a_smem", "slot"), "x")), value("b", Slot("b_smem", "slot"))


@pytest.mark.parametrize(
    "statements",
    [
        [A_TILE, value("h", "a.to(gl.float16)", reads=["a"]), product("h", "b")],
        [B_TILE, product("a", "b")],
        [value("n", "k + 1", reads=["k"]),
         value("a", Read(Slot("a_smem", "slot"), "x"), "[n]", reads=["n"]), product("a", "b")],
        [A_TILE, product("a", "b"), Authored(("s += gl.sum(a, 0)",), frozenset({"a"}), frozenset({"s"}))],
        [value("a", "a_ptr", reads=["a_ptr"]), product("a", "b")],
        [A_TILE, Authored(("s += ", Read(Slot("b_smem", "slot"), "x")), binds=frozenset({"s"})), product("a", "b")],
        [A_TILE, product("a", "b"), value("c", Read(Slot("b_smem", "slot"), "x"))],
    ],
    ids=["converted", "tile in LDS", "place of its own", "used again", "no read", "read by another statement",
         "read behind the product"],
)  # fmt: skip
def test_reads_that_are_not_ahead(statements: list):
    multiplies = [any(isinstance(n, Product) for n in walk(s)) for s in statements]
    assert prefetched([(s,) for s in statements], multiplies, "slot", lambda name: name) is None


def test_reads_ahead():
    b = (Read(Permuted(Named("b"), (1, 0)), "y"),), "b"
    steps = [
        (line("copy(a_smem.index(free))"), A_TILE),
        (B_TILE,),
        (line("p += s"),),
        (product("a", b),),
        (line("q += s"),),
    ]
    found = prefetched(steps, [False, False, False, True, False], "slot", lambda name: name)
    reads = ["a = a_smem.index(slot).load(x)", "b_as_operand = b_smem.index(slot).permute([1, 0]).load(y)"]
    assert [text_of(line) for line in lines(found.first, "")] == [read.replace("slot", "0") for read in reads]
    others = ["copy(a_smem.index(free))", "p += s", "acc = cdna4.mfma(a, b_as_operand, acc)", "q += s"]
    body = [text_of(line) for line in lines(found.body, "")]
    assert [line for line in body if not line.startswith("#")] == [*others, *reads]


UNROLLED = {
    "fills the slot being read": ("free_slot = (slot + NUM_BUFFERS - 1) % NUM_BUFFERS", "free_slot = slot"),
    "reads another slot": ("a_smem.index(slot)", "a_smem.index((slot + 1) % NUM_BUFFERS)"),
    "counts rounds, not tiles": ("k = k_first + slot", "k = k_first"),
}


@pytest.mark.compile
@pytest.mark.parametrize("what", UNROLLED)
def test_planted_mistakes_in_literal_slots_are_found(what: str, tmp_path: Path):
    text = translation("gfx950", choices_of(depth="3", slot_indices="literal"))
    assert UNROLLED[what][0] in text
    assert_found(text.replace(*UNROLLED[what]), "gfx950", tmp_path)


@pytest.mark.compile
@pytest.mark.parametrize(
    "old, new",
    [("tdm.async_wait((NUM_BUFFERS - 2) * 2)", "tdm.async_wait(2)"), ("a_smem.index(slot)", "a_smem.index(free_slot)")],
    ids=["waits for one tile too few", "reads another slot"],
)
def test_planted_mistakes_in_partitions_are_found(old: str, new: str, tmp_path: Path):
    text = translation("gfx1250", PARTITIONED)
    assert old in text
    assert_found(text.replace(old, new), "gfx1250", tmp_path)


LITERAL_STAGES = {
    "waits for one tile too few": ("(NUM_BUFFERS - 2)", "(NUM_BUFFERS - 1)"),
    "fills the slot being read": ("free_slot = (slot + NUM_BUFFERS - 1) % NUM_BUFFERS", "free_slot = slot"),
    "fills the slot that the other warps read": (
        "free_slot = (slot + NUM_BUFFERS - 1) % NUM_BUFFERS",
        "free_slot = (slot + NUM_BUFFERS - 2) % NUM_BUFFERS",
    ),
}


@pytest.mark.compile
@pytest.mark.parametrize("what", LITERAL_STAGES)
def test_planted_mistakes_in_stages_with_literal_slots_are_found(what: str, tmp_path: Path):
    text, (old, new) = translation("gfx1250", UNROLLED_PING_PONG), LITERAL_STAGES[what]
    assert old in text
    assert_found(text.replace(old, new), "gfx1250", tmp_path)


@pytest.mark.compile
def test_tiles_are_asked_for_in_l2_before_they_are_copied(tmp_path: Path):
    text = translation("gfx1250", L2)
    for tile, row in (("a", "[0, {} * BLOCK_K]"), ("b", "[{} * BLOCK_K, 0]")):
        assert f"tdm.async_load({tile}_tiles, {row.format('k_ahead')}, " in text
        where = "pred=k_ahead + 2 < gl.cdiv(K, BLOCK_K))"
        assert f"tdm.prefetch({tile}_tiles, {row.format('(k_ahead + 2)')}, {where}" in text


@pytest.mark.compile
def test_a_prefetch_of_memory_that_does_not_exist_is_found(tmp_path: Path):
    """Without its bound nothing clips the tile past the end, and only the loop's end keeps it from being asked for."""
    text = translation("gfx1250", L2)
    never = text.replace("gl.maximum(K, 0)", "2**31 - 1").replace("shape=[M, K]", "shape=[M, 2**31 - 1]")
    planted = never.replace("pred=k_ahead + 2 < gl.cdiv(K, BLOCK_K)", "pred=k_ahead >= 0")
    assert planted != never
    assert statuses(planted, "gfx1250", tmp_path, range(3, 4)) == {3: "hazard"}


ATTENTION = Path(__file__).resolve().parents[2] / "fixtures" / "flash_attention"


def attention_launch(trips: int, num_warps: int = 8, partial: bool = True):
    """One head and one block of queries; `trips` blocks of keys, the last one partial or not."""
    spec = read_launches(str(ATTENTION / "launches.json"))[-1]
    length, depth, block = max(1, 16 * trips - 4 * partial), 32, 16
    sizes = {"HEAD_DIM": depth, "BLOCK_M": 16 * num_warps, "BLOCK_N": block}
    values = dict(spec.values)
    for name in ("Q", "K", "V", "Out"):
        shape = {"shape": [1, length, depth], "stride": [length * depth, depth, 1], "storage": length * depth}
        values[name] = {"tensor": {**values[name]["tensor"], **shape}}
    values["L"] = {"tensor": {**values["L"]["tensor"], "shape": [1, length], "stride": [length, 1], "storage": length}}
    strides = {name: length * depth if name.endswith("h") else depth for name in values if name.startswith("stride")}
    attrs = {name: kind for name, kind in spec.attrs.items() if name != "N_CTX"}
    return replace(
        spec,
        attrs=attrs,
        constexprs={**spec.constexprs, **sizes},
        values={**values, **strides, "N_CTX": length},
        options={**spec.options, "num_warps": num_warps},
        grid=(1, 1),
    )


@functools.lru_cache(maxsize=None)
def attention(target: str, choices: Choices, num_warps: int = 8) -> str:
    spec = attention_launch(3, num_warps)
    file = str(ATTENTION / "kernel.py")
    result = translate_kernel(TranslateRequest(file, target, launches=(spec,), chosen=((spec.kernel, choices),)))
    assert result.text is not None, result.outcomes
    return result.text


def attention_statuses(
    text: str, target: str, folder: Path, trips: range, num_warps: int = 8, partial: bool = True
) -> dict[int, str]:
    file = folder / "translated.py"
    file.write_text(text)
    out = {}
    for n in trips:
        spec = attention_launch(n, num_warps, partial)
        left = source_stage(str(ATTENTION / "kernel.py"), spec, target)
        right = translated_stage(str(file), spec, target)
        out[n] = validate_pair(
            left.text, right.text, spec, source_names=left.names, translated_names=right.names, with_variants=False
        ).status
    return out


ALTERNATING = [
    ("gfx1250", choices_of(depth="2", warp_groups="alternating")),
    ("gfx1250", choices_of(depth="3", warp_groups="alternating", slot_form="told-apart")),
]


@pytest.mark.compile
@pytest.mark.parametrize(
    "target, choices", slow_but_every(ALTERNATING, 2), ids=[f"{t} {x.name}" for t, x in ALTERNATING]
)
def test_attention_alternates(target: str, choices: Choices, tmp_path: Path):
    text = attention(target, choices)
    # Four stages in each loop; one loop is a branch where it is lean.
    assert (
        text.count("warp_pipeline_stage") == (4 if choices.asks("slot-form", "told-apart") else 8)
        and "p_as_operand = " in text
    )
    assert attention_statuses(text, target, tmp_path, range(5)) == dict.fromkeys(range(5), "validated")


def test_a_conversion_between_warps_inside_a_stage_is_refused():
    """All warps would have to be in one stage to exchange an operand through LDS."""
    spec, file = attention_launch(3), str(ATTENTION / "kernel.py")
    request = TranslateRequest(file, "gfx950", launches=(spec,), chosen=((spec.kernel, PING_PONG),))
    (outcome,) = translate_kernel(request).outcomes
    (found,) = outcome.diagnostics
    assert found.code == "ping-pong" and "goes through LDS" in found.why and found.line


@pytest.mark.compile
def test_a_conversion_between_warps_inside_a_stage_is_found(tmp_path: Path):
    text = attention("gfx1250", ALTERNATING[0][1])
    converted = "gl.convert_layout(p.to(v_smem.dtype), q_operand)"
    assert text.count(converted) == 2
    exchanged = "gl.allocate_shared_memory(v_smem.dtype, [BLOCK_M, BLOCK_N], gl.SwizzledSharedLayout(8, 2, 4, [1, 0]), p.to(v_smem.dtype))"
    text = text.replace(converted, f"{exchanged}.load(q_operand)")
    assert attention_statuses(text, "gfx1250", tmp_path, range(2, 3)) == {2: "hazard"}


ATTENTION_PLANTED = {
    "converts another tensor": ("gl.convert_layout(p.to(", "gl.convert_layout((p + 1).to("),
    "forgets the scale": ("qk = qk_dot * qk_scale", "qk = qk_dot"),
    "fills the slot being read": ("- 1) % NUM_BUFFERS\n", "- 2) % NUM_BUFFERS\n"),
    "waits for one tile too few": ("(NUM_BUFFERS - 2) * 2", "(NUM_BUFFERS - 1) * 2"),
}


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize("what", ATTENTION_PLANTED)
def test_planted_mistakes_in_attention_are_found(what: str, tmp_path: Path):
    text, (old, new) = attention("gfx1250", ALTERNATING[0][1]), ATTENTION_PLANTED[what]
    assert old in text
    found = attention_statuses(text.replace(old, new), "gfx1250", tmp_path, range(3, 5))
    assert set(found.values()) != {"validated"}


LEAN = choices_of(slot_form="told-apart")


@pytest.mark.compile
@pytest.mark.parametrize("partial", slow_but([True, False]))
def test_what_is_left_of_the_keys_is_a_branch(partial: bool, tmp_path: Path):
    text = attention("gfx1250", LEAN, 4)
    assert "if full_end < end:" in text and text.count("for start_n in") == 1
    found = attention_statuses(text, "gfx1250", tmp_path, range(4), 4, partial)
    assert found == dict.fromkeys(range(4), "validated")


BRANCH_PLANTED = {
    "another tile": ("        start_n = full_end\n", "        start_n = 0\n"),
    "no wait": ("        tdm.async_wait(0)\n", ""),
    "never taken": ("if full_end < end:", "if end < full_end:"),
}


@pytest.mark.compile
@pytest.mark.parametrize("what", BRANCH_PLANTED)
def test_planted_mistakes_in_the_branch_are_found(what: str, tmp_path: Path):
    text, (old, new) = attention("gfx1250", LEAN, 4), BRANCH_PLANTED[what]
    assert text.count(old) == 1
    found = attention_statuses(text.replace(old, new), "gfx1250", tmp_path, range(3, 4), 4)
    assert set(found.values()) != {"validated"}


WHOLE = "full_end = N_CTX // BLOCK_N * BLOCK_N\n        end = N_CTX\n"
BOUNDS = [
    ("full_end = BLOCK_N * (N_CTX // BLOCK_N)\n        end = N_CTX\n", True),
    ("full_end = N_CTX // BLOCK_N * BLOCK_N\n        end = N_CTX + 1\n", False),
    ("full_end = N_CTX // (2 * BLOCK_N) * (2 * BLOCK_N)\n        end = N_CTX\n", False),
    ("full_end = N_CTX // BLOCK_N\n        end = N_CTX\n", False),
]


@pytest.mark.parametrize("bounds, branch", slow_but_every(BOUNDS, 2), ids=[text.splitlines()[0] for text, _ in BOUNDS])
def test_a_loop_that_may_run_twice_stays_one(bounds: str, branch: bool, tmp_path: Path):
    source_text = (ATTENTION / "kernel.py").read_text()
    assert WHOLE in source_text
    (tmp_path / "kernel.py").write_text(source_text.replace(WHOLE, bounds))
    spec = attention_launch(2, 4)
    request = TranslateRequest(str(tmp_path / "kernel.py"), "gfx1250", launches=(spec,), chosen=((spec.kernel, LEAN),))
    text = translate_kernel(request).text
    assert ("if full_end < end:" in text) == branch


@pytest.mark.parametrize("target", slow_but(["gfx1250", "gfx950"]))
def test_operands_of_two_products_are_not_read_ahead(target: str):
    without = Choices(tuple(pair for pair in PREFETCH.overrides if pair[0] != "operand-reads"))
    assert attention(target, PREFETCH, 4) == attention(target, without, 4)


def test_parity_keeps_the_loop():
    assert "if full_end < end:" not in attention("gfx1250", Choices(), 4)


def test_attention_is_not_unrolled():
    """A round past the end would count tiles of zeros as scores."""
    folder = Path(__file__).resolve().parents[2] / "fixtures" / "flash_attention"
    spec = read_launches(str(folder / "launches.json"))[-1]
    request = TranslateRequest(
        str(folder / "kernel.py"),
        "gfx950",
        launches=(spec,),
        chosen=((spec.kernel, choices_of(slot_indices="literal")),),
    )
    text = translate_kernel(request).text
    assert "slot = " in text and "for slot in" not in text


REGISTER_PLANTED = """        with gl.amd.warp_pipeline_stage("memory", priority=1):
            a_smem"""


@pytest.mark.compile
def test_a_store_in_the_compute_stage_is_found(tmp_path: Path):
    text = translation("gfx942", choices_of(depth="2", warp_groups="alternating"))
    assert REGISTER_PLANTED in text
    planted = text.replace(REGISTER_PLANTED, "            a_smem")
    assert_found(planted, "gfx942", tmp_path)


@pytest.mark.compile
@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx942", "gfx1250"]))
def test_slices_are_right(target: str, tmp_path: Path):
    spec, written = launch(warps=1), 0
    for parts in ((2, 1), (1, 2), (2, 2)):
        request = TranslateRequest(
            str(KERNELS / "matmul.py"),
            target,
            launches=(spec,),
            chosen=((spec.kernel, choices_of(accumulator_slices=f"{parts[0]}x{parts[1]}")),),
        )
        text = translate_kernel(request).text
        if "gl.amd.slice" not in text:
            continue
        written += 1
        file = tmp_path / "translated.py"
        file.write_text(text)
        compiled = translated_stage(str(file), spec, target)
        left = source(KERNELS / "matmul.py", target, 32, 16, 112)
        status = validate_pair(
            left.text, compiled.text, launch((32, 16, 112), 1), source_names=left.names, translated_names=compiled.names,
            with_variants=False,
        ).status  # fmt: skip
        assert status == "validated", parts
    assert written == (1 if target == "gfx942" else 3)  # only A is cut between rows there


MATMUL = Path(__file__).resolve().parents[2] / "fixtures" / "matmul"
SLICED_PING_PONG = choices_of(
    depth="2", matrix_size="16", accumulator_slices="2x2", warp_groups="alternating", slot_form="told-apart"
)


def wide_launch(k: int = 144):
    """The fixture's launch with eight warps, for K = k."""
    spec = read_launches(str(MATMUL / "launches.json"))[0]
    a, b = (spec.values[name]["tensor"] for name in ("a_ptr", "b_ptr"))
    most = max(k, 144)
    values = {
        **spec.values,
        "K": k,
        "a_ptr": {"tensor": {**a, "shape": [272, k], "stride": [most, 1], "storage": 272 * most}},
        "b_ptr": {"tensor": {**b, "shape": [k, 208], "storage": most * 208}},
        "stride_am": most,
    }
    return replace(spec, options={**spec.options, "num_warps": 8}, values=values)


@functools.lru_cache(maxsize=None)
def in_short_stages(target: str, choices: Choices) -> str:
    spec = wide_launch()
    request = TranslateRequest(str(MATMUL / "kernel.py"), target, launches=(spec,), chosen=((spec.kernel, choices),))
    return translate_kernel(request).text


def wide_statuses(text: str, target: str, folder: Path, depths: tuple[int, ...]) -> set[str]:
    file = folder / "translated.py"
    file.write_text(text)
    found = set()
    for k in depths:
        left = source_stage(str(MATMUL / "kernel.py"), wide_launch(k), target)
        right = translated_stage(str(file), wide_launch(k), target)
        found.add(
            validate_pair(
                left.text, right.text, wide_launch(k), source_names=left.names, translated_names=right.names,
                with_variants=False,
            ).status
        )  # fmt: skip
    return found


REFILLED = SLICED_PING_PONG.replacing(refill="after-read")
SHORT_STAGES = [
    ("gfx950", REFILLED, 6),
    ("gfx950", REFILLED.replacing(accumulator_slices="2x1"), 4),
    ("gfx950", REFILLED.replacing(accumulator_slices="1x2", depth="3"), 4),
    ("gfx950", SLICED_PING_PONG, 6),
    ("gfx950", SLICED_PING_PONG.replacing(accumulator_slices="2x1"), 4),
    ("gfx942", SLICED_PING_PONG.replacing(accumulator_slices="2x1"), 5),  # the last one stores the next tile
    ("gfx1250", SLICED_PING_PONG.replacing(accumulator_slices="1x2"), 4),
]


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize(
    "target, choices, stages", slow_but_every(SHORT_STAGES, 3), ids=[f"{t} {x.name}" for t, x, _ in SHORT_STAGES]
)
def test_slices_are_read_and_multiplied_in_turn(target: str, choices: Choices, stages: int, tmp_path: Path):
    text = in_short_stages(target, choices)
    assert text.count("warp_pipeline_stage") == stages and "gl.amd.slice" in text
    assert ("its next tile takes its place" in text) == choices.asks("refill", "after-read")
    assert wide_statuses(text, target, tmp_path, (0, 16, 64, 80, 144)) == {"validated"}


IN_SLICES = {
    "waits for one group too few": (WAIT, WAIT.replace("- 2", "- 1")),
    "copies into the slot being read": ("b_smem.index(free_slot)", "b_smem.index(slot)"),
    "reads the first part twice": ("a.slice(64, 64, 0)", "a.slice(0, 64, 0)"),
    "multiplies another part": ("cdna4.mfma(a_1, b_0, ", "cdna4.mfma(a_0, b_0, "),
}


@pytest.mark.compile
@pytest.mark.parametrize("slices", slow_but(["2x1", "1x2"]))
def test_masks_are_computed_anew_for_a_tile_further_ahead(slices: str, tmp_path: Path):
    kernel = MATMUL.parent / "fp8_matmul" / "kernel.py"
    spec = read_launches(str(kernel.parent / "launches.json"))[0]
    choices = REFILLED.replacing(accumulator_slices=slices)
    request = TranslateRequest(str(kernel), "gfx950", launches=(spec,), chosen=((spec.kernel, choices),))
    file = tmp_path / "translated.py"
    file.write_text(translate_kernel(request).text)
    early, other = ("b", "a") if slices == "2x1" else ("a", "b")
    body = file.read_text().partition("warp_pipeline_stage")[2].partition("async_copy.wait_group")[0]
    assert f"{early}_smem.index(slot), {early}_base" in body and f"{other}_smem.index(free_slot)" in body
    assert body.count("K - (k_ahead + 1) * BLOCK_K") == body.count("K - k_ahead * BLOCK_K") == 1
    left, right = source_stage(str(kernel), spec, "gfx950"), translated_stage(str(file), spec, "gfx950")
    found = validate_pair(left.text, right.text, spec, source_names=left.names, translated_names=right.names)
    assert found.status == "validated"


BODY_WAIT = "        async_copy.wait_group(2 * NUM_BUFFERS - 3)\n"
AFTER_READ = {
    "waits for one group too few": (BODY_WAIT, BODY_WAIT.replace("- 3", "- 2")),
    "does not wait before the loop": ("    async_copy.wait_group(2 * NUM_BUFFERS - 3)\n    acc_0", "    acc_0"),
    "copies the same tile again": ("K - (k_ahead + 1) * BLOCK_K", "K - k_ahead * BLOCK_K"),
    "is not moved before the loop": ("    b_base += BLOCK_K * stride_bk\n    async_copy", "    async_copy"),
}


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize("what", AFTER_READ)
def test_planted_mistakes_in_early_copies_are_found(what: str, tmp_path: Path):
    text, (old, new) = in_short_stages("gfx950", REFILLED.replacing(accumulator_slices="2x1")), AFTER_READ[what]
    assert text.count(old) == 1
    assert "validated" not in wide_statuses(text.replace(old, new), "gfx950", tmp_path, (144, 272))


@pytest.mark.compile
def test_a_copy_where_one_group_still_reads_is_found(tmp_path: Path):
    text = in_short_stages("gfx950", REFILLED.replacing(accumulator_slices="2x1"))
    start, end = text.index("            # Both groups have read"), text.index("            a_1 = ")
    copied, rest = text[start:end], text[:start] + text[end:]
    planted = rest.replace("            a_0 = ", copied + "            a_0 = ")
    assert "validated" not in wide_statuses(planted, "gfx950", tmp_path, (144,))


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize("what", IN_SLICES)
def test_planted_mistakes_in_slices_are_found(what: str, tmp_path: Path):
    text, (old, new) = in_short_stages("gfx950", SLICED_PING_PONG), IN_SLICES[what]
    assert text.count(old) == 1
    assert "validated" not in wide_statuses(text.replace(old, new), "gfx950", tmp_path, (144,))
