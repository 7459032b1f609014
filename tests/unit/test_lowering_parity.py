"""Ratios, regressions and tables of parity."""

import dataclasses
import json

import pytest
from rich.console import Console

from gluonize.judge.lower.metrics import InstructionMix, KernelMetrics
from gluonize.judge.lower.parity import Parity, narrower, ratio
from gluonize.judge.lower.parity_table import metrics_table, parity_summary, parity_table

LOOP = InstructionMix(insns=100, mma=16, valu=40, barrier=1)
MIX = InstructionMix(
    insns=600, mma=32, valu=300, load=8, store=4, barrier=2, widths={"load": {"128": 8}, "store": {"64": 2, "128": 2}}
)
SIDE = KernelMetrics(
    mix=MIX,
    vgpr=128,
    agpr=0,
    sgpr=40,
    spill=0,
    sgpr_spill=0,
    scratch_bytes=0,
    lds_bytes=32768,
    loops=1,
    loop=LOOP,
    occupancy=4,
)


def parity(loop: dict | None = None, mix: dict | None = None, **kernel) -> Parity:
    """Parity of a side that differs from SIDE as told against SIDE."""
    ours = dataclasses.replace(SIDE, **kernel)
    ours = dataclasses.replace(ours, mix=dataclasses.replace(MIX, **(mix or {})))
    if loop is not None:
        ours = dataclasses.replace(ours, loop=dataclasses.replace(LOOP, **loop))
    return Parity("matmul", "gfx950", ours, SIDE)


@pytest.mark.parametrize("ours, theirs, expected", [(2, 4, 0.5), (0, 0, 1.0), (3, 0, None), (0, 3, 0.0)])
def test_ratio(ours, theirs, expected):
    assert ratio(ours, theirs) == expected


@pytest.mark.parametrize(
    "loads, theirs, expected",
    [
        ({}, {"16": 2, "32": 2}, (0, 0)),
        ({"32": 8}, {"32": 8, "128": 8}, (32, 32)),
        ({"32": 8, "128": 2}, {"32": 8, "128": 6}, (51.2, 51.2)),
        ({"16": 4, "128": 2}, {"16": 8, "32": 2, "128": 8}, (160 / 3, 320 / 11)),
        ({"64": 16}, {"128": 8}, (64, 128)),
        ({"32": 9}, {"32": 8, "128": 8}, (32, 80)),
        ({"16": 2, "64": 8}, {"16": 8, "128": 8}, (54.4, 72)),
        ({"128": 9}, {"64": 2, "128": 8}, (128, 115.2)),
    ],
    ids=[
        "all moved",
        "the wide ones moved",
        "some moved",
        "of all widths",
        "halved",
        "one narrow one more",
        "the narrow ones moved, the others halved",
        "wider",
    ],
)
def test_widths_compare_what_both_sides_load(loads, theirs, expected):
    ours, other = (dataclasses.replace(MIX, widths={"load": widths}) for widths in (loads, theirs))
    both = Parity("m", "gfx1250", dataclasses.replace(SIDE, mix=ours), dataclasses.replace(SIDE, mix=other))
    assert both.widths("load") == pytest.approx(expected)
    narrower = 0 < expected[0] < 0.9 * expected[1]
    assert any("loads are" in line for line in both.regressions()) == narrower


@pytest.mark.parametrize(
    "mine, words",
    [
        ({64: 1, 32: 20}, "64 bits wide at most, Triton's 128"),  # on average by 5 % only
        ({32: 21}, "32 bits wide on average, Triton's 37"),
        ({32: 20}, ""),
        ({128: 1, 32: 21}, ""),
    ],
    ids=["halved", "in pieces", "gone", "one more"],
)
def test_the_widest_access_may_not_be_narrower(mine, words):
    assert narrower(mine, {128: 1, 32: 20}) == words


def test_loads_straight_to_lds_are_loads_too():
    ours = dataclasses.replace(MIX, widths={"load": {"32": 8, "64": 2}})
    other = dataclasses.replace(MIX, widths={"load": {"32": 4, "64": 2}, "lds_dma": {"32": 4, "128": 1}})
    both = Parity("m", "gfx950", dataclasses.replace(SIDE, mix=ours), dataclasses.replace(SIDE, mix=other))
    assert both.widths("load") == pytest.approx((38.4, 38.4))  # at most as many of each width: as many bits compared
    assert both.widths("store") == (0, 0)


def test_equal_sides_have_no_regressions():
    same = parity()
    assert same.regressions() == ()
    assert set(same.ratios().values()) == {1.0} and set(same.loop_ratios().values()) == {1.0}


@pytest.mark.parametrize(
    "change, expected",
    [
        (dict(loop=dict(insns=111)), "hottest loop has 1.11x the instructions"),
        (dict(loop=dict(mma=20)), "hottest loop has 20 matrix instructions per tile, Triton's 16"),
        (dict(loop=dict(barrier=2)), "hottest loop has 2 barriers per tile, Triton's 1"),
        (dict(spill=1), "spills 1 VGPRs, Triton 0"),
        (dict(sgpr_spill=2), "spills 2 SGPRs, Triton 0"),
        (dict(lds_bytes=54700), "54700 bytes of LDS leave room for 2 workgroups, Triton's 32768 for 4"),
        (
            dict(mix=dict(widths={"load": {"64": 16}, "store": {"64": 2, "128": 2}})),
            "loads are 64 bits wide on average, Triton's 128",
        ),
    ],
    ids=["loop", "matrix instructions", "barriers", "spills", "scalar spills", "lds", "widths"],
)
def test_what_is_worse_is_named(change, expected):
    assert parity(**change).regressions() == (expected,)


def test_an_unrolled_loop_counts_per_tile():
    twice = parity(loop=dict(insns=196, mma=32, barrier=2))
    assert twice.unrolled() == (2, 1)
    assert twice.loop_ratios()["insns"] == 0.98 and twice.loop_ratios()["barrier"] == 1.0
    assert twice.regressions() == ()
    longer = parity(loop=dict(insns=230, mma=32, barrier=3))
    assert longer.regressions() == (
        "hottest loop has 1.15x the instructions",
        "hottest loop has 1.5 barriers per tile, Triton's 1",
    )
    assert parity(loop=dict(insns=100, mma=20)).unrolled() == (1, 1)
    assert parity(loop=dict(insns=100, mma=0)).unrolled() == (1, 1)


def test_a_loop_of_tritons_that_is_unrolled_counts_per_tile():
    theirs = dataclasses.replace(SIDE, loop=dataclasses.replace(LOOP, insns=400, mma=64, barrier=4))
    both = Parity("matmul", "gfx950", SIDE, theirs)
    assert both.unrolled() == (1, 4) and both.loop_ratios()["insns"] == 1.0 and both.regressions() == ()
    more = dataclasses.replace(SIDE, loop=dataclasses.replace(LOOP, barrier=2))
    assert Parity("matmul", "gfx950", more, theirs).regressions() == (
        "hottest loop has 2 barriers per tile, Triton's 1",
    )


@pytest.mark.parametrize(
    "theirs, ours, tiles",
    [
        (dict(barrier=1), dict(barrier=1), 1),
        (dict(barrier=1), dict(barrier=2), 2),
        (dict(barrier=1, load=4), dict(barrier=1, load=8), 2),
        (dict(barrier=0, lds_dma=4), dict(barrier=0, load=4, lds_dma=4), 2),
        (dict(barrier=0, load=4), dict(barrier=0, load=4), 1),
        (dict(barrier=0), dict(barrier=0), 2),
    ],
    ids=["barriers", "more barriers", "more loads", "more copies", "loads", "neither"],
)
def test_products_that_are_made_twice_are_no_second_tile(theirs, ours, tiles):
    """Twice the matrix instructions are an unrolled loop only with the loads or barriers of a second tile."""
    triton = dataclasses.replace(SIDE, loop=dataclasses.replace(LOOP, **theirs))
    doubled = dataclasses.replace(SIDE, loop=dataclasses.replace(LOOP, insns=110, mma=32, **ours))
    both = Parity("matmul", "gfx950", doubled, triton)
    assert both.unrolled() == (tiles, 1)
    more = "hottest loop has 32 matrix instructions per tile, Triton's 16"
    assert (more in both.regressions()) == (tiles == 1)


@pytest.mark.parametrize(
    "change",
    [
        dict(loop=dict(insns=110)),
        dict(loop=dict(barrier=0, mma=12)),
        dict(mix=dict(insns=900, barrier=9, mma=64)),
        dict(lds_bytes=40960),
        dict(vgpr=256),
    ],
    ids=["loop within noise", "fewer in the loop", "longer prologue", "padding", "registers alone"],
)
def test_what_is_not_worse_is_not_named(change):
    assert parity(**change).regressions() == ()


@pytest.mark.parametrize(
    "change, expected",
    [
        (dict(insns=700), ("kernel has 1.17x the instructions",)),
        (dict(barrier=3), ("kernel has 3 barriers, Triton's 2",)),
        (dict(mma=33), ("kernel has 33 matrix instructions, Triton's 32",)),
        (dict(insns=650, barrier=2, mma=16), ()),
    ],
    ids=["instructions", "barriers", "matrix instructions", "no worse"],
)
@pytest.mark.parametrize("loop", [None, dataclasses.replace(LOOP, mma=0)], ids=["none", "another one"])
def test_without_the_same_loop_the_whole_kernel_counts(change, expected, loop):
    """Neither side has a loop, or ours is one beside the products, which are written out."""
    theirs = dataclasses.replace(SIDE, loop=loop and LOOP)
    ours = dataclasses.replace(SIDE, loop=loop, mix=dataclasses.replace(MIX, **change))
    both = Parity("add", "gfx950", ours, theirs)
    assert both.regressions() == expected
    assert both.loop_ratios() is None


@pytest.mark.parametrize(
    "triton, lds_bytes, fit",
    [
        (dict(lds_bytes=0), 40960, None),
        (dict(lds_bytes=0), 40961, (3, 4)),
        (dict(vgpr=400), 131072, None),
        (dict(vgpr=40, lds_bytes=0), 4096, None),
        (dict(vgpr=40, lds_bytes=0, num_warps=1), 8192, (20, 32)),
    ],
    ids=["free", "one byte more", "registers leave one", "as many as waves", "of one warp"],
)
def test_lds_matters_where_fewer_workgroups_fit(triton, lds_bytes, fit):
    """gfx950 has 160 KiB for at most 8 waves on each of 4 SIMDs."""
    theirs = dataclasses.replace(SIDE, **triton)
    found = Parity("add", "gfx950", dataclasses.replace(SIDE, lds_bytes=lds_bytes), theirs).worse().get("lds")
    room = f"{lds_bytes} bytes of LDS leave room for {{}} workgroups, Triton's {theirs.lds_bytes} for {{}}"
    assert found == ([room.format(*fit)] if fit else None)


def test_json_has_no_infinity():
    data = parity(mix=dict(ds_write=4)).as_json()
    assert json.loads(json.dumps(data, allow_nan=False))["ratios"]["ds_write"] is None
    assert data["widths"]["store"] == [96, 96]


def text_of(table) -> str:
    console = Console(width=160, no_color=True)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_tables_show_both_sides():
    worse = parity(loop=dict(insns=150), spill=7, mix=dict(ds_write=4))
    full = text_of(parity_table(worse))
    rows = {line.split()[0]: line.split()[1:] for line in full.splitlines()[2:] if line.strip()}
    assert rows["insns"] == ["600", "600", "1.00x", "150", "100", "1.50x"]
    assert rows["spill"] == ["7", "0", "new"] and rows["ds_write"] == ["4", "0", "new"]
    assert "scratch" not in rows
    summary = text_of(parity_summary([worse]))
    assert "hottest loop has 1.50x the instructions" in summary and "spills 7 VGPRs, Triton 0" in summary
    assert "1.50x" not in text_of(parity_summary([parity(loop=dict(insns=150, mma=0))]))  # not the same loop
    assert "128 x8" in text_of(metrics_table("matmul", "gfx950", SIDE))


def test_what_triton_compiles_without_its_ptx_is_no_measure(tmp_path):
    from translation_of import compiled, dedent, launch

    text = dedent("""
        import triton
        import triton.language as tl


        @triton.jit
        def k(x_ptr, y_ptr, B: tl.constexpr):
            o = tl.arange(0, B)
            x = tl.load(x_ptr + o)
            y = tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
            tl.store(y_ptr + o, y)
    """)
    spec = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {"B": 256})
    theirs = compiled(tmp_path, text, spec).metrics
    whole = compiled(tmp_path, text.replace("ex2.approx.f32", "v_exp_f32").replace("=f,f", "=v,v"), spec).metrics
    assert theirs.incomplete and not whole.incomplete
    dropped = dataclasses.replace(
        parity(mix={"insns": 6000}, spill=9), triton=dataclasses.replace(SIDE, incomplete=True)
    )
    assert dropped.regressions() == () and "PTX" in dropped.note and dropped.as_json()["note"] == dropped.note
    assert parity(spill=9).regressions() and not parity().note
    console = Console(width=200, record=True)
    console.print(parity_summary([dropped]))
    assert dropped.note in console.export_text()
