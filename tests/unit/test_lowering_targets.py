"""The architecture tables against published figures that they do not contain."""

import dataclasses
import re
from pathlib import Path

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.rules.targets import DEFAULT_TARGETS, TARGETS, MatrixRow, parse_targets, target

# Occupancy ladders, VGPRs -> waves per SIMD, as the compiler reports them (GEAK hw_constants.json).
LADDERS = {
    "gfx942": {64: 8, 65: 7, 72: 7, 80: 6, 96: 5, 128: 4, 168: 3, 256: 2, 512: 1},
    "gfx950": {64: 8, 72: 7, 80: 6, 96: 5, 128: 4, 168: 3, 256: 2, 512: 1},
    "gfx1250": {64: 16, 80: 12, 96: 10, 112: 9, 128: 8, 144: 7, 160: 6, 192: 5, 256: 4, 1024: 1},
    "gfx1100": {96: 16, 120: 12, 144: 10, 168: 9, 192: 8, 216: 7, 240: 6, 256: 5},
    "gfx1201": {96: 16, 120: 12, 144: 10, 168: 9, 192: 8, 216: 7, 240: 6, 256: 5},
}
# AMD's published dense peaks in 10^12 operations per second.
PEAKS = [
    ("gfx942", "fp16", 1307.4),
    ("gfx942", "fp8e4b8", 2614.9),
    ("gfx942", "fp64", 163.4),
    ("gfx942", "fp32", 163.4),
    ("gfx950", "fp16", 2500),
    ("gfx950", "int8", 5000),
    ("gfx950", "fp32", 157.3),
    ("gfx950", "fp64", 78.6),
    ("gfx1100", "fp16", 123),
    ("gfx1201", "fp16", 191),
]


@pytest.mark.parametrize("name", LADDERS)
def test_occupancy_ladder(name):
    assert {v: target(name).waves_per_simd(v) for v in LADDERS[name]} == LADDERS[name]


@pytest.mark.parametrize("name, dtype, peak", PEAKS, ids=lambda x: str(x))
def test_cycles_agree_with_the_published_peak(name, dtype, peak):
    row = target(name)
    timed = [m for m in row.matrix_rows(dtype, precision="ieee") if m.cycles]
    # Shapes that an earlier architecture had may take as long as there, with half of the work.
    operations = max(2 * m.shape[0] * m.shape[1] * m.shape[2] / m.cycles for m in timed)
    per_unit = 2 if row.family.startswith("rdna") else 4  # SIMDs per CU
    assert operations * per_unit * row.compute_units * row.clock_ghz / 1000 == pytest.approx(peak, rel=0.02)


def test_lds_limits_occupancy():
    row = target("gfx950")
    assert row.occupancy(vgprs=64, lds_bytes=0, num_warps=4) == 8
    assert row.occupancy(vgprs=64, lds_bytes=68016, num_warps=4) == 2  # two workgroups of four waves on four SIMDs
    assert row.occupancy(vgprs=64, lds_bytes=68016, num_warps=8) == 4
    assert row.occupancy(vgprs=64, lds_bytes=160 * 1024 + 1, num_warps=4) == 0


def test_lds_that_leaves_as_many_workgroups_on_a_compute_unit():
    row = target("gfx950")  # 160 KiB, 32 waves
    assert row.roomiest_lds(0, num_warps=4) == row.roomiest_lds(8192, num_warps=4) == 160 * 1024 // 8
    assert row.roomiest_lds(60 * 1024, num_warps=4) == 80 * 1024
    assert row.roomiest_lds(90 * 1024, num_warps=4) == row.roomiest_lds(0, num_warps=32) == 160 * 1024
    assert row.roomiest_lds(200 * 1024, num_warps=4) == 200 * 1024  # Triton's own does not fit
    assert target("gfx1100").roomiest_lds(40 * 1024, num_warps=4) == 128 * 1024 // 3
    assert target("gfx1100").roomiest_lds(0, num_warps=64) == 64 * 1024  # 128 KiB are of two workgroups


def test_a_workgroup_that_exceeds_the_register_file_does_not_fit():
    assert target("gfx950").occupancy(vgprs=512, lds_bytes=0, num_warps=8) == 0
    assert target("gfx950").occupancy(vgprs=512, lds_bytes=0, num_warps=4) == 1


def test_matrix_rows_by_dtype_and_precision():
    assert [m.shape for m in target("gfx942").matrix_rows("fp32", precision="tf32")] == [(32, 32, 4), (16, 16, 8)]
    assert [m.shape for m in target("gfx950").matrix_rows("e2m1", scaled=True)] == [(32, 32, 64), (16, 16, 128)]
    assert target("gfx1100").matrix_rows("fp8e4nv") == ()


def test_unknown_target_is_refused_with_the_list():
    with pytest.raises(TranslationError) as caught:
        target("gfx90a")
    (found,) = caught.value.diagnostics
    assert found.code == "unknown-target"
    assert all(name in found.why for name in TARGETS)


def test_target_lists():
    assert [row.name for row in parse_targets("all")] == list(DEFAULT_TARGETS)
    assert [row.name for row in parse_targets("gfx950, gfx942,gfx950")] == ["gfx950", "gfx942"]
    for wrong in ("", ",", "gfx950,mi300"):
        with pytest.raises(TranslationError):
            parse_targets(wrong)


@pytest.mark.parametrize(
    "change",
    [
        dict(warp_size=32),
        dict(lds_bytes=48 * 1024),
        dict(lds_banks=48),
        dict(vgpr_limit=1024),
        dict(max_waves=16, vgpr_granule=64),
        dict(supports_tdm=True),
        dict(direct_to_lds_bits=()),
        dict(sources={}),
        dict(family="cdna9"),
        dict(matrix=(MatrixRow("mfma", (32, 32, 16), ("fp16",), ("fp32",), 3, "test"),)),
        dict(matrix=(MatrixRow("wmma", (16, 16, 32), ("fp16",), ("fp32",), 8, "test"),)),
        dict(matrix=(MatrixRow("mfma", (2, 2, 16), ("fp16",), ("fp32",), 4, "test"),)),
        dict(matrix=(MatrixRow("mfma", (32, 32, 16), ("fp16",), ("fp32",), 8, "test", cycles=33),)),
    ],
    ids=lambda change: ",".join(change),
)
def test_a_wrong_row_fails_at_import(change):
    with pytest.raises(AssertionError):
        dataclasses.replace(target("gfx950"), **change)


@pytest.mark.parametrize(
    "wrong",
    [dict(kind="dot"), dict(shape=(32, 32, 24)), dict(dtypes=("half",)), dict(source=""), dict(precision="tf32")],
    ids=lambda wrong: ",".join(wrong),
)
def test_a_wrong_matrix_row_fails_at_import(wrong):
    with pytest.raises(AssertionError):
        dataclasses.replace(target("gfx950").matrix[0], **wrong)


@pytest.mark.parametrize("name", DEFAULT_TARGETS)
def test_capabilities_are_those_of_gluon_and_triton(name):
    from triton.backends.amd.compiler import is_async_copy_enabled
    from triton.experimental.gluon.language import amd

    row = target(name)
    module = getattr(amd, row.gluon_module)
    copies = getattr(module, "async_copy", None)
    assert row.has_async_copies == is_async_copy_enabled(name) == (copies is not None)
    assert row.copies_take_buffers == hasattr(copies, "buffer_load_to_shared")
    assert row.relaxed_lds_reads == hasattr(copies, "load_shared_relaxed")
    assert row.copies_to_global == hasattr(copies, "shared_to_global")
    assert row.supports_tdm == hasattr(module, "tdm")
    assert (row.lds_partitions > 1) == hasattr(module, "PartitionedSharedLayout")
    assert row.has_scaled_dots == any(hasattr(module, f"{kind}_scaled") for kind in ("mfma", "wmma"))


@pytest.mark.parametrize("name", [name for name in DEFAULT_TARGETS if target(name).matrix_kind == "mfma"])
@pytest.mark.filterwarnings("ignore:kpack is deprecated")
def test_operands_are_packed_where_triton_lets_them(name):
    from triton.backends.amd.compiler import HIPOptions

    assert target(name).packs_operands == (HIPOptions(arch=name, kpack=2).kpack == 2)


def test_nothing_but_the_tables_asks_for_a_family():
    """What differs between architectures is a field of their rows, which says why."""
    root = Path(__file__).resolve().parents[2] / "translator"
    asked = [f.name for f in root.rglob("*.py") if re.search(r"\.family\b", f.read_text())]
    assert asked == ["targets.py"]  # prints it
