"""`gluonize capture` of Gluon kernels: their launches are those of the fixtures, and are translated as they stand."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from slow_rows import slow_but

import fixture_set
from gluonize.read.launches.capture.devices import device_of, known_devices, target_of_files
from gluonize.read.spec.launch import read_launches

HERE = Path(__file__).parent
HEAD = """
import numpy as np
import triton
from capture_tensors import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import {namespace}
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor, TensorDescriptorIm2Col


def made_for(generation):
    target = triton.runtime.driver.active.get_current_target()
    return target.backend == "cuda" and target.arch // 10 == generation


def described(name, shape, block):
    kind = {{"float16": gl.float16, "float32": gl.float32}}.get(name, gl.int8)
    layout = gl.NVMMASharedLayout.get_default_for([max(8, block[0]), block[1]], kind)  # of rows by their numbers too
    return TensorDescriptor.from_tensor(Tensor(name, *shape), block, layout)
"""
HOPPER = """
import source

assert made_for(9)
for ring in (2, 3):
    source.add_one[(1,)](Tensor("float32", 5000), Tensor("float32", 5000), 5000, BLOCK=128, RING=ring)
x, y = described("float32", (200, 168), [64, 32]), described("float32", (168, 200), [32, 64])
source.transpose[(4, 6)](x, y, num_warps=4)
for kernel in (source.matmul, source.specialized_matmul):
    for ring in (2, 3):
        a, b = described("float16", (304, 456), [64, 64]), described("float16", (456, 504), [64, 128])
        kernel[lambda meta: (5, 4)](a, b, described("float16", (304, 504), [64, 128]), ring, num_warps=4)
tiles = [described("float16", (192, 64), [64, 64]) for _ in range(4)]
source.attention[(3,)](*tiles, 192, 0.18, num_warps=4)
"""
BLACKWELL = """
import source

assert made_for(10)
a, b = described("float16", (304, 448), [128, 64]), described("float16", (448, 504), [64, 128])
source.persistent_matmul[(2,)](a, b, described("float16", (304, 504), [128, 64]), RING=3, num_warps=4)
rows = Tensor("int32", data=ROWS)
x, y = (described("float16", (256, 128), [1, 64]) for _ in range(2))
source.moved_rows[(1,)](x, y, rows)
a, b = (described("float8_e4m3fn", (128, 128), [128, 128]) for _ in range(2))
scales = [Tensor("uint8", 128, 4) for _ in range(2)]
source.scaled_matmul[(1,)](a, b, described("float32", (128, 128), [128, 128]), *scales)
"""


def ran(folder, *words):
    for name in ("capture_tensors.py",):
        (folder / name).write_text((HERE / name).read_text())
    command = [sys.executable, "-m", "gluonize.product.cli", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def captured(folder, fixture, program, namespace):
    """The folder with the fixture's kernels, a host program beside them, and what it launches."""
    (folder / "source.py").write_text((fixture_set.ROOT / fixture / "source.py").read_text())
    (folder / "host.py").write_text(HEAD.format(namespace=namespace) + program)
    done = ran(folder, "capture", "--", "python", "host.py")
    assert done.returncode == 0, done.stderr
    return read_launches(str(folder / "launches.json")), done.stderr


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hopper")
    return folder, *captured(folder, "hopper", HOPPER, "hopper")


def fixture_launches(name):
    return read_launches(str(fixture_set.ROOT / name / "launches.json"))


@pytest.fixture(scope="module")
def blackwell(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blackwell")
    rows = next(x for x in fixture_launches("blackwell") if x.kernel == "moved_rows").values["rows"]["tensor"]["data"]
    return folder, *captured(folder, "blackwell", BLACKWELL.replace("ROWS", str(rows)), "blackwell")


def what_matters(spec):
    """Of a launch, what its translation depends on; ranges of values are those of zeros here."""
    text = json.dumps([spec.kernel, spec.target, spec.signature, spec.constexprs, spec.grid, spec.values])
    data = json.loads(text)
    for value in data[-1].values():
        inside = value.get("descriptor", value) if isinstance(value, dict) else {}
        for tensor in (inside.get("base", {}).get("tensor", {}), inside.get("tensor", {})):
            tensor.pop("range", None)
            if max(tensor.get("data", [0])) == 0:
                tensor.pop("data", None)
    return data


@pytest.mark.parametrize("name", ["hopper", "blackwell"])
def test_what_is_recorded_is_what_the_fixture_says(name, request):
    found = [what_matters(spec) for spec in request.getfixturevalue(name)[1]]
    wanted = [what_matters(spec) for spec in fixture_launches(name) if not spec.id.endswith("bf16")]
    assert found == wanted


def test_host_code_is_told_of_what_its_kernels_are_written_for(hopper, blackwell):
    assert "told of a GPU sm_90" in hopper[2] and "told of a GPU sm_100" in blackwell[2]


@pytest.mark.parametrize("name, kernel", slow_but([("blackwell", "moved_rows"), ("hopper", "specialized_matmul")]))
def test_what_was_recorded_is_translated_and_validated(name, kernel, request):
    folder = request.getfixturevalue(name)[0]
    words = ["-k", kernel, "-t", "gfx950", "-l", "launches.json", "-o", f"{kernel}.out.py", "--no-parity"]
    done = ran(folder, "translate", "source.py", *words)
    assert done.returncode == 0 and "validated" in done.stdout, done.stdout + done.stderr


KERNELS = """
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.core import _aggregate as aggregate


@aggregate
class Plain:
    step: gl.constexpr

    @gluon.constexpr_function
    def __init__(self):
        self.step = gl.constexpr(1)


def Grouped(size, kind="rows"):
    SIZE = gl.constexpr(size)

    @aggregate
    class Tiles:
        step: gl.constexpr

        @gluon.constexpr_function
        def __init__(self):
            self.step = gl.constexpr(SIZE)

    return Tiles


@gluon.jit
def twice(x):
    return x * 2


@gluon.jit
def strided(x_ptr, Tiles: gl.constexpr, act: gl.constexpr, layout: gl.constexpr, num_warps: gl.constexpr):
    at = gl.arange(0, 128, layout) * Tiles().step
    gl.store(x_ptr + at, act(gl.load(x_ptr + at)))


@gluon.jit
def images(x, layout: gl.constexpr):
    gl.static_assert(x.type.block_shape[0] == 64)
"""
LAUNCHES = """
from kernels import Grouped, Plain, images, strided, twice

layout = gl.BlockedLayout([1], [32], [4], [0])
for tiles in (Plain, Grouped(8), Grouped(4)):
    strided[(1,)](Tensor("float32", 1024), tiles, twice, layout, num_warps=4, maxnreg=128)
shared = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
base = Tensor("float16", 2, 16, 16, 64)
corners = {"pixel_box_lower_corner": [-1, -1], "pixel_box_upper_corner": [-1, -1], "element_strides": [1, 2, 2, 1]}
d = TensorDescriptorIm2Col(base, list(base.shape), list(base.stride()), [64, 64], shared, padding="zero", **corners)
images[(1,)](d, layout, num_warps=4, num_ctas=1)
d = TensorDescriptorIm2Col(base, list(base.shape), list(base.stride()), [64, 64], shared, padding="nan", **corners)
images[(2,)](d, layout, num_warps=4, num_ctas=1)
images[(3,)](d, layout, num_warps=4, num_ctas=1)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "kernels.py").write_text(KERNELS)
    (folder / "host.py").write_text(HEAD.format(namespace="hopper") + LAUNCHES)
    done = ran(folder, "capture", "host.py", "--from", "sm_90")
    assert done.returncode == 0, done.stderr
    return folder, read_launches(str(folder / "launches.json"))


def test_classes_functions_and_layouts(own):
    plain, eight, four, *_ = own[1]
    assert plain.constexprs["Tiles"] == {"$class": "kernels.py:Plain"}
    assert eight.constexprs["Tiles"] == {"$call": "kernels.py:Grouped", "args": [8, "rows"]}
    assert four.constexprs["Tiles"]["args"] == [4, "rows"]
    assert plain.constexprs["act"] == {"$jit": "kernels:twice"}
    assert plain.constexprs["layout"]["$layout"].startswith("BlockedLayout(size_per_thread=[1]")
    # A parameter that is an option too is both; maxnreg is one of NVIDIA's backend.
    assert plain.constexprs["num_warps"] == 4 and plain.options == {"num_warps": 4, "maxnreg": 128}


@pytest.mark.slow
def test_classes_of_a_captured_launch_are_loaded(own):
    """One text for each: device code does not see which class a launch gives."""
    specs = [spec.as_json() for spec in own[1][:3]]
    for number, step in enumerate((1, 8, 4)):
        (own[0] / "one.json").write_text(json.dumps(specs[number]))
        words = ["-t", "gfx942", "-l", "one.json", "-o", f"out{number}.py", "--no-parity"]
        done = ran(own[0], "translate", "kernels.py", *words)
        assert done.returncode == 0 and "proved" in done.stdout, done.stdout + done.stderr
        assert f"{step} * gl.arange" in (own[0] / f"out{number}.py").read_text() or step == 1


@pytest.mark.slow
def test_launches_that_differ_in_a_class_are_refused_in_one_file(own):
    words = ["-k", "strided", "-t", "gfx942", "-l", "launches.json", "-o", "all.py", "--no-parity", "--keep-going"]
    done = ran(own[0], "translate", "kernels.py", *words)
    assert "kernels/strided#2 gives Tiles another function, class or layout than kernels/strided does" in done.stderr
    assert done.stderr.count("[launches-alike]") == 2


def test_descriptors_of_images(own):
    spec = own[1][3]
    assert spec.signature["x"].startswith("tensordesc_im2col<fp16[64, 64],input_rank=4,NVMMASharedLayout(")
    held = spec.values["x"]["descriptor"]
    assert held["pixel_box_lower_corner"] == [-1, -1] and held["element_strides"] == [1, 2, 2, 1]
    assert "padding" not in held and spec.options == {"num_warps": 4, "num_ctas": 1}


def test_descriptors_that_fill_with_something_else_are_another_launch(own):
    """They are compiled alike, and mean something else; of those that agree in it one is enough."""
    assert [spec.grid for spec in own[1][3:]] == [(1,), (2,)]
    assert own[1][4].values["x"]["descriptor"]["padding"] == "nan"


def test_tests_of_gluon_kernels(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    body = """
    from kernels import Plain, strided, twice
    import pytest

    @pytest.mark.skipif(not made_for(9), reason="for Hopper")
    def test_it():
        x = Tensor("float32", 1024)
        strided[(1,)](x, Plain, twice, gl.BlockedLayout([1], [32], [4], [0]), num_warps=4)
        assert x.array[0] == 2
    """
    (tmp_path / "test_it.py").write_text(HEAD.format(namespace="hopper") + textwrap.dedent(body))
    done = ran(tmp_path, "capture", "--", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py::test_it")
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
    assert [spec.target for spec in read_launches(str(tmp_path / "launches.json"))] == ["cuda:90"]


def test_a_kernel_that_does_not_say_what_it_is_for(tmp_path):
    """Nothing in its file names a machine; what it is for has to be said."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    launch = (
        "from kernels import *\nfrom capture_tensors import Tensor\nlayout = gl.BlockedLayout([1], [32], [4], [0])\n"
    )
    (tmp_path / "host.py").write_text(launch + 'strided[(1,)](Tensor("float32", 1024), Plain, twice, layout, 4)\n')
    done = ran(tmp_path, "capture", "host.py")
    assert done.returncode == 1 and "strided: a Gluon kernel, and nothing says for what GPU: give --from" in done.stderr
    done = ran(tmp_path, "capture", "host.py", "--from", "gfx950")
    assert done.returncode == 0
    assert [spec.target for spec in read_launches(str(tmp_path / "launches.json"))] == ["hip:gfx950"]


def test_gpus_that_programs_are_told_of(tmp_path):
    assert device_of("sm_90").target.arch == 90 and device_of("hip:gfx950").target.warp_size == 64
    assert all(device_of(name).word == name for name in known_devices())
    done = ran(tmp_path, "capture", "host.py", "--from", "sm_12")
    assert done.returncode == 2 and "sm_90" in done.stderr and "no GPU that a program can be told of" in done.stderr


def test_what_a_commands_files_are_written_for(tmp_path):
    for name, line in {
        "a.py": "import numpy",
        "b.py": "from triton.experimental.gluon.language.amd import cdna4",
    }.items():
        (tmp_path / name).write_text(line + "\n")
    a, b = str(tmp_path / "a.py"), str(tmp_path / "b.py")
    assert target_of_files(["pytest", a]) == "" and target_of_files([str(tmp_path)]) == ""
    assert target_of_files([a, f"{b}::test_x"]) == "hip:gfx950"
