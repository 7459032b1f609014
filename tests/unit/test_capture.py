"""`gluonize capture`: what a program launches, recorded without a GPU."""

import json
import subprocess
import sys
import textwrap

import pytest

from slow_rows import slow
from gluonize.diagnostics import TranslationError
from gluonize.read.launches.capture.commands import resolve_command
from gluonize.read.launches.capture.pretended_device import pretended_device
from gluonize.read.launches.capture.tensors import tensor_argument, value_range
from gluonize.read.spec.launch import read_launches

PROGRAM = '''
import sys
import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


class Tensor:
    """A stand-in for a torch tensor: half precision, on no device."""

    class dtype:
        itemsize = 2

        def __str__(self):
            return "torch.float16"

    dtype = dtype()

    def __init__(self, *shape, address=4096, storage=None):
        self.shape, self.address = shape, address
        self.storage = storage or 2 * int(np.prod(shape))

    def stride(self):
        return tuple(int(np.prod(self.shape[i + 1 :])) for i in range(len(self.shape)))

    def data_ptr(self):
        return self.address

    def storage_offset(self):
        return 0

    def untyped_storage(self):
        return self

    def size(self):
        return self.storage


@triton.jit
def twice(x):
    return x * 2


@triton.jit
def scale(x_ptr, y_ptr, n, s, nothing, alpha, ACT: tl.constexpr, BLOCK: tl.constexpr = 128):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, ACT(x) * alpha + s, mask=offsets < n)


@triton.autotune([triton.Config({"BLOCK": 256}, num_warps=2), triton.Config({"BLOCK": 512}, num_warps=8)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 0.0, mask=offsets < n)


@triton.jit
def pairs(pair, d, BLOCK: tl.constexpr):
    tl.store(pair[0] + tl.arange(0, BLOCK), pair[1])


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]), 2)


if __name__ == "__main__":
    n = int(sys.argv[1])
    x, y = np.linspace(-1.5, 2.5, n, dtype=np.float32), np.zeros((n // 2, 2), np.float32)
    scale[(0, 2)](x, y, n, 1, None, 0.5, twice, num_warps=2)
    for _ in range(3):
        scale[grid](x, y, n, 1, None, 0.5, twice, num_warps=2)
    scale[grid](x, y, n + 1, 1, None, 0.5, twice, num_warps=2)
    tuned[grid](Tensor(n), n)
    base = Tensor(64, 32)
    pairs[(1,)]((np.arange(64), 16), TensorDescriptor(base, [64, 32], [32, 1], [16, 16]), BLOCK=64, maxnreg=32)
    scale[(1,)](Tensor(8, address=4104), Tensor(8, storage=1 << 32), 8, 3, 7, 1.0, ACT=twice, BLOCK=8)
    if len(sys.argv) > 2:
        sys.exit(int(sys.argv[2]))
'''


def capture(folder, *arguments, program=PROGRAM, options=()):
    (folder / "prog.py").write_text(program)
    command = [sys.executable, "-m", "gluonize.product.cli", "capture", "prog.py", *options, "--", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("capture")
    done = capture(folder, "1024")
    assert done.returncode == 0, done.stderr
    return read_launches(str(folder / "launches.json")), done.stderr, folder


def test_each_specialization_once_and_every_configuration(captured):
    # Ten: one has no programs, and the autotuner launches each of its two configurations, then the one it takes.
    specs, printed, _ = captured
    assert [spec.kernel for spec in specs] == ["scale", "scale", "tuned", "tuned", "pairs", "scale"]
    assert "10 launches (recorded, not run), 6 different" in printed
    assert "scale: a launch with a grid of [0, 2], which runs nothing: left out" in printed
    config = {"num_ctas": 1, "num_stages": 3}  # the defaults of triton.Config, which are options of its launches
    assert [spec.options for spec in specs[2:4]] == [{"num_warps": 2, **config}, {"num_warps": 8, **config}]
    assert [spec.constexprs for spec in specs[2:4]] == [{"EVEN": True, "BLOCK": 256}, {"EVEN": True, "BLOCK": 512}]
    assert {spec.source for spec in specs} == {"prog.py"}


def test_specialization_is_tritons(captured):
    first, other, *_, last = captured[0]
    assert first.signature == {
        "x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "s": "constexpr", "nothing": "constexpr", "alpha": "fp32",
        "ACT": "constexpr", "BLOCK": "constexpr",
    }  # fmt: skip
    assert first.constexprs == {"s": 1, "nothing": None, "ACT": {"$jit": "prog:twice"}, "BLOCK": 128}
    assert first.attrs["n"] == "D" and "n" not in other.attrs  # 1024 and 1025
    assert first.grid == (8, 2) and other.grid == (9, 2)
    # An address that is not divisible by 16, and 4 GiB of storage.
    assert last.attrs.get("x_ptr", "") == "S" and last.attrs["y_ptr"] == "D"
    assert last.signature["s"] == "i32" and last.signature["x_ptr"] == "*fp16"


def test_values_for_validation(captured):
    specs = captured[0]
    assert specs[0].values["x_ptr"]["tensor"] == {
        "dtype": "float32", "shape": [1024], "stride": [1], "storage": 1024, "offset": 0, "range": [-1.5, 2.5],
    }  # fmt: skip
    assert specs[0].values["y_ptr"]["tensor"]["stride"] == [2, 1]
    assert specs[0].values["n"] == 1024 and specs[0].values["alpha"] == 0.5
    assert "range" not in specs[2].values["x_ptr"]["tensor"]  # nobody can say what it holds


def test_tuples_and_descriptors(captured):
    spec, printed = captured[0][4], captured[1]
    assert spec.signature["pair"] == ["*i64", "i32"] and spec.attrs["pair"][1] == "D"
    assert spec.values["pair"]["$tuple"][1] == 16
    assert spec.signature["d"].startswith("tensordesc<fp16[16, 16]")
    assert spec.values["d"]["descriptor"]["block_shape"] == [16, 16]
    assert "maxnreg" not in spec.options and "the launch option maxnreg is not one of" in printed


def test_what_was_recorded_compiles(captured, tmp_path):
    folder = captured[2]
    command = [sys.executable, "-m", "gluonize.product.cli", "compile", "prog.py", "-k", "tuned", "-t", "gfx942", "-l"]
    done = subprocess.run([*command, "launches.json"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_what_was_recorded_is_translated(captured):
    """With a jit function as a constexpr, and launches that differ in what they specialize on."""
    folder = captured[2]
    command = [sys.executable, "-m", "gluonize.product.cli", "translate", "prog.py", "-k", "scale", "-t", "gfx942"]
    command += ["-l", "launches.json", "-o", "scale_out.py", "--no-parity"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "validated" in done.stdout


def test_existing_files_are_kept_unless_asked(captured):
    folder = captured[2]
    before = (folder / "launches.json").read_text()
    refused = capture(folder, "1024")
    assert refused.returncode == 2 and "--append" in refused.stderr
    assert (folder / "launches.json").read_text() == before
    assert capture(folder, "1024", options=["--append"]).returncode == 0
    assert (folder / "launches.json").read_text() == before
    assert capture(folder, "2050", options=["--append"]).returncode == 0
    specs = read_launches(str(folder / "launches.json"))
    assert len(specs) > 6 and len({spec.id for spec in specs}) == len(specs)
    capture(folder, "1024", options=["--overwrite", "-k", "tuned"])
    assert {spec.kernel for spec in read_launches(str(folder / "launches.json"))} == {"tuned"}


def test_a_program_that_fails_keeps_what_it_launched(tmp_path):
    done = capture(tmp_path, "1024", "7")
    assert done.returncode == 1 and "status 7" in done.stderr
    assert len(read_launches(str(tmp_path / "launches.json"))) == 6


@pytest.mark.parametrize(
    "end, said",
    [
        ("os.kill(os.getpid(), 9)", "ended by signal 9"),
        ("os._exit(0)", "left at once with status 0"),
        slow(("os.kill(os.getppid(), 2)\n    time.sleep(60)", "interrupted")),
        ("os.kill(os.getppid(), 2)\n    os.kill(os.getpid(), 2)", "interrupted"),
    ],
    ids=["killed", "exit", "interrupted", "control-c"],
)
def test_a_program_that_is_cut_off_keeps_what_it_launched(tmp_path, end, said):
    """For want of memory, say."""
    done = capture(tmp_path, "1024", program=f"import os, time\n{PROGRAM}\n    {end}\n")
    assert done.returncode == 2 and said in done.stderr and "launches.json has the 6 launches until then" in done.stderr
    assert len(read_launches(str(tmp_path / "launches.json"))) == 6


STEPS = """
import os
import numpy as np, pytest, triton, triton.language as tl

@triton.jit
def first(x):
    tl.store(x, 1.0)

@triton.jit
def second(x):
    tl.store(x, 1.0)

@triton.jit
def third(x):
    tl.store(x, 1.0)

def assert_ones(x):
    if x[0] != 1:
        raise AssertionError("not computed")

def test_steps():
    x = np.zeros(16, np.float16)
    first[(1,)](x)
    assert x[0] == 1
    second[(1,)](x)
    assert_ones(x)
    third[(1,)](x)

def test_errors_are_errors():
    with pytest.raises(ValueError):
        assert_ones(np.ones((2, 2)))
"""


@pytest.mark.one_of(2)
@pytest.mark.parametrize("options, expected", [([], ["first", "second", "third"]), (["--no-pretend"], ["first"])])
def test_assertions_of_tests_do_not_end_them_where_nothing_is_computed(tmp_path, options, expected):
    (tmp_path / "test_steps.py").write_text(STEPS)
    command = [sys.executable, "-m", "gluonize.product.cli", "capture", *options, "--", "pytest", "-q", "test_steps.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert [spec.kernel for spec in read_launches(str(tmp_path / "launches.json"))] == expected


def test_a_program_has_its_own_packages_whatever_they_are_called(tmp_path):
    """`rules` and `translator` are folders of gluonize's repository, and names that a user's repository may have too."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "__init__.py").write_text("SIZE = 300\n")
    (tmp_path / "translator.py").write_text("GRID = (2,)\n")
    program = """
    import triton
    import triton.language as tl
    from rules import SIZE
    from translator import GRID

    @triton.jit
    def count(n, BLOCK: tl.constexpr):
        tl.arange(0, BLOCK)

    count[GRID](SIZE, BLOCK=64)
    """
    done = capture(tmp_path, program=textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
    (launch,) = read_launches(str(tmp_path / "launches.json"))
    assert launch.grid[0] == 2 and launch.values["n"] == 300


def test_nothing_launched(tmp_path):
    done = capture(tmp_path, program="print('hello')\n")
    assert done.returncode == 1 and "no Triton kernel was launched" in done.stderr
    assert not (tmp_path / "launches.json").exists()


def test_a_module_that_is_not_installed_is_told_once(tmp_path):
    done = capture(tmp_path, program="import nothing_of_this_name\n")
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1
    assert f"nothing_of_this_name is not installed for {sys.executable}" in done.stderr


def test_a_program_that_does_not_exist(tmp_path):
    command = [sys.executable, "-m", "gluonize", "capture", "nowhere.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "no such file" in done.stderr


def test_modules_and_setup_code_that_asks_for_the_device(tmp_path):
    (tmp_path / "mod.py").write_text(textwrap.dedent("""
            import numpy as np, triton, triton.language as tl
            TARGET = triton.runtime.driver.active.get_current_target()
            assert triton.runtime.driver.active.utils.get_device_properties(0)["max_shared_mem"] == 65536
            @triton.jit
            def fill(x_ptr, BLOCK: tl.constexpr):
                tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
            fill[(1,)](np.zeros(16, np.float16), BLOCK=16)
            """))
    command = [sys.executable, "-m", "gluonize.product.cli", "capture", "-m", "mod", "-o", "out.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["launches"][0]["signature"]["x_ptr"] == "*fp16"


class TestRange:
    np = pytest.importorskip("numpy")

    def test_floats_are_rounded_inwards(self):
        assert value_range(self.np.array([0.12345, 9.8765]), "float64") == [0.124, 9.87]
        assert value_range(self.np.array([-9.8765, -0.12345]), "float64") == [-9.87, -0.124]

    def test_integers_are_exact(self):
        assert value_range(self.np.array([-12345, 98765]), "int64") == [-12345, 98765]

    def test_memory_that_nobody_wrote(self):
        assert value_range(self.np.array([0.0, float("nan")]), "float64") is None
        assert value_range(self.np.array([]), "float64") is None

    def test_what_is_no_tensor(self):
        assert tensor_argument(3) is None and tensor_argument(self.np.array(["a"])) is None


TESTS = """
import numpy as np
from prog import tuned, scale, twice


def test_one():
    x = np.ones(1024, np.float32)
    tuned[(1,)](x, 1024)
    if x[0] != 0.0:
        raise ValueError("it was not run")


def test_two():
    scale[(1,)](np.ones(8, np.float32), np.ones(8, np.float32), 8, 3, 7, 1.0, ACT=twice, BLOCK=8)
"""


def watched(folder, *words):
    (folder / "prog.py").write_text(PROGRAM)
    (folder / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "gluonize.product.cli", "capture", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_tests_are_watched_and_may_fail_at_what_was_not_run(tmp_path):
    done = watched(tmp_path, "-o", "found.json", "--", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert done.returncode == 0 and "1 failed, 1 passed" in done.stdout and "its launches were not run" in done.stderr
    assert {spec.kernel for spec in read_launches(str(tmp_path / "found.json"))} == {"tuned", "scale"}


def test_launches_can_be_run_by_tritons_interpreter(tmp_path):
    program = "import os\nfrom prog import tuned\nprint(type(tuned.fn.fn).__name__, os.environ['TRITON_INTERPRET'])\n"
    (tmp_path / "shows.py").write_text(program)
    done = watched(tmp_path, "--run", "interpret", "--", "python", "shows.py")
    assert "InterpretedFunction 1" in done.stdout, done.stdout + done.stderr


def test_a_notebook(tmp_path):
    cells = [
        {"cell_type": "code", "source": [line]} for line in ("%load_ext x\n", PROGRAM, "tuned[(1,)](Tensor(64), 64)")
    ]
    (tmp_path / "notes.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["# A"]}, *cells]}))
    done = watched(tmp_path, "-o", "found.json", "notes.ipynb", "--", "16")
    assert done.returncode == 0, done.stderr
    found = read_launches(str(tmp_path / "found.json"))
    assert {spec.source for spec in found} == {"notes.py"} and "tuned" in {spec.kernel for spec in found}


@pytest.mark.parametrize(
    "words,expected",
    [
        (("pytest", "a"), ("entry", ("a",))),
        (("python", "-m", "pkg", "a"), ("module", ("a",))),
        (("python3", "script.py", "a"), ("script", ("a",))),
        (("script.py", "a"), ("script", ("a",))),
        (("notes.ipynb",), ("notebook", ())),
        (("pydoc", "a"), ("module", ("a",))),
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else "",
)
def test_commands(tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("script.py", "notes.ipynb"):
        (tmp_path / name).write_text("")
    found = resolve_command(words, is_module=False)
    assert (found.kind, found.arguments) == expected


def test_a_command_that_is_not_there():
    with pytest.raises(TranslationError, match="no such file or command"):
        resolve_command(("no-such-command",), is_module=False)


def test_a_device_that_is_not_there():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pretended_device():
        x = torch.empty(4, device="cuda")
        assert torch.cuda.is_available() and x.is_cuda and x.device.type == "cuda" and x.cuda().tolist() == [0.0] * 4
        assert torch.empty(2, device=x.device).is_cuda and torch.allclose(x, x + 1)
        assert torch.compile(len) is len and torch.compile(dynamic=True)(len) is len
    assert not torch.cuda.is_available() and not x.is_cuda


def test_host_code_that_goes_on_with_what_no_kernel_wrote_is_told():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    given, told = [], []
    with pretended_device(was_given=lambda tensor: any(tensor is one for one in given), unwritten=told.append):
        inputs, counts, other = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda"), torch.empty(2)
        given += [inputs, counts]
        assert inputs[1].item() == 1.0 and other[0].item() == 0.0 and not told
        assert int(counts[-1].item()) == 0
        assert counts.tolist() == [0.0] * 4
    first, second = told
    assert first.startswith("test_capture.py:") and second.startswith("test_capture.py:") and first != second
