"""Depths of rings that follow from `num_stages` and from what LDS holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fixture_set import ROOT
from gluonize.decide.layouts.formulas import Product
from gluonize.decide.layouts.size_range import RatioBound, RoomBound
from gluonize.diagnostics import TranslationError
from gluonize.general.launches.ring_depth import RingDepth, ring_depth, with_stages
from gluonize.judge.verdict import validate_launch
from gluonize.read.kernels.load import load_for_launch
from gluonize.read.spec.compile_arguments import compile_arguments
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.request import TranslateRequest
from gluonize.translation import tools_of, translate_kernel
from gluonize.write.state.emitted import FewestBuffers
from slow_rows import slow_but
from translation_of import compiled

FOLDER = ROOT / "matmul"
KERNEL = str(FOLDER / "kernel.py")
TILE = Product(1, (("M", 1), ("K", 1)))
LDS = {"gfx950": 163840, "gfx942": 65536}
(SPEC,) = [spec for spec in read_launches(str(FOLDER / "launches.json")) if spec.id == "matmul/fp16"]


def staged(stages: int, m: int = 128, n: int = 128, k: int = 64) -> LaunchSpec:
    tiles = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
    spec = with_stages(replace(SPEC, id=f"matmul/{m}x{n}x{k}x{stages}"), stages)
    return replace(spec, constexprs=spec.constexprs | tiles, values=spec.values | tiles)


def written(target: str, spec: LaunchSpec):
    tools = tools_of(TranslateRequest(KERNEL, target))
    traced = tools.trace(spec)
    return tools.write(traced, frozenset()), traced


def found(target: str, spec: LaunchSpec = SPEC, others=None) -> RingDepth | None:
    return ring_depth([written(target, spec)], others or (lambda spec: written(target, spec)))


@pytest.mark.parametrize("target, in_registers", slow_but([("gfx950", 0), ("gfx942", 1)]))
def test_a_ring_is_as_deep_as_stages_and_lds_say(target, in_registers):
    depth = found(target)
    assert depth == RingDepth("NUM_BUFFERS", LDS[target], in_registers)
    for spec in (staged(8), staged(4, 64, 64, 32), staged(3, 256, 128, 64)):
        emitted, launch = written(target, spec)
        tiles = 2 * spec.constexprs["BLOCK_K"] * (spec.constexprs["BLOCK_M"] + spec.constexprs["BLOCK_N"])
        assert depth.at(launch) == min(spec.options["num_stages"] - in_registers, LDS[target] // tiles)
        header = depth.taken_out(emitted, launch).kernel.laid_out.function.header
        assert "num_stages: gl.constexpr = 2" in header and "NUM_BUFFERS" not in header


def test_a_depth_that_is_another_one_stays_in_the_text():
    emitted, launch = written("gfx950", staged(3))
    other = RingDepth("NUM_BUFFERS", LDS["gfx950"], in_registers=1)
    assert other.taken_out(emitted, launch) is emitted


@pytest.mark.slow
def test_a_depth_that_follows_from_nothing_is_none():
    def random(spec):
        return written("gfx950", staged(9 - spec.options["num_stages"], 64, 64, 64))[0], written("gfx950", spec)[1]

    assert found("gfx950", others=random) is None
    assert found("gfx950", others=lambda spec: None) is None


@pytest.mark.slow
def test_a_depth_that_the_source_asks_for_is_a_number():
    """As with `tl.range(..., num_stages=2)`: whatever the launch says, there are two."""
    emitted, _ = written("gfx950", SPEC)
    depth = found("gfx950", others=lambda spec: (emitted, written("gfx950", spec)[1]))
    assert depth.asked == 2 and depth.ranges == ()


def test_the_definition_says_what_lds_holds():
    rings = (Product(1, (("M", 1), ("K", 1))), Product(1, (("N", 1), ("K", 1))))
    comment, line = RingDepth("NUM_BUFFERS", 65536, 1).definition(rings, str).splitlines()
    assert line == "NUM_BUFFERS: gl.constexpr = min(num_stages - 1, 65536 // (2 * K * (M + N)))"
    assert comment.startswith("# ") and "in registers" in comment
    assert RingDepth("NUM_BUFFERS", 65536, asked=3).definition(rings, str).splitlines()[1].count("min(3, ") == 1


@pytest.mark.parametrize(
    "depth, least, bound, implied",
    [
        (RingDepth("B", 4096), 2, RoomBound((TILE, TILE), 2, 4096), True),
        (RingDepth("B", 4096, in_registers=1), 2, RoomBound((TILE, TILE), 2, 4096), False),
        (RingDepth("B", 4096), 3, RoomBound((TILE, TILE), 3, 4096), False),
        (RingDepth("B", 4096, asked=3), 3, RoomBound((TILE, TILE), 3, 4096), True),
        (RingDepth("B", 4096), 2, RoomBound((TILE, TILE), 1, 4096), False),
        (RingDepth("B", 4096), 2, RoomBound((TILE,), 2, 4096), False),
        (RingDepth("C", 4096), 2, RoomBound((TILE, TILE), 2, 4096), False),
    ],
)
def test_a_depth_that_bounds_of_lds_imply_is_not_asserted_again(depth, least, bound, implied):
    fewest = FewestBuffers("B", least, "one tile is copied")
    assert depth.implies(fewest, (TILE, TILE), [bound]) == implied
    assert not depth.implies(fewest, (TILE, TILE), [RatioBound((("M", 1),), 2)])


def test_a_launch_hands_its_options_to_parameters_too(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
        "def deep(x_ptr, num_stages: tl.constexpr = 2):\n    tl.store(x_ptr, num_stages)\n"
    )
    spec = LaunchSpec("deep", "deep", str(path), {"x_ptr": "*i32"}, options={"num_stages": 5})
    fn = load_for_launch(spec).fn
    assert compile_arguments(spec, fn).constexprs == {(1,): 5}
    assert compile_arguments(replace(spec, options={}), fn).constexprs == {(1,): 2}
    assert compile_arguments(replace(spec, constexprs={"num_stages": 3}), fn).constexprs == {(1,): 3}


@pytest.mark.slow
@pytest.mark.compile
def test_launches_of_several_depths_are_one_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr("gluonize.general.general_kernels.EXTENSIONS", 0)
    specs = (staged(2), staged(3, 64, 64, 64))
    made = translate_kernel(TranslateRequest(KERNEL, "gfx950", launches=specs, general=True))
    assert made.text.count("def matmul_kernel(") == 1 and "_layouts(" not in made.text
    # Eight slots of 64 columns ahead, and the 63 of a last tile: 575.
    assert (
        "#   assumes 0 <= K <= 2**31 - 576\n" in made.text and made.text.count("<= K <=") == 3
    )  # the check says it, and what it refuses, too
    deepest = [o.spec for o in made.outcomes if o.spec.id.endswith("num_stages=8")]
    assert {spec.options["num_stages"] for spec in deepest} == {8} and all(
        spec.constexprs["BLOCK_M"] < 64 for spec in deepest
    )
    (tmp_path / "output.py").write_text(made.text)
    for spec in (staged(4, 64, 64, 32), staged(8, 128, 128, 32)):
        answer = validate_launch(KERNEL, str(tmp_path / "output.py"), spec, "gfx950")
        assert answer["status"] == "validated", answer
    with pytest.raises(TranslationError, match="num_stages 2 to 8"):
        compiled(tmp_path, made.text, staged(1), "gfx950")
