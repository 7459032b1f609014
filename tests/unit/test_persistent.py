"""Programs that go from tile to tile (`--choose programs=persistent`)."""

from __future__ import annotations

import types
from dataclasses import replace
from pathlib import Path

import pytest
from cluster_sources import SOURCES
from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.diagnostics import TranslationError
from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.cycles.job import lower_and_walk
from gluonize.judge.cycles.launch.estimate import estimate
from gluonize.judge.device.bundles.jobs import compile_native
from gluonize.judge.emulator.observer import EmulatedLaunch
from gluonize.judge.emulator.request import Stopped
from gluonize.judge.emulator.sides import Side
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.verdict import validate_launch
from gluonize.judge.verdict.pair import SourceRun
from gluonize.judge.verdict.run import validate_job
from gluonize.judge.verdict.tile_loops import badly_shared
from gluonize.output.merging import one_text
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.request import TranslateRequest
from gluonize.rules.targets import TARGETS
from gluonize.rules.timing import TIMINGS
from gluonize.trace.model.parse import parse_module
from gluonize.translation import translate_kernel
from slow_rows import slow_but
from test_module_launch_checks import ROWS, Tensor, _imported
from translation_of import dedent, launch, tensor, translate, validated
from triton.backends.amd.compiler import HIPBackend
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

MATMUL = Path(__file__).resolve().parents[2] / "fixtures" / "matmul"
SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def doubled(x_ptr, y_ptr, n, B: tl.constexpr):
        x_ptr += tl.program_id(0) * B
        o = tl.program_id(axis=0) * B + tl.arange(0, B)
        tl.store(y_ptr + o, tl.load(x_ptr + tl.arange(0, B)) * n)
    """)
PERSISTENT = choices_of(programs="persistent")
LOOP = "for tile in range(gl.program_id(0), count, gl.num_programs(0)):"


def spec_of(programs: int, kernel: str = "doubled", warps: int = 1) -> LaunchSpec:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    values = {name: tensor(programs * 64) for name in ("x_ptr", "y_ptr")} | {"n": 3}
    return replace(launch(kernel, signature, {"B": 64}, warps=warps, values=values), grid=(programs,))


def chosen(choices: Choices, kernel: str = "doubled") -> dict:
    return {"chosen": ((kernel, choices),)}


def judged(folder: Path, text: str, spec: LaunchSpec, target: str = "gfx950") -> dict:
    (folder / "changed.py").write_text(text)
    return validate_launch(str(folder / "source.py"), str(folder / "changed.py"), spec, target)


@pytest.mark.compile
@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx1201"]))
@pytest.mark.parametrize("programs", [1, 7, 64])
def test_each_program_has_several_tiles(target: str, programs: int, tmp_path: Path):
    text = validated(tmp_path, SOURCE, spec_of(programs), target, **chosen(PERSISTENT))
    assert LOOP in text and "gl.program_id" not in text.partition("def doubled(")[0] and "tiles=None" in text


MISTAKES = {
    "a tile is left out": (LOOP, LOOP.replace("count,", "count - 1,")),
    "every tile is done by all": (LOOP, LOOP.replace("gl.program_id(0)", "0")),
    "two of three tiles are left out": (LOOP, LOOP.replace("num_programs(0))", "num_programs(0) * 3)")),
    "tiles are done twice": (LOOP, LOOP.replace(", gl.num_programs(0))", ", 1)")),
    "the number of the program is that of its tile": ("o = tile", "o = gl.program_id(0)"),
    "no loop": (LOOP, "tile = gl.program_id(0)\n    if count > 0:"),
    "one tile for each": (LOOP, "for tile in range(gl.program_id(0), gl.program_id(0) + 1):"),
}


@pytest.mark.compile
@pytest.mark.parametrize("what", slow_but(MISTAKES, 3))
def test_mistakes_are_found(what: str, tmp_path: Path):
    spec = spec_of(9)
    right = validated(tmp_path, SOURCE, spec, "gfx950", **chosen(PERSISTENT))
    old, new = MISTAKES[what]
    assert right.count(old) == 1
    answer = judged(tmp_path, right.replace(old, new), spec)
    assert answer["status"] in ("mismatch", "hazard"), answer


def of_tiles(high: str, step: str) -> str:
    return f"""module {{
  tt.func public @f(%tiles: i32) {{
    %one = arith.constant 1 : i32
    %p = tt.get_program_id x : i32
    %n = tt.get_num_programs x : i32
    %less = arith.subi %tiles, %one : i32
    %more = arith.addi %tiles, %one : i32
    scf.for %t = %p to {high} step {step}  : i32 {{
    }}
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    "high, step, found",
    [("%tiles", "%n", ""), ("%less", "%n", "0 times"), ("%more", "%n", "number 1"), ("%tiles", "%one", "2 times")],
)
def test_which_tiles_each_program_has_is_computed(high: str, step: str, found: str):
    finding = badly_shared(parse_module(of_tiles(high, step)), "tiles")
    assert (
        finding is None if not found else finding is not None and found in finding.message and finding.kind == "tiles"
    )


@pytest.mark.compile
@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx942", "gfx1250"]))
def test_a_product_is_computed_tile_by_tile(target: str, tmp_path: Path):
    """With neighbours on one XCD, where there are several: a tile is dealt as a program would be."""
    spec = read_launches(str(MATMUL / "launches.json"))[0]
    text = (MATMUL / "kernel.py").read_text()
    both = PERSISTENT.over(choices_of(program_order="per-xcd"))
    made = validated(tmp_path, text, spec, target, chosen=((spec.kernel, both),))
    assert "gl.barrier()" in made and ("remap_xcd(tile, tiles)" in made) == (TARGETS[target].xcds > 1)
    for wrong in ("remap_xcd(tile, gl.num_programs(0))", "remap_xcd(gl.program_id(0), tiles)"):
        if "remap_xcd(tile, tiles)" in made:
            assert (
                judged(tmp_path, made.replace("remap_xcd(tile, tiles)", wrong), spec, target)["status"] != "validated"
            )


@pytest.mark.compile
@pytest.mark.slow
def test_the_number_is_kept_where_a_loop_counts_tiles_too(tmp_path: Path):
    """A loop that does not begin at 0 has a counter, which is called `tile` in kernels without such a number."""
    text = (MATMUL / "kernel.py").read_text()
    text = text.replace("range(0, tl.cdiv(K, BLOCK_K))", "range(GROUP_M - 8, tl.cdiv(K, BLOCK_K))")
    text = text.replace("    offs_cm = pid_m", "    pid_m += (tl.program_id(0) - pid) * 2\n    offs_cm = pid_m")
    text = text.replace("for k in range(GROUP_M - 8", "first = stride_cm // stride_cm - 1\n    for k in range(first")
    spec = read_launches(str(MATMUL / "launches.json"))[0]
    assert "    tile = 0\n" in translate(tmp_path, text, spec, target="gfx942").text
    made = validated(tmp_path, text, spec, "gfx942", **chosen(PERSISTENT, spec.kernel))
    assert "tile_2 = 0\n" in made and "pid = tile\n" in made and "tile = 0" not in made


@pytest.mark.compile
def test_both_axes_of_a_product_may_be_asked_for(tmp_path: Path):
    """Programs go along the first."""
    source = SOURCES["matmul"]
    spec = source.launch(1)
    assert "gl.program_id(1)" in validated(tmp_path, source.file, spec, "gfx950", chosen=((spec.kernel, PERSISTENT),))


REFUSED = {
    "return in a branch of a branch": (
        SOURCE.replace("    o =", "    if n > 5:\n        if n < 9:\n            return\n    o ="),
        "tiles left to do",
    ),
    "return before another branch": (
        SOURCE.replace("    o =", "    if n > 5:\n        return\n    else:\n        n += 1\n    o ="),
        "tiles left to do",
    ),
    "another axis": (SOURCE.replace("axis=0", "axis=1").replace("program_id(0)", "program_id(1)"), "first axis"),
    "number of programs": (SOURCE.replace("* n)", "* tl.num_programs(0))"), "any number of programs"),
    "from tile to tile": (
        SOURCE.replace("    tl.store(", "    p = tl.program_id(0)\n    for i in range(p, n, 4):\n        tl.store("),
        "already",
    ),
    "a loop that may wait": (
        SOURCE.replace("    o =", "    while tl.atomic_add(y_ptr, 0.0) > 1e9:\n        n += 1\n    o ="),
        "may wait for another program",
    ),
    "a helper that asks": (
        SOURCE.replace("@triton", "@triton.jit\ndef number():\n    return tl.program_id(0)\n\n\n@triton", 1).replace(
            "tl.program_id(axis=0)", "number()"
        ),
        "asks for the number",
    ),
}


EARLY = {
    "a block": "    if tl.program_id(0) % 3 == n - 2:\n        # Nothing to do.\n        return\n",
    "a line": "    if tl.program_id(0) % 3 == n - 2: return\n",
    "behind a store": "    if tl.program_id(0) == n:\n        tl.store(y_ptr + 64 * n, 5.0)\n        return\n",
    "an integer": "    if tl.program_id(0) & 2: return\n",
    "two": "    if tl.program_id(0) == 1: return\n    x_ptr += 0\n    if tl.program_id(0) == 4: return\n",
}


@pytest.mark.compile
@pytest.mark.parametrize("what", EARLY)
def test_what_is_behind_an_early_return_is_another_branch(what: str, tmp_path: Path):
    """Else the function of one tile is called, not inlined."""
    text = SOURCE.replace("    o =", EARLY[what] + "    o =")
    made = validated(tmp_path, text, spec_of(7), "gfx950", **chosen(PERSISTENT))
    tile = made[made.index("def doubled_tile") : made.index("def doubled(")]
    assert "return" not in tile and tile.count("else:") == (what in ("behind a store", "an integer"))
    (tmp_path / "out.py").write_text(made)
    lowered = lower_file(str(tmp_path / "out.py"), spec_of(7), "gfx950", keep_stages=True)
    assert "tt.call" not in lowered.stages["ttgir"]


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused(what: str, tmp_path: Path):
    text, why = REFUSED[what]
    (tmp_path / "source.py").write_text(text)
    spec = spec_of(4)
    request = TranslateRequest(str(tmp_path / "source.py"), "gfx950", launches=(spec,), **chosen(PERSISTENT))
    found = translate_kernel(request).outcomes[0].diagnostics
    assert [d.code for d in found] == ["persistent"] and why in found[0].why and found[0].help and found[0].line


@pytest.mark.parametrize("options", [{"fallback": "general"}, {"strategy": "warp-specialized"}])
def test_what_has_one_tile_for_a_program_is_refused(options: dict, tmp_path: Path):
    (tmp_path / "source.py").write_text(SOURCE)
    request = TranslateRequest(
        str(tmp_path / "source.py"), "gfx1250", launches=(spec_of(4),), **chosen(PERSISTENT), **options
    )
    result = translate_kernel(request)
    found = [*result.diagnostics, *result.outcomes[0].diagnostics]
    assert "persistent" in [d.code for d in found] and result.text is None


@pytest.mark.compile
def test_programs_along_other_axes_stay_apart(tmp_path: Path):
    text = SOURCE.replace("axis=0) * B", "axis=0) * B + tl.program_id(1) * n").replace(
        "x_ptr + tl", "x_ptr + tl.program_id(1) * n + tl"
    )
    spec = replace(spec_of(5), grid=(3, 2))
    made = validated(tmp_path, text, spec, "gfx950", **chosen(PERSISTENT))
    assert made.count("gl.program_id(1)") == 2


TUNED = SOURCE.replace(
    "@triton.jit",
    "@triton.autotune([triton.Config({'B': 64}), triton.Config({'B': 128}, num_warps=2)], key=['n'])\n@triton.jit",
)


@pytest.mark.compile
def test_every_configuration_goes_from_tile_to_tile(tmp_path: Path):
    wide = replace(spec_of(4, warps=2), id="wide", constexprs={"B": 128})
    values = {name: tensor(512) for name in ("x_ptr", "y_ptr")} | {"n": 3}
    wide, narrow = replace(wide, values=values), replace(spec_of(8), values=values)
    made = translate(tmp_path, TUNED, narrow, wide, target="gfx950", **chosen(PERSISTENT))
    assert "doubled.fn.run = _run_persistent_doubled(doubled.fn.run)" in made.text
    assert made.text.count("def doubled_tile(") == 1
    for spec in (narrow, wide):
        assert judged(tmp_path, made.text, spec)["status"] == "validated"


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("texts", [1, 2])
def test_configurations_are_given_the_tile(texts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of one text, and where each has its own: then the function of one tile picks it. They return at their end alone too."""
    monkeypatch.setattr(one_text, "_WORTH", one_text._WORTH if texts == 1 else 0)
    text = (MATMUL / "kernel.py").read_text().replace("    num_pid_m", "    if pid == 5: return\n    num_pid_m", 1)
    wide = read_launches(str(MATMUL / "launches.json"))[0]
    sizes = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16}
    small = replace(wide, id="small", constexprs=wide.constexprs | sizes, values=wide.values | sizes, grid=(17 * 13,))
    small = replace(small, options={"num_warps": 1, "num_stages": 1})
    made = translate(tmp_path, text, wide, small, target="gfx950", **chosen(PERSISTENT, wide.kernel))
    assert made.text.count("\n    tile, tiles, a_ptr, b_ptr, c_ptr,\n") == 2 * texts - 1
    for spec in (wide, small):
        assert judged(tmp_path, made.text, spec)["status"] == "validated"
        lowered = lower_file(str(tmp_path / "changed.py"), spec, "gfx950", keep_stages=True)
        assert "tt.call" not in lowered.stages["ttgir"]


@pytest.mark.compile
def test_machine_code_is_run_with_fewer_programs_too(tmp_path: Path):
    """The source has its own grid, the translation three tiles for a program where all of the grid is run."""
    (tmp_path / "out.py").write_text(validated(tmp_path, SOURCE, spec_of(9), "gfx950", **chosen(PERSISTENT)))
    runs: list[SourceRun] = []
    files = [str(tmp_path / name) for name in ("source.py", "out.py")]
    job = {"source": files[0], "output": files[1], "launch": spec_of(9), "target": "gfx950", "variants": False}
    validate_job(job, runs.append)
    (run,) = runs
    assert run.programs == tuple(range(9)) and run.translated == (0, 1, 2)
    requests: list = []
    session = types.SimpleNamespace(run=lambda request: requests.append(request) or Stopped("fault", "stopped"))
    sides = [Side.of(compile_native(file, spec_of(9), "gfx950", (), False, False), "gfx950") for file in files]
    EmulatedLaunch(session, *sides, 1.0).observe(run)
    assert [(request.grid[0], request.programs) for request in requests] == [(9, run.programs), (3, (0, 1, 2))]
    assert [(9).to_bytes(4, "little") in request.kernarg.data for request in requests] == [False, True]


class Driver(types.SimpleNamespace):
    def get_current_device(self):
        return 0


def launched(text: str, grid, *args, **kwargs) -> dict:
    """What the jit function of a file is run with on a GPU of 4 compute units, where host code launches `grid`."""
    seen: dict = {}
    driver = Driver(utils=types.SimpleNamespace(get_device_properties=lambda _: {"multiprocessor_count": 4}))
    triton = types.SimpleNamespace(runtime=types.SimpleNamespace(driver=types.SimpleNamespace(active=driver)))
    params = [types.SimpleNamespace(name="B", has_default=True, default=32)]
    kernel = types.SimpleNamespace(
        params=params, arg_names=["x_ptr", "n", "B"], run=lambda *a, **k: seen.update(k, args=a)
    )
    scope = {"triton": triton, "doubled": kernel}
    around = text[text.index("def _run_persistent_doubled") :]
    exec(around[: around.index("doubled.run)") + len("doubled.run)")], scope)
    kernel.run(*args, grid=grid, warmup=False, **kwargs)
    return seen


def test_host_code_launches_what_there_is_room_for(tmp_path: Path):
    made = translate(tmp_path, SOURCE, spec_of(4), target="gfx950", **chosen(PERSISTENT))
    seen = launched(made.text, (9,), "x", 5, num_warps=1)
    assert seen == {"grid": (4,), "tiles": 9, "args": ("x", 5), "num_warps": 1, "warmup": False}
    assert launched(made.text, lambda meta: (meta["n"] // meta["B"],), "x", 64)["grid"] == (2,)
    assert launched(made.text, (9, 2), "x", 5)["grid"] == (2, 2)
    assert launched(made.text, (9, 8, 1), "x", 5)["grid"] == (1, 8, 1)
    assert launched(made.text, (0,), "x", 5)["grid"] == (0,)
    twice = translate(tmp_path, SOURCE, spec_of(4), target="gfx950", **chosen(choices_of(programs="persistent-2")))
    assert launched(twice.text, (9,), "x", 5)["grid"] == (8,)


def test_launches_are_checked_as_host_code_makes_them(tmp_path: Path):
    """A check that asks for the grid stands outside of what changes it, which would find no GPU here."""
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "apart": "i32", "stride": "i32"}
    source = ROWS.format(decorators="")
    made = translate(tmp_path, source, launch("k", signature, {"BLOCK": 64}), **chosen(PERSISTENT, "k"))
    assert "grid[0]" in made.text
    path = tmp_path / "rows.py"
    path.write_text(made.text)
    with pytest.raises(ValueError, match=r"k: .*grid\[0\].*stride=32768"):
        _imported(path).k[(2**12,)](x_ptr=Tensor(), y_ptr=Tensor(), apart=1, stride=2**15, BLOCK=64)


class Argument:
    """A tensor, as Triton sees one."""

    dtype = "torch.float32"

    def data_ptr(self) -> int:
        return 4096


class Recording:
    """A driver of a GPU of 4 compute units that is not there, for Triton's own way from host code to a launch."""

    def __init__(self):
        self.grids: list = []
        properties = {"multiprocessor_count": 4, "max_shared_mem": 1 << 16, "warpSize": 64}
        loaded = (1, 2, 64, 0, 1024)
        self.utils = types.SimpleNamespace(
            get_device_properties=lambda device: properties, load_binary=lambda *given: loaded
        )
        self.get_current_device = self.get_current_stream = lambda *given: 0
        self.get_current_target = lambda: GPUTarget("hip", "gfx942", 64)

    def launcher_cls(self, source, metadata):
        return lambda x, y, z, stream, function, *given: self.grids.append(((x, y, z), given[-1]))


@pytest.mark.compile
def test_triton_launches_what_there_is_room_for(tmp_path: Path, monkeypatch):
    """Also where the number of tiles is a compile-time 1 for Triton, or divisible by 16."""
    made = translate(tmp_path, SOURCE, spec_of(4), target="gfx942", **chosen(PERSISTENT))
    (tmp_path / "staying.py").write_text(made.text)
    recording = Recording()
    monkeypatch.setattr(driver, "_active", recording)
    monkeypatch.setattr(HIPBackend, "_torch_available", False)  # whatever another test had it find
    kernel = _imported(tmp_path / "staying.py").doubled
    for tiles in (6, 1, 32):
        kernel[lambda meta, tiles=tiles: (tiles * meta["B"] // 64,)](Argument(), Argument(), 3, B=64, num_warps=1)
    assert recording.grids == [((4, 1, 1), 6), ((1, 1, 1), 1), ((4, 1, 1), 32)]


@pytest.mark.compile
def test_cycles_know_rounds_of_tiles(tmp_path: Path):
    """Lines are those of the function of one tile; a loop over tiles alone goes round once in a round."""
    made = translate(tmp_path, SOURCE, spec_of(600), target="gfx950", **chosen(PERSISTENT))
    (tmp_path / "out.py").write_text(made.text)
    found = lower_and_walk(str(tmp_path / "out.py"), spec_of(600), "gfx950").cycles
    assert found.staying == 1 and found.estimate.rounds == 3
    last = made.text[: made.text.index("def doubled(")].count("\n")
    lines = {int(loss.place.rpartition(":")[2]) for loop in found.loops for loss in loop.losses if loss.place}
    assert lines and min(lines) < last


def test_staying_programs_leave_no_room_for_others():
    text = ".L:\n\tv_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n\ts_cbranch_scc1 .L\n\ts_endpgm\n"
    spec, row, timing = LaunchSpec("k", "k", grid=(768,)), TARGETS["gfx950"], TIMINGS["gfx950"]
    for most, workgroups, rounds in ((0, 8, 1), (1, 1, 3), (2, 2, 2), (9, 8, 1)):
        found = analyze(text, "gfx950", 4, most=most)
        assert found.hot.workgroups == workgroups
        assert estimate(found, {".L": 4}, spec, row, timing).rounds == rounds


@pytest.mark.compile
def test_the_function_of_one_tile_has_a_name_of_its_own(tmp_path: Path):
    text = SOURCE + "\n\ndef doubled_tile(x):\n    return x\n"
    made = validated(tmp_path, text, spec_of(7), "gfx950", **chosen(PERSISTENT))
    assert "def doubled_tile_2(tile, tiles," in made and "def doubled_tile(x):" in made
    (tmp_path / "out.py").write_text(made)
    assert lower_and_walk(str(tmp_path / "out.py"), spec_of(7), "gfx950").cycles.staying == 1


def test_the_choice_is_part_of_a_file_of_kernels_alone(tmp_path: Path):
    made = translate(tmp_path, SOURCE, spec_of(4), target="gfx950", standalone=True, **chosen(PERSISTENT))
    assert "doubled.run = _run_persistent_doubled(doubled.run)" in made.text


def test_a_kernel_inside_of_something_else_is_refused(tmp_path: Path):
    inside = SOURCE.replace("@triton.jit", "def make():\n    @triton.jit").replace("def doubled", "    def doubled")
    inside = (
        inside.replace("\n    x_ptr", "\n        x_ptr")
        .replace("\n    o =", "\n        o =")
        .replace("\n    tl.store", "\n        tl.store")
    )
    (tmp_path / "source.py").write_text(inside + "    return doubled\n")
    spec = spec_of(4, "make.<locals>.doubled")
    request = TranslateRequest(
        str(tmp_path / "source.py"), "gfx950", launches=(spec,), **chosen(PERSISTENT, spec.kernel)
    )
    try:
        result = translate_kernel(request)
    except TranslationError as error:
        assert error.diagnostics[0].code == "persistent"
    else:
        assert "persistent" in [d.code for d in (*result.diagnostics, *result.outcomes[0].diagnostics)]
