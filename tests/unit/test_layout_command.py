"""`gluonize layout`: what it draws is what Gluon's own views show, for every class of layouts."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.cli.edge import run
from gluonize.product.report.layouts.expression import DISTRIBUTED, SHARED, read_layout
from gluonize.product.report.layouts.terminal import layout_lines

VIEW = "gluonize.product.report.layouts.expression:view_layout"
BLOCKED = "gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])"
MFMA = "gl.amd.AMDMFMALayout(4, [32, 32, 16], True, [2, 2])"
WMMA = "gl.amd.AMDWMMALayout(3, True, [[0, 1], [1, 0]], instr_shape=[16, 16, 32])"
PADDED = "gl.PaddedSharedLayout.with_identity_for([[64, 8]], [16, 64], [1, 0])"
REGISTERS = {
    "BlockedLayout": (BLOCKED, (64, 64)),
    "BlockedLayout, column-major": ("BlockedLayout([8, 1], [8, 8], [1, 4], [0, 1])", (64, 64)),
    "BlockedLayout, of a vector": ("gl.BlockedLayout([4], [32], [4], [0])", (128,)),
    "SliceLayout": (f"gl.SliceLayout(1, {BLOCKED})", (64,)),
    "SliceLayout, of a linear one": (
        "gl.SliceLayout(1, gl.DistributedLinearLayout([[0, 1]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [], [], [8, 8]))",
        (8,),
    ),
    "DistributedLinearLayout": (
        "gl.DistributedLinearLayout([[0, 1], [8, 0]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[0, 8]], [], [16, 16])",
        (16, 16),
    ),
    "DotOperandLayout": (f"gl.DotOperandLayout(1, {MFMA}, 8)", (32, 64)),
    "AMDMFMALayout": (MFMA, (64, 64)),
    "AMDWMMALayout": (WMMA, (32, 32)),
}
IN_LDS = {
    "SwizzledSharedLayout": ("gl.SwizzledSharedLayout(8, 1, 8, [1, 0])", (32, 64)),
    "SharedLinearLayout": ("gl.SharedLinearLayout([[0, 1], [0, 2], [1, 2], [2, 0], [4, 1]])", (8, 4)),
}


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as pool:
        yield pool


def drawn(view) -> list[str]:
    return ["".join(text for text, _ in line) for line in layout_lines(view, 64)]


@pytest.mark.parametrize("name", REGISTERS)
def test_registers_are_where_gluon_sees_them(pool, name):
    """Cells of the drawing, taken apart, against both of Gluon's views."""
    view = pool.call(VIEW, *REGISTERS[name], 16)
    lanes = view.placed.lanes
    cells = [cell for line in view.tensor.splitlines() for cell in line.strip("[] \n").split(",") if cell.strip("[] ")]
    holders = [{tuple(map(int, pair)) for pair in re.findall(r"T(\d+):\s*(\d+)", cell)} for cell in cells]
    seen = []
    for line in drawn(view)[3:]:
        for warp, lane, first, last in re.findall(r"(\d+)\.(\d+):(\d+)(?:-(\d+))?", line):
            seen += [(int(warp) * lanes + int(lane), r) for r in range(int(first), int(last or first) + 1)]
    assert len(seen) == len(holders) and all(one in there for one, there in zip(seen, holders))
    warps = [block.strip().splitlines() for block in view.hardware.split("Warp")[1:]]
    for warp, (_, *registers) in enumerate(warps):
        for register, line in enumerate(registers):
            for lane, found in enumerate(re.findall(r"\(([\d, ]+)\)", line)):
                assert view.placed.element(warp, lane, register) == tuple(map(int, found.split(",")))
    assert len(warps) == view.placed.warps


@pytest.mark.parametrize("name", IN_LDS)
def test_offsets_in_lds_are_those_that_gluon_sees(pool, name):
    view = pool.call(VIEW, *IN_LDS[name], 16)
    gluon = {
        tuple(map(int, at.split(","))): int(n) for n, at in re.findall(r"Offset: (\d+) -> \((.*?)\)", view.hardware)
    }
    assert view.placed.offsets == gluon
    rows, columns = view.placed.shape
    seen = {}
    for row, line in enumerate(drawn(view)[3:]):
        offsets = [
            int(first) + i
            for first, count in re.findall(r"(\d+)(?:\+(\d+))? \[\d+\]", line)
            for i in range(int(count or 1))
        ]
        seen |= {(row, column): offset for column, offset in enumerate(offsets)}
    assert seen == gluon and len(seen) == rows * columns


def test_padding_and_partitions_by_hand(pool):
    padded = pool.call(VIEW, PADDED, (16, 64), 16)
    assert [padded.placed.offsets[row, 3] for row in (0, 1, 2)] == [3, 64 + 8 + 3, 2 * (64 + 8) + 3]
    cut = pool.call(VIEW, f"cdna5.PartitionedSharedLayout(2, 2, 0, {PADDED})", (64, 64), 16)
    assert "piece 2: 32 to 47 of dimension 0, partition 0, group 1" in drawn(cut)
    # All classes that can be drawn are in this file.
    tried = {name.split(",")[0] for name in (*REGISTERS, *IN_LDS)} | {"PaddedSharedLayout", "PartitionedSharedLayout"}
    assert tried == {*DISTRIBUTED, *SHARED}


@pytest.mark.parametrize(
    "text, said",
    [
        ("gl.AutoLayout()", "AutoLayout has no map"),
        ("gl.NVMMASharedLayout(128, 16)", "no layout of AMD targets"),
        ("__import__('os').getcwd()", "no layout of AMD targets"),
        ("gl.BlockedLayout([1, 8], [8, 8], [4, 1], ORDER)", "ORDER is neither a layout nor a literal"),
        ("gl.BlockedLayout([1], [8, 8], [4, 1], [1, 0])", "does not take these arguments"),
        ("gl.BlockedLayout(", "no layout:"),
    ],
)
def test_what_is_no_layout_is_refused(pool, text, said):
    with pytest.raises(TranslationError, match=re.escape(said)):
        pool.call(VIEW, text, (64, 64), 16)


def test_layouts_that_do_not_fit_their_tile_are_refused(pool):
    with pytest.raises(TranslationError, match="it is for a tile of 16 x 64"):
        pool.call(VIEW, PADDED, (64, 64), 16)


def test_spellings_mean_the_same():
    assert (
        read_layout(BLOCKED) == read_layout(BLOCKED.removeprefix("gl.")) == read_layout(BLOCKED.replace("gl.", "ttgl."))
    )


def test_conflicts_of_an_access(tmp_path, capsys, monkeypatch):
    """Lanes that read 16 bytes each, eight at a time, down a column: all in the same banks, or each in its own with padding."""
    monkeypatch.chdir(tmp_path)
    column = "gl.BlockedLayout([1, 1], [32, 1], [1, 1], [0, 1])"
    plain = ["layout", "gl.SwizzledSharedLayout(1, 1, 1, [1, 0])", "--shape", "32,32", "--bits", "32", "-t", "gfx942"]
    assert run([*plain, "--access", column, "-o", "plain.svg"]) == 0
    assert "32 cycles for 4: 28 cycles lost" in capsys.readouterr().out
    padded = ["layout", "gl.PaddedSharedLayout.with_identity_for([[32, 4]], [32, 32], [1, 0])", *plain[2:]]
    assert run([*padded, "--access", column]) == 0
    assert "4 cycles for 4: no conflicts" in capsys.readouterr().out
    picture = ElementTree.parse("plain.svg").getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    conflicts = [e for e in picture.iter() if e.get("class") == "conflict"]
    assert [e.get("data-words") for e in conflicts] == ["8"] * 16
    assert run([*plain, "-o", "plain.svg"]) == 0  # its own picture may be replaced, nothing else
    (tmp_path / "notes.txt").write_text("mine")
    assert run([*plain, "-o", "notes.txt"]) == 2


@pytest.mark.parametrize("shape", ["64,48", "x", "1048576"])
def test_shapes_that_are_no_tiles_are_refused(shape, capsys):
    assert run(["layout", BLOCKED, "--shape", shape]) == 2
