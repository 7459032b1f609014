"""The runner against a fake driver library: one path for HIP and CUDA, and what it reports of kernels good and bad."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from device_fake_driver import build_fake_driver
from gluonize.judge.device import gpu_driver, runner
from gluonize.judge.device.bundles.bundle import Code, write_bundle
from gluonize.judge.device.bundles.expected import ExpectedTensor

COUNT, ROOM = 8, 12
APIS = ("hip", "cuda")


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """api -> path of its fake driver."""
    folder = tmp_path_factory.mktemp("drivers")
    return {api: build_fake_driver(api, folder) for api in APIS}


@pytest.fixture
def device(libraries, monkeypatch, tmp_path):
    """`device(api)` makes that driver the only one there is."""

    def choose(api: str) -> Path:
        for name in APIS:
            variable = runner.APIS[name][1]
            monkeypatch.setenv(variable, libraries[name] if name == api else str(tmp_path / "none.so"))
        monkeypatch.setenv("FAKE_DRIVER_LOG", str(tmp_path / "log"))
        return tmp_path / "log"

    return choose


def tensor(name, data, expected=None, element="f32", **limits):
    expected = data if expected is None else expected
    written = np.zeros(data.size, bool)
    written[:COUNT] = not np.array_equal(data, expected, equal_nan=data.dtype.kind == "f")
    limits = {"rtol": 1e-6, "atol": 0.0, "flips": 0.0, "flip_rtol": 0.0, "flip_atol": 0.0} | limits
    return ExpectedTensor(name, element, data, expected, written, np.zeros(data.size, bool), **limits)


def bundle_bytes(*behaviours, kind="cubin", symbol="kernel", shared=65536, ctas=1, **changes) -> bytes:
    """A bundle whose codes behave so; a behaviour may be (behaviour, sanitizer, planted bug)."""
    source = np.arange(ROOM, dtype=np.float32)
    target = np.full(ROOM, np.nan, np.float32)
    target[COUNT:] = 5
    after = target.copy()
    after[:COUNT] = source[:COUNT] + 1
    codes = []
    for number, behaviour in enumerate(behaviours):
        what, sanitizer, planted = behaviour if isinstance(behaviour, tuple) else (behaviour, "", "")
        content = what.encode() + b" \0"
        codes.append(Code(f"code{number}", kind, symbol, 256, shared, 0, 8, content, sanitizer, planted, ctas=ctas))
    poison = [Code("poison", kind, "poison_lds", 128, 229376, 0, 0, b"poison \0")]
    arguments = [
        {"name": "x", "kind": "tensor", "tensor": "x", "offset": 0, "size": 8},
        {"name": "y", "kind": "tensor", "tensor": "y", "offset": 0, "size": 8},
        {"name": "n", "kind": "scalar", "type": "i32", "bytes": (COUNT).to_bytes(4, "little").hex(), "size": 4},
    ]
    tensors = [tensor("x", source), tensor("y", target, after, **changes)]
    return write_bundle("add/one", "gfx950", (3, 2), codes, poison, arguments, tensors, 0, {"gluonize": "test"})


def run(tmp_path, content: bytes, *options: str):
    """Run the bundle as a script of its own; -> (exit status, JSON result or None, standard error)."""
    (tmp_path / "b.zip").write_bytes(content)
    command = [sys.executable, "-I", str(tmp_path / "b.zip"), "--json", str(tmp_path / "r.json"), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    path = tmp_path / "r.json"
    return done.returncode, json.loads(path.read_text()) if path.exists() else None, done.stderr


@pytest.mark.parametrize("api", APIS)
def test_good_kernel_matches_and_is_timed(api, device, tmp_path):
    log = device(api)
    status, result, _ = run(tmp_path, bundle_bytes("good", kind=runner.APIS[api][3]))
    assert (status, result["numbers"], result["hazards"]) == (0, "match in 3 of 3 runs", "not run")
    assert result["device"] == "fake device" and result["driver"] == 12345
    assert result["codes"][0]["microseconds"] == {"median": 250.0, "least": 250.0, "most": 250.0, "samples": 20}
    assert result["cannot_show"]
    lines = log.read_text().splitlines()
    assert "kernel 6 256 65536" in lines, "grid, block and LDS of the launch"
    assert lines.index("poison_lds 1024 128 229376") < lines.index("kernel 6 256 65536"), "LDS is poisoned first"
    assert sum(line.startswith("poison_lds") for line in lines) >= 3, "before every run"


def test_cuda_asks_for_large_shared_memory(device, tmp_path):
    log = device("cuda")
    run(tmp_path, bundle_bytes("good"))
    assert "attribute 8 65536 0" in log.read_text().splitlines()
    log.unlink()
    run(tmp_path, bundle_bytes("good", shared=1024))
    assert "attribute 8 1024 0" not in log.read_text().splitlines()


@pytest.mark.parametrize("ctas, asked", [(2, False), (16, True)])
def test_programs_of_several_workgroups_are_launched_as_clusters(ctas, asked, device, tmp_path):
    """The grid counts programs; more than eight workgroups have to be asked for."""
    log = device("cuda")
    status, result, _ = run(tmp_path, bundle_bytes("good", ctas=ctas))
    lines = log.read_text().splitlines()
    assert (status, result["numbers"]) == (0, "match in 3 of 3 runs")
    assert lines[lines.index(f"cluster {ctas} 1 1") + 1] == f"kernel {6 * ctas} 256 65536"
    assert ("attribute 14 1 0" in lines) is asked
    assert any("multicast" in what for what in result["cannot_show"])
    assert runner.RUNS <= sum(line.startswith("cluster") for line in lines)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "behaviour, numbers",
    [
        ("wrong", "differ in 3 of 3 runs"),
        ("sometimes", "differ in 1 of 3 runs"),
        ("nothing", "differ in 3 of 3 runs"),
        ("outside", "differ in 3 of 3 runs"),
    ],
)
def test_wrong_numbers_are_reported(api, behaviour, numbers, device, tmp_path):
    device(api)
    status, result, _ = run(tmp_path, bundle_bytes(behaviour, kind=runner.APIS[api][3]))
    assert (status, result["numbers"]) == (1, numbers)
    found = next(t for t in result["codes"][0]["tensors"] if t["name"] == "y")
    assert (found["wrong"] > 0) != (behaviour == "outside")
    assert found["written_outside"] == (behaviour == "outside")


def test_sanitizer_runs_apart_and_its_finding_is_quoted(device, tmp_path):
    device("cuda")
    status, result, _ = run(tmp_path, bundle_bytes("good", ("traps", "consan", "")))
    assert (status, result["numbers"]) == (1, "match in 3 of 3 runs"), "numbers and hazards are two results"
    assert result["hazards"] == "found: Buffer being accessed has outstanding writes"
    status, result, _ = run(tmp_path, bundle_bytes("good", ("good", "consan", "")))
    assert (status, result["hazards"]) == (0, "none found")


def test_trap_without_message_is_no_clean_run(device, tmp_path):
    device("cuda")
    status, result, _ = run(tmp_path, bundle_bytes("good", ("scratchless", "consan", ""), symbol="missing"))
    assert status == 1 and result["numbers"].startswith("failed: cuModuleGetFunction")
    assert result["hazards"].startswith("failed:")


def test_profile_scratch_is_given_per_program_and_zeroed(device, tmp_path):
    device("hip")
    status, result, _ = run(tmp_path, bundle_bytes("scratch", kind="hsaco"))
    assert (status, result["numbers"]) == (0, "match in 3 of 3 runs")


def test_hanging_kernel_is_ended(device, tmp_path):
    device("cuda")
    status, result, _ = run(tmp_path, bundle_bytes("hangs"), "--timeout", "2")
    assert status == 1 and result["numbers"] == "failed: it ran longer than 2 s"


def test_planted_bugs_run_only_when_asked_for(device, tmp_path):
    device("cuda")
    content = bundle_bytes("good", ("traps", "consan", "a wait removed"))
    _, result, _ = run(tmp_path, content)
    assert [code["planted"] for code in result["codes"]] == [""]
    _, result, _ = run(tmp_path, content, "--planted")
    assert [bool(code["messages"]) for code in result["codes"]] == [False, True]
    assert result["hazards"] == "not run", "a planted bug says nothing about the kernel"


def test_no_driver_no_device_wrong_kind(device, tmp_path, monkeypatch):
    device("neither")
    status, result, said = run(tmp_path, bundle_bytes("good"))
    assert (status, result) == (2, None) and "no GPU found" in said
    device("cuda")
    status, result, said = run(tmp_path, bundle_bytes("good", kind="hsaco"))
    assert (status, result) == (2, None) and "has no cubin" in said
    monkeypatch.setenv("FAKE_DRIVER_NO_DEVICE", "1")
    status, result, said = run(tmp_path, bundle_bytes("good"))
    assert (status, result) == (2, None) and "no GPU found" in said


def test_tolerances_and_flips(device, tmp_path):
    device("cuda")
    status, result, _ = run(tmp_path, bundle_bytes("wrong", rtol=0.2))
    assert status == 0, "0.5 of 4 is within 20 %"
    status, result, _ = run(tmp_path, bundle_bytes("wrong", flips=0.2, flip_atol=0.6))
    assert status == 0, "one of eight elements may flip"
    status, result, _ = run(tmp_path, bundle_bytes("wrong", flips=0.1, flip_atol=0.6))
    assert status == 1, "one of eight is more than a tenth"


def test_runner_needs_only_numpy(tmp_path):
    """A bundle has all that it needs but the standard library and numpy, so it runs where Triton and gluonize are not."""
    (tmp_path / "b.zip").write_bytes(bundle_bytes("good"))
    program = f"""
import runpy, sys
class Only:
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] not in sys.stdlib_module_names | {{"numpy", "gpu_driver", "__main__"}}:
            raise ImportError(name)
sys.meta_path.insert(0, Only)
sys.argv = ["b.zip", "--help"]
runpy.run_path({str(tmp_path / "b.zip")!r}, run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "Run a bundle" in done.stdout, done.stderr


@pytest.mark.parametrize("module", [runner, gpu_driver], ids=lambda module: module.__name__.rpartition(".")[2])
def test_imports_of_what_travels_in_bundles(module):
    import ast

    tree = ast.parse(Path(module.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names - {"__future__", "numpy", "gpu_driver", "gluonize.judge.device.gpu_driver"} <= sys.stdlib_module_names


@pytest.mark.parametrize("element", ["bf16", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"])
def test_decoding_equals_the_reference_machine(element):
    from gluonize.judge.machine.dtypes import decode, stored

    codes = np.arange(65536 if element == "bf16" else 256).astype(stored(element))
    np.testing.assert_array_equal(runner.decode(codes, element), np.asarray(decode(codes, element), np.float64))


def test_same_contents_same_bytes():
    assert bundle_bytes("good", ("good", "consan", "")) == bundle_bytes("good", ("good", "consan", ""))
    assert bundle_bytes("good") != bundle_bytes("wrong")
