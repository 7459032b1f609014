"""`--keep-structure`: kernels for Hopper become kernels for gfx1250 op by op, or are refused by the row of their operation."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

import fixture_set
from nvidia_examples import EXAMPLES, HEAD, descriptor, tensor
from gluonize.diagnostics import TranslationError
from gluonize.judge.verdict import validate_launch
from gluonize.output.kept.arrivals import arrivals_of
from gluonize.output.kept.layout_counterparts import padded
from gluonize.product.project.translate.plan import TranslateOptions, plan_translation
from gluonize.read.kernels.load import load_kernel
from gluonize.read.spec.launch import parse_launches
from gluonize.request import TranslateRequest
from gluonize.rules.nvidia import BESIDE, NVIDIA, NvidiaRow, counterpart
from gluonize.rules.targets import target
from gluonize.trace.front.gluon_source import gluon_module
from gluonize.translation import translate_kernel


def launch_of(path, source, arguments, grid=(1,), goal="cuda:90", constexprs=None, options=None):
    path.write_text(HEAD + dedent(source))
    spec = {
        "kernel": "kernel",
        "source": str(path),
        "target": goal,
        "grid": list(grid),
        "options": options or {"num_warps": 4},
    }
    spec |= {
        "signature": {name: kind for name, (kind, _) in arguments.items()}
        | dict.fromkeys(constexprs or {}, "constexpr")
    }
    spec |= {"values": {name: value for name, (_, value) in arguments.items()}, "constexprs": constexprs or {}}
    return parse_launches(spec)[0]


def kept(tmp_path, *launch, **more):
    """The kernel's text for gfx1250, and the launch."""
    spec = launch_of(tmp_path / "source.py", *launch, **more)
    goal = TranslateRequest(spec.source, "gfx1250", launches=(spec,), keep_structure=True)
    result = translate_kernel(goal)
    if result.text is None:
        raise TranslationError(*(result.diagnostics or result.outcomes[0].diagnostics))
    return result.text, spec


def validated(tmp_path, *launch, **more):
    """The text, once it computes what its source does."""
    text, spec = kept(tmp_path, *launch, **more)
    (tmp_path / "out.py").write_text(text)
    answer = validate_launch(spec.source, str(tmp_path / "out.py"), spec, "gfx1250")
    assert answer["status"] == "validated", answer["reason"]
    return text


KEPT = ("copies", "tile", "made")


@pytest.mark.parametrize("name", KEPT)
def test_examples_of_hopper_are_kept(name, tmp_path):
    source, goal, arguments, grid = EXAMPLES[name]
    text = validated(tmp_path, source, arguments, grid, goal)
    assert "nvidia" not in text and "NVMMA" not in text


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in KEPT])
def test_other_examples_are_refused_by_a_row(name, tmp_path):
    source, goal, arguments, grid = EXAMPLES[name]
    with pytest.raises(TranslationError) as refused:
        kept(tmp_path, source, arguments, grid, goal)
    (found,) = refused.value.diagnostics
    whys = [row.why_not for row in NVIDIA if row.why_not]
    assert found.code == "not-kept" and found.line > HEAD.count("\n") and found.why in whys, found
    assert "--keep-structure out" in found.help


def test_every_row_has_a_counterpart_or_says_why_not():
    known = [c for row in NVIDIA for c in row.counterparts]
    assert len({c.function for c in (*known, *BESIDE)}) == len(known) + len(BESIDE)
    for c in known:
        assert counterpart(c.function) is c and hasattr(target("gfx1250"), c.needs)
    assert isinstance(counterpart("blackwell.tcgen05_mma"), NvidiaRow) and counterpart("tma.no_such") is None


PARTITIONS = """
    @gluon.jit
    def loads(x, slots, full, free, n, RING: gl.constexpr):
        for i in range(n):
            mbarrier.wait(free.index(i % RING), i // RING & 1, pred=i >= RING)
            mbarrier.expect(full.index(i % RING), x.block_type.nbytes, pred=True)
            tma.async_load(x, [0, i * 64], full.index(i % RING), slots.index(i % RING), pred=i < n)

    @gluon.jit
    def sums(y, slots, full, free, n, RING: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
        total = gl.zeros([32, 64], gl.float32, layout)
        for i in range(n):
            mbarrier.wait(full.index(i % RING), i // RING & 1)
            total += slots.index(i % RING).load(layout)
            mbarrier.arrive(free.index((i - 1) % RING), count=1, pred=i >= 1)
        out = gl.allocate_shared_memory(y.dtype, y.block_type.shape, y.layout)
        out.store(total)
        fence_async_shared()
        tma.async_store(y, [0, 0], out)
        tma.store_wait(0)

    @gluon.jit
    def kernel(x, y, RING: gl.constexpr):
        n = gl.cdiv(x.shape[1], 64)
        slots = gl.allocate_shared_memory(x.dtype, [RING] + x.block_type.shape, x.layout)
        full = mbarrier.allocate_mbarrier(batch=RING)
        free = mbarrier.allocate_mbarrier(batch=RING)
        for i in gl.static_range(RING):
            mbarrier.init(full.index(i), count=1)
            mbarrier.init(free.index(i), count=1)
        gl.warp_specialize([(sums, (y, slots, full, free, n, RING)), (loads, (x, slots, full, free, n, RING))], [1], [24])
        for i in gl.static_range(RING):
            mbarrier.invalidate(full.index(i))
"""
ROWS = {"x": descriptor("fp32", [32, 640], [32, 64]), "y": descriptor("fp32", [32, 64], [32, 64])}


def test_partitions_predicates_and_counts(tmp_path):
    """The ring is refilled one step late, so that waits and arrivals have predicates."""
    source = PARTITIONS.replace("i // RING & 1, pred=i >= RING", "(i // RING & 1) ^ 1, pred=i >= RING")
    text = validated(tmp_path, source, ROWS, constexprs={"RING": 3})
    assert "if i >= RING:\n            mbarrier.wait(free.index(i % RING), (i // RING & 1) ^ 1)" in text
    assert "if i >= 1:\n            mbarrier.arrive(free.index((i - 1) % RING), count=1)" in text
    assert "mbarrier.expect" not in text and "invalidate" not in text and "fence" not in text and "[24]" not in text
    # One warp copies, and 128 threads are done with a slot.
    assert "init(full.index(i), count=1)" in text and "init(free.index(i), count=128)" in text
    assert text.count("gl.barrier()") == 1 and text.index("gl.barrier()") < text.index("gl.warp_specialize(")


def test_what_arrives_is_counted_in_every_phase(tmp_path):
    source = PARTITIONS.replace("i // RING & 1, pred=i >= RING", "(i // RING & 1) ^ 1, pred=i >= RING")
    both = source.replace(
        "tma.async_load(x,",
        "tma.async_load(x, [0, 0], full.index(i % RING), slots.index(i % RING))\n            tma.async_load(x,",
    )
    both = both.replace("x.block_type.nbytes, pred", "2 * x.block_type.nbytes, pred")
    spec = launch_of(tmp_path / "source.py", both, ROWS, constexprs={"RING": 3})
    loaded = load_kernel(spec.source, "kernel")
    found = arrivals_of(gluon_module(loaded.fn, spec, "cuda:90", loaded.load_jit), spec)
    assert sorted(found.values()) == [2, 128]


def test_phases_with_different_arrivals_are_refused(tmp_path):
    """The second phase has two copies; one count cannot say that."""
    source = """
    @gluon.jit
    def kernel(x, y):
        slots = gl.allocate_shared_memory(x.dtype, [2] + x.block_type.shape, x.layout)
        bar = mbarrier.allocate_mbarrier()
        mbarrier.init(bar, count=1)
        for i in gl.static_range(2):
            mbarrier.expect(bar, (i + 1) * x.block_type.nbytes)
            tma.async_load(x, [0, 0], bar, slots.index(0))
            if i == 1:
                tma.async_load(x, [0, 64], bar, slots.index(1))
            mbarrier.wait(bar, i)
        fence_async_shared()
        tma.async_store(y, [0, 0], slots.index(1))
        tma.store_wait(0)
    """
    with pytest.raises(TranslationError, match="no counterpart") as refused:
        kept(tmp_path, source, ROWS)
    assert "different numbers of arrivals" in refused.value.diagnostics[0].why


PRODUCT = """
    @gluon.jit
    def kernel(a, b, c, layout: gl.constexpr, first: gl.constexpr):
        sa = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
        shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for(b.block_type.shape, b.dtype)
        gl.static_assert(isinstance(shared, gl.NVMMASharedLayout))
        sb = gl.allocate_shared_memory(b.dtype, b.block_type.shape, shared)
        bar = mbarrier.allocate_mbarrier()
        mbarrier.init(bar, count=1)
        mbarrier.expect(bar, a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [0, 0], bar, sa)
        tma.async_load(b, [0, 0], bar, sb)
        mbarrier.wait(bar, 0)
        acc = gl.full((64, 64), 1.0, gl.float32, layout)
        acc = warpgroup_mma(sa, sb, acc, use_acc=first, is_async=True)
        left = sa.load(gl.DotOperandLayout(operand_index=0, parent=layout, k_width=2))
        acc = warpgroup_mma_wait(num_outstanding=0, deps=[acc])
        acc = warpgroup_mma(left, sb.permute((1, 0)), acc, use_acc=gl.program_id(0) == 0)
        out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
        out.store(acc)
        fence_async_shared()
        tma.async_store(c, [gl.program_id(0) * 64, 0], out)
        tma.store_wait(0)
"""
WGMMA = {"$layout": "NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])"}


@pytest.mark.parametrize("first", [True, False])
def test_products_layouts_as_arguments_and_flags(first, tmp_path):
    arguments = {"a": descriptor("fp16", [64, 64], [64, 64]), "b": descriptor("fp16", [64, 64], [64, 64])}
    arguments |= {"c": descriptor("fp32", [128, 64], [64, 64])}
    text = validated(tmp_path, PRODUCT, arguments, (2,), constexprs={"layout": WGMMA, "first": first})
    assert "k_width=8" in text and "static_assert(isinstance" not in text
    assert "acc = acc" not in text and "warp_bases=[[1, 0], [2, 0]], instr_shape=[16, 16, 32]" in text
    assert "with_identity_for([[64, 8]], [64, 64], [1, 0])" in text


@pytest.mark.parametrize(
    "changed, goal, options, why",
    [
        ({}, "cuda:90", {"num_warps": 4, "num_ctas": 2}, "several workgroups"),
        ({}, "hip:gfx1250", {"num_warps": 4}, "an AMD GPU"),
    ],
)
def test_launches_of_which_no_structure_is_kept(changed, goal, options, why, tmp_path):
    with pytest.raises(TranslationError) as refused:
        kept(tmp_path, PARTITIONS, ROWS, goal=goal, constexprs={"RING": 2}, options=options)
    assert why in refused.value.diagnostics[0].why


def test_targets_without_the_machine_are_refused(tmp_path):
    spec = launch_of(tmp_path / "source.py", PARTITIONS, ROWS, constexprs={"RING": 2})
    result = translate_kernel(TranslateRequest(spec.source, "gfx950", launches=(spec,), keep_structure=True))
    assert result.outcomes[0].diagnostics[0].code == "not-kept" and result.text is None
    assert "no tensor data mover" in result.outcomes[0].diagnostics[0].why


def test_numbers_that_a_copy_shares_with_others_are_refused(tmp_path):
    source = PARTITIONS.replace("i // RING & 1, pred=i >= RING", "(i // RING & 1) ^ 1, pred=i >= RING")
    source = source.replace("pred=i < n)", "multicast=True)")
    with pytest.raises(TranslationError) as refused:
        kept(tmp_path, source, ROWS, constexprs={"RING": 2})
    assert "no `multicast`" in refused.value.diagnostics[0].why


AGGREGATE = """
    from triton.language.core import _aggregate as aggregate

    @aggregate
    class Tiles:
        step: gl.constexpr

        @gluon.constexpr_function
        def __init__(self):
            self.step = gl.constexpr(2)

    @gluon.jit
    def kernel(x_ptr, layout: gl.constexpr):
        at = gl.arange(0, 128, layout)
        gl.store(x_ptr + at, gl.load(x_ptr + at) * STEP)
"""
BLOCKED = {"$layout": "SliceLayout(0, BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0]))"}


def test_layouts_as_arguments_are_written_into_the_kernel(tmp_path):
    """Launches of the output do not give them, so two of a file cannot have different ones."""
    source = AGGREGATE.replace("STEP", "2")
    arguments = {"x_ptr": tensor("fp32", 128)}
    text = validated(tmp_path, source, arguments, constexprs={"layout": BLOCKED})
    assert "layout_given: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout(" in text
    one = launch_of(tmp_path / "source.py", source, arguments, constexprs={"layout": BLOCKED})
    other = {"$layout": "BlockedLayout([1], [32], [4], [0])"}
    two = replace(one, id="two", constexprs={"layout": other})
    found = translate_kernel(TranslateRequest(one.source, "gfx1250", launches=(one, two), keep_structure=True))
    assert [d.code for o in found.outcomes for d in o.diagnostics] == ["launches-alike"] and found.text is None


@pytest.mark.parametrize(
    "source, constexprs, why",
    [
        (AGGREGATE.replace("STEP", "Tiles().step"), {"layout": BLOCKED}, "fields and methods"),
        (AGGREGATE, {"layout": BLOCKED, "STEP": {"$class": "source.py:Tiles"}}, "function or a class"),
    ],
)
def test_aggregates_are_refused(source, constexprs, why, tmp_path):
    source = source.replace("layout: gl.constexpr)", "layout: gl.constexpr, STEP: gl.constexpr = 1)")
    with pytest.raises(TranslationError) as refused:
        kept(tmp_path, source, {"x_ptr": tensor("fp32", 128)}, constexprs=constexprs)
    assert why in refused.value.diagnostics[0].why and refused.value.diagnostics[0].code == "not-kept"


USED_TWICE = """
    @gluon.jit
    def fetch(x, at, bar, slot, more):
        mbarrier.expect(bar, x.block_type.nbytes, pred=more)
        tma.async_load(x, [0, at], bar, slot, pred=more)

    @gluon.jit
    def kernel(x, y):
        slot = gl.allocate_shared_memory(x.dtype, x.block_type.shape, x.layout)
        bar = mbarrier.allocate_mbarrier()
        mbarrier.init(bar, count=1)
        fetch(x, 0, bar, slot, True)
        for i in range(gl.cdiv(x.shape[1], 64)):
            mbarrier.wait(bar, i & 1)
            fence_async_shared()
            tma.async_store(y, [0, i * 64], slot)
            tma.store_wait(0, read_only=False)
            fetch(x, i * 64 + 64, bar, slot, i * 64 + 64 < x.shape[1])
"""


def test_a_function_that_is_used_in_two_ways_has_one_text(tmp_path):
    arguments = {"x": descriptor("fp32", [32, 640], [32, 64]), "y": descriptor("fp32", [32, 640], [32, 64])}
    text = validated(tmp_path, USED_TWICE, arguments)
    assert (
        text.count("def fetch(") == 1 and "    if more:\n        tdm.async_load(x, [0, at], slot, mbarrier=bar)" in text
    )


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "lifted"])
def test_descriptors_that_round_are_refused(keep, tmp_path):
    """Host code asks for it; neither Triton's descriptors nor the target's mover have it."""
    kind, value = descriptor("fp32", [32, 640], [32, 64])
    rounding = kind, {"descriptor": value["descriptor"] | {"round_f32_to_tf32": True}}
    spec = launch_of(tmp_path / "source.py", USED_TWICE, {"x": rounding, "y": (kind, value)})
    result = translate_kernel(TranslateRequest(spec.source, "gfx1250", launches=(spec,), keep_structure=keep))
    (found,) = result.outcomes[0].diagnostics
    assert result.text is None and found.code == ("not-kept" if keep else "not-lifted") and "round" in found.why


def test_options_that_say_something_else(tmp_path):
    path = str(fixture_set.ROOT / "hopper" / "source.py")
    for more in ({"general": True}, {"emit": "lifted"}, {"num_buffers": 2}, {"optimize": "search"}):
        with pytest.raises(TranslationError, match="nothing is lifted"):
            plan_translation(TranslateOptions(path, "gfx1250", keep_structure=True, **more))


def test_layouts_of_slots():
    assert padded([64, 64], 16) == "gl.PaddedSharedLayout.with_identity_for([[64, 8]], [64, 64], [1, 0])"
    assert padded([256], 32) == "gl.SwizzledSharedLayout(1, 1, 1, [0])"
    # A descriptor can say paddings after 256 dwords at most.
    assert padded([8, 1024], 32) == "gl.SwizzledSharedLayout(1, 1, 1, [1, 0])"


def test_functions_keep_their_names_and_constants(tmp_path):
    """Names from outside: constants, aliases of Gluon's modules, helpers in two partitions."""
    source = """
    import triton.experimental.gluon.language as ttgl

    STEP = ttgl.constexpr(2)

    @gluon.jit
    def add(x):
        return ttgl.maximum(x, 0.0) + STEP

    @gluon.jit
    def kernel(x_ptr, y_ptr):
        at = ttgl.arange(0, 128, ttgl.BlockedLayout([1], [32], [4], [0]))
        slot = ttgl.allocate_shared_memory(gl.float32, [128], ttgl.SwizzledSharedLayout(1, 1, 1, [0]))
        cp.async_load(slot, x_ptr + at)
        cp.commit_group()
        cp.wait_group(0)
        ttgl.store(y_ptr + at, add(slot.load(at.type.layout)))
    """
    text = validated(tmp_path, source, {"x_ptr": tensor("fp32", 128), "y_ptr": tensor("fp32", 128)})
    assert "ttgl" not in text and "STEP = gl.constexpr(2)" in text and "def add(x):" in text
