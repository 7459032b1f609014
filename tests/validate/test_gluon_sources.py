"""Gluon kernels as sources: run as what they are written for, compared with a translation for another GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import fixture_set
import pytest
from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec, read_launches

SOURCE = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma


@gluon.jit
def doubled(x_desc, y_desc, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [1, 32], [4, 1], [1, 0])
    x = gl.allocate_shared_memory(gl.float16, [2, BLOCK, BLOCK], x_desc.layout)
    y = gl.allocate_shared_memory(gl.float16, [BLOCK, BLOCK], y_desc.layout)
    bars = mbarrier.allocate_mbarrier(batch=2)
    for i in gl.static_range(2):
        mbarrier.init(bars.index(i), count=1)
    row = gl.program_id(0) * BLOCK
    for k in range(0, gl.cdiv(n, BLOCK)):
        slot = k % 2
        mbarrier.expect(bars.index(slot), x_desc.nbytes_per_cta)
        tma.async_load(x_desc, [row, k * BLOCK], bars.index(slot), x.index(slot))
        mbarrier.wait(bars.index(slot), (k // 2) & 1)
        value = x.index(slot).load(layout) * 2
        tma.store_wait(0)
        y.store(value)
        fence_async_shared()
        tma.async_store(y_desc, [row, k * BLOCK], y)
    tma.store_wait(0)
"""

AMD_SOURCE = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd.cdna4 import async_copy


@gluon.jit
def doubled(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    x = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    async_copy.global_load_to_shared(x, x_ptr + offsets, mask=offsets < n)
    async_copy.commit_group()
    async_copy.wait_group(0)
    gl.store(y_ptr + offsets, x.load(layout) * 2, mask=offsets < n)
"""

MOVER_SOURCE = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna5


@gluon.jit
def doubled(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    tiles = gl.allocate_shared_memory(gl.float32, [2, BLOCK], shared)
    bar = gl.allocate_shared_memory(gl.int64, [1], cdna5.mbarrier.MBarrierLayout())
    cdna5.mbarrier.init(bar, 4)
    gl.barrier()
    first = gl.program_id(0) * BLOCK
    x = cdna5.tdm.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK], shared)
    cdna5.tdm.async_load(x, [first], tiles.index(0))
    cdna5.tdm.async_load(x, [first], tiles.index(1), mbarrier=bar)
    cdna5.mbarrier.wait(bar, 0)
    offsets = first + gl.arange(0, BLOCK, layout=layout)
    gl.store(y_ptr + offsets, tiles.index(0).load(layout) + tiles.index(1).load(layout), mask=offsets < n)
"""

OUTPUT = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def doubled(x_desc, y_desc, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [4, 16], [4, 1], [1, 0])
    rows = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, layout))[:, None]
    for k in range(0, gl.cdiv(n, BLOCK)):
        columns = k * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(0, layout))[None, :]
        inside = (rows < x_desc[1][0]) & (columns < x_desc[1][1])
        value = gl.load(x_desc[0] + rows * x_desc[2][0] + columns, mask=inside, other=0.0)
        gl.store(y_desc[0] + rows * y_desc[2][0] + columns, value * 2, mask=inside)
"""

AMD_OUTPUT = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def doubled(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_ptr + offsets, mask=offsets < n)
    gl.store(y_ptr + offsets, x * 2, mask=offsets < n)
"""
SPECIALIZED = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma


@gluon.jit
def fill(x_desc, slots, full, empty, steps):
    for k in range(steps):
        mbarrier.wait(empty.index(k % 2), ((k // 2) & 1) ^ 1)
        mbarrier.expect(full.index(k % 2), x_desc.nbytes_per_cta)
        tma.async_load(x_desc, [gl.program_id(0) * 64, k * 64], full.index(k % 2), slots.index(k % 2))


@gluon.jit
def double(y_desc, slots, full, empty, steps):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [1, 32], [4, 1], [1, 0])
    y = gl.allocate_shared_memory(gl.float16, [64, 64], y_desc.layout)
    for k in range(steps):
        mbarrier.wait(full.index(k % 2), (k // 2) & 1)
        value = slots.index(k % 2).load(layout) * 2
        mbarrier.arrive(empty.index(k % 2), count=1)
        tma.store_wait(0)
        y.store(value)
        fence_async_shared()
        tma.async_store(y_desc, [gl.program_id(0) * 64, k * 64], y)
    tma.store_wait(0)


@gluon.jit
def doubled(x_desc, y_desc, n, BLOCK: gl.constexpr):
    slots = gl.allocate_shared_memory(gl.float16, [2, 64, 64], x_desc.layout)
    full, empty = mbarrier.allocate_mbarrier(batch=2), mbarrier.allocate_mbarrier(batch=2)
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    steps = gl.cdiv(n, 64)
    gl.warp_specialize([(double, (y_desc, slots, full, empty, steps)), (fill, (x_desc, slots, full, empty, steps))], [1], [24])
"""
RELEASE = "        mbarrier.arrive(empty.index(k % 2), count=1)\n"
WAIT = "        mbarrier.wait(bars.index(slot), (k // 2) & 1)\n"


def descriptor_launch() -> LaunchSpec:
    """Two tiles by four, the last of each cut."""
    layout = "NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2, transposed=False, fp4_padded=False, cga_layout=[])"
    kind = f"tensordesc<fp16[64, 64],{layout}>"
    base = {"dtype": "float16", "shape": [100, 208], "stride": [208, 1], "storage": 20800, "offset": 0}
    value = {"descriptor": {"base": base, "shape": [100, 208], "strides": [208, 1]}}
    signature = {"x_desc": kind, "y_desc": kind, "n": "i32", "BLOCK": "constexpr"}
    values = {"x_desc": value, "y_desc": value, "n": 208}
    return LaunchSpec(
        "doubled", "doubled", "", signature, {"BLOCK": 64}, {}, {"num_warps": 4}, (2,), {}, values, "cuda:90"
    )


def pointer_launch(target: str) -> LaunchSpec:
    tensor = {"tensor": {"dtype": "float32", "shape": [1000], "stride": [1], "storage": 1000, "offset": 0}}
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    values = {"x_ptr": tensor, "y_ptr": tensor, "n": 1000}
    attrs = {"x_ptr": "DS", "y_ptr": "DS"}
    return LaunchSpec(
        "doubled", "doubled", "", signature, {"BLOCK": 256}, attrs, {"num_warps": 4}, (4,), {}, values, target
    )


def validated(folder: Path, source: str, output: str, launch: LaunchSpec, target: str) -> dict:
    (folder / "source.py").write_text(source)
    (folder / "output.py").write_text(output)
    return validate_launch(str(folder / "source.py"), str(folder / "output.py"), launch, target)


@pytest.mark.parametrize("target", ["gfx950", "gfx942"])
def test_a_kernel_for_hopper_and_its_translation(tmp_path: Path, target: str):
    answer = validated(tmp_path, SOURCE, OUTPUT, descriptor_launch(), target)
    assert (answer["status"], answer["source_hazards"]) == ("validated", []), answer["reason"]
    assert answer["bitwise"] and "ragged sizes" in answer["variants"]


def test_a_wrong_translation_is_found(tmp_path: Path):
    wrong = OUTPUT.replace("value * 2", "value + 2")
    assert wrong != OUTPUT
    answer = validated(tmp_path, SOURCE, wrong, descriptor_launch(), "gfx950")
    assert answer["status"] == "mismatch" and "y_desc" in answer["reason"]


def test_a_hazard_of_the_source_is_its_own(tmp_path: Path):
    """It is told with its line, and what the source means is compared."""
    assert SOURCE.count(WAIT) == 1
    answer = validated(tmp_path, SOURCE.replace(WAIT, ""), OUTPUT, descriptor_launch(), "gfx950")
    assert answer["status"] == "validated", answer["reason"]
    found = {(hazard["kind"], hazard["line"]) for hazard in answer["source_hazards"]}
    read = SOURCE.replace(WAIT, "").splitlines().index("        value = x.index(slot).load(layout) * 2") + 1
    assert ("lds-in-flight", read) in found
    assert any(note.startswith("the source itself: ") and "[lds-in-flight]" in note for note in answer["notes"])


@pytest.mark.parametrize("own, target", [("gfx950", "gfx1250"), ("hip:gfx950", "gfx942"), ("", "gfx950")])
def test_a_kernel_for_another_amd_gpu(tmp_path: Path, own: str, target: str):
    output = AMD_OUTPUT.replace("[32]", "[64]") if target != "gfx1250" else AMD_OUTPUT
    answer = validated(tmp_path, AMD_SOURCE, output, pointer_launch(own), target)
    assert (answer["status"], answer["source_hazards"]) == ("validated", []), answer["reason"]
    unwaited = AMD_SOURCE.replace("    async_copy.wait_group(0)\n", "")
    answer = validated(tmp_path, unwaited, output, pointer_launch(own), target)
    assert answer["status"] == "validated" and {h["kind"] for h in answer["source_hazards"]} == {"lds-in-flight"}


def test_the_same_hazard_counts_in_a_translation(tmp_path: Path):
    unwaited = AMD_SOURCE.replace("    async_copy.wait_group(0)\n", "")
    answer = validated(tmp_path, AMD_SOURCE, unwaited, pointer_launch("gfx950"), "gfx950")
    assert answer["found"] == "hazard" and answer["hazards"][0]["kind"] == "lds-in-flight"


def test_a_translation_may_be_launched_with_other_warps(tmp_path: Path):
    from gluonize.judge.verdict.run import validate_job

    (tmp_path / "source.py").write_text(SOURCE)
    (tmp_path / "output.py").write_text(OUTPUT.replace("[4, 1]", "[8, 1]"))
    launch = descriptor_launch()
    job = {
        "source": str(tmp_path / "source.py"),
        "output": str(tmp_path / "output.py"),
        "target": "gfx950",
        "launch": launch,
    }
    assert validate_job(job)["status"] == "skipped"
    answer = validate_job(job | {"output_launch": replace(launch, options={"num_warps": 8})})
    assert answer["status"] == "validated", answer["reason"]


def test_a_specialized_kernel_and_its_translation(tmp_path: Path):
    answer = validated(tmp_path, SPECIALIZED, OUTPUT, descriptor_launch(), "gfx950")
    assert (answer["status"], answer["source_hazards"]) == ("validated", []), answer["reason"]


def test_a_hazard_that_other_turns_of_the_partitions_show(tmp_path: Path):
    """The slot that is released is not the one that was read: a latent deadlock, which the first order of partitions does not meet."""
    assert SPECIALIZED.count(RELEASE) == 1
    wrong = SPECIALIZED.replace(RELEASE, RELEASE.replace("k % 2", "(k + 1) % 2"))
    answer = validated(tmp_path, wrong, OUTPUT, descriptor_launch(), "gfx950")
    assert answer["status"] == "validated", answer["reason"]
    assert {hazard["kind"] for hazard in answer["source_hazards"]} == {"deadlock"}


def test_descriptors_say_that_tensors_are_smaller(tmp_path: Path):
    """A translation that takes the extents of the launch for granted is right for that launch alone."""
    fixed = OUTPUT.replace("columns < x_desc[1][1]", "columns < 208")
    assert fixed != OUTPUT
    answer = validated(tmp_path, SOURCE, fixed, descriptor_launch(), "gfx950")
    assert (answer["status"], answer["variant"]) == ("mismatch", "ragged descriptors") or answer["found"] == "hazard"
    answer = validated(tmp_path, SOURCE, OUTPUT, descriptor_launch(), "gfx950")
    assert {"ragged descriptors", "descriptors with 16 for 208", "descriptors with 5 for 100"} <= set(
        answer["variants"]
    )


def test_a_source_that_leaves_its_tensors_has_longer_ones(tmp_path: Path):
    """It reads lanes that it then does not store; told as its own, and compared all the same."""
    unmasked = AMD_SOURCE.replace("x_ptr + offsets, mask=offsets < n", "x_ptr + offsets")
    assert unmasked != AMD_SOURCE
    answer = validated(tmp_path, unmasked, AMD_OUTPUT.replace("[32]", "[64]"), pointer_launch("gfx950"), "gfx942")
    assert answer["status"] == "validated", answer["reason"]
    assert {hazard["kind"] for hazard in answer["source_hazards"]} == {"out-of-bounds"}
    answer = validated(tmp_path, AMD_SOURCE, unmasked, pointer_launch("gfx950"), "gfx950")
    assert answer["found"] == "hazard" and answer["hazards"][0]["kind"] == "out-of-bounds"


def test_copies_of_a_source_are_done_in_turn(tmp_path: Path):
    """A barrier on the last of several copies is how kernels for gfx1250 wait for all of them; a translation does not rest on that."""
    answer = validated(tmp_path, MOVER_SOURCE, AMD_OUTPUT, pointer_launch("gfx1250"), "gfx1250")
    assert (answer["status"], answer["source_hazards"]) == ("validated", []), answer["reason"]
    answer = validated(tmp_path, AMD_SOURCE, MOVER_SOURCE, pointer_launch("gfx950"), "gfx1250")
    assert answer["found"] == "hazard" and answer["hazards"][0]["kind"] == "lds-in-flight"


DIVIDES = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def doubled(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    offsets = gl.program_id(0) % gl.cdiv(n, BLOCK) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_ptr + offsets, mask=offsets < n)
    gl.store(y_ptr + offsets, x * 2, mask=offsets < n)
"""


def test_a_translation_may_divide_by_zero_where_its_source_does(tmp_path: Path):
    """With n = 0 the number of tiles is 0: a source that is Gluon goes on, and what it stores is compared."""
    source, output = DIVIDES.replace("LANES", "64"), DIVIDES.replace("LANES", "32")
    answer = validated(tmp_path, source, output, pointer_launch("gfx950"), "gfx1250")
    assert answer["status"] == "validated", answer["reason"]
    assert {hazard["kind"] for hazard in answer["source_hazards"]} == {"division-by-zero"}
    whole = source.replace("gl.program_id(0) % gl.cdiv(n, BLOCK)", "gl.program_id(0)")
    answer = validated(tmp_path, whole, output, pointer_launch("gfx950"), "gfx1250")
    assert answer["found"] == "hazard" and answer["hazards"][0]["kind"] == "division-by-zero"


SETS = [(name, target) for name in fixture_set.GLUON_SOURCES for target in fixture_set.TARGETS]
EVERY_DAY = (
    "hopper/attention",
    "blackwell/persistent_matmul",
    "blackwell/scaled_matmul",
)
LAUNCHES = [
    pytest.param(spec, target, id=f"{spec.id}-{target}", marks=() if usual else pytest.mark.slow)
    for name, target in SETS
    for spec in read_launches(str(fixture_set.ROOT / name / "launches.json"))
    for usual in [target == "gfx950" and spec.id in EVERY_DAY]
]


KEPT = [
    pytest.param(spec, id=spec.id, marks=() if spec.id in EVERY_DAY else pytest.mark.slow)
    for spec in read_launches(str(fixture_set.ROOT / "hopper" / "launches.json"))
]


@pytest.mark.parametrize("spec", KEPT)
def test_a_golden_with_the_structure_of_its_source_computes_the_same(spec: LaunchSpec):
    folder = fixture_set.ROOT / "hopper"
    answer = validate_launch(str(folder / "source.py"), str(folder / "golden" / "gfx1250_kept.py"), spec, "gfx1250")
    assert answer["status"] == "validated", answer["reason"]


MISTAKES = {
    "a copy that does not arrive": ("rb.index(slot), mbarrier=full.index(slot))", "rb.index(slot))"),
    "a phase that ends too early": ("full.index(i), count=2", "full.index(i), count=1"),
    "a slot that is free too early": ("mbarrier.wait(free.index(i % RING), i // RING & 1 ^ 1)", "pass"),
    "a slot that is never free": ("        mbarrier.arrive(free.index(i % RING), count=1)\n", ""),
    "a tile that is read too early": ("mbarrier.wait(full.index(i % RING), i // RING & 1)", "pass"),
}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("wrong", MISTAKES)
def test_mistakes_in_a_kept_structure_are_found(wrong: str, tmp_path: Path):
    folder = fixture_set.ROOT / "hopper"
    text = (folder / "golden" / "gfx1250_kept.py").read_text()
    begin, end = text.index("def fill("), text.index("@gluon.jit\ndef add_one(")
    own, kernel = text[begin:end], text[text.index("def specialized_matmul(") :]
    before, after = MISTAKES[wrong]
    assert before in own or before in kernel
    changed = text[:begin] + own.replace(before, after) + text[end : text.index(kernel)] + kernel.replace(before, after)
    (tmp_path / "out.py").write_text(changed)
    (spec,) = [s for s in read_launches(str(folder / "launches.json")) if s.id == "hopper/specialized_matmul-2"]
    answer = validate_launch(str(folder / "source.py"), str(tmp_path / "out.py"), spec, "gfx1250")
    assert answer["status"] == "mismatch", (wrong, answer)


@pytest.mark.parametrize("spec, target", LAUNCHES)
def test_a_golden_computes_what_its_source_does(spec: LaunchSpec, target: str):
    folder = fixture_set.ROOT / spec.id.partition("/")[0]
    answer = validate_launch(str(folder / "source.py"), str(folder / "golden" / f"{target}.py"), spec, target)
    assert answer["status"] == "validated", answer["reason"]
