"""Every fixture is complete, parses, runs as its reference says, and compiles with plain Triton."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import numpy as np
import pytest

import fixture_set
from child_process import compile_folder, interpret
from fixture_set import Fixture
from gluonize.read.spec.launch import read_launches

FIXTURES = fixture_set.fixtures()
LAUNCHES = [(fixture, launch) for fixture in FIXTURES for launch in fixture.launches()]

each_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
each_launch = pytest.mark.parametrize("fixture, launch", LAUNCHES, ids=[launch["id"] for _, launch in LAUNCHES])

SPEC_DTYPES = {
    "float16": "*fp16",
    "bfloat16": "*bf16",
    "float32": "*fp32",
    "float8_e4m3fn": "*fp8e4nv",
    "int8": "*i8",
    "int32": "*i32",
    "int64": "*i64",
}


def decorators(function: ast.FunctionDef) -> list[str]:
    return [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]


@each_fixture
def test_every_kernel_has_a_launch_of_its_own_name(fixture: Fixture):
    functions = [node for node in ast.parse(fixture.kernel_file.read_text()).body if isinstance(node, ast.FunctionDef)]
    kernels = {f.name for f in functions if "triton.jit" in decorators(f) and not f.name.startswith("_")}
    assert {launch["kernel"] for launch in fixture.launches()} == kernels
    assert all(launch["id"].startswith(f"{fixture.name}/") for launch in fixture.launches())


def test_launch_ids_are_unique():
    ids = [launch["id"] for _, launch in LAUNCHES]
    assert len(ids) == len(set(ids))


@each_fixture
def test_reading_needs_no_torch(fixture: Fixture):
    imports = [node for node in ast.parse(fixture.kernel_file.read_text()).body if "mport" in type(node).__name__]
    assert [ast.unparse(node) for node in imports] == ["import triton", "import triton.language as tl"]


@each_fixture
def test_launches_parse(fixture: Fixture):
    specs = read_launches(str(fixture.launches_file))
    assert [spec.as_json() for spec in specs] == fixture.launches()


@each_launch
def test_values_agree_with_signature(fixture: Fixture, launch: dict):
    """What is claimed of an argument (type, constexpr, divisibility, size) is true of the value given for it."""
    assert set(launch["values"]) == set(launch["signature"])
    for name, value in launch["values"].items():
        kind, flags = launch["signature"][name], launch["attrs"].get(name, "")
        if isinstance(value, dict):
            tensor = value["tensor"]
            assert SPEC_DTYPES[tensor["dtype"]] == kind, name
            last = sum((size - 1) * step for size, step in zip(tensor["shape"], tensor["stride"]))
            assert tensor["offset"] + last < tensor["storage"], name
            assert flags == "DS", name
        elif kind == "constexpr":
            assert launch["constexprs"][name] == value, name
        elif isinstance(value, float):
            assert (kind, flags) == ("fp32", ""), name
        else:
            # As Triton specializes integers: 1 is a constexpr, multiples of 16 are marked.
            assert (kind, flags) == ("i32", "D" if value % 16 == 0 else ""), name
            assert value != 1, name


@pytest.mark.slow  # of the fixtures alone, which seldom change
@each_fixture
def test_kernel_computes_its_reference(fixture: Fixture):
    found = interpret(fixture.folder)
    assert found == {launch["id"]: [] for launch in fixture.launches()}


@pytest.mark.parametrize(
    "name, right, wrong, launch_id, tensor",
    [
        ("vector_add", "x + y\n", "x - y\n", "vector_add/fp16", "output_ptr"),
        ("vector_add", "mask = offsets < n_elements", "mask = offsets < 0", "vector_add/fp32", "output_ptr"),
        ("flash_attention", "acc = acc * alpha[:, None]", "acc = acc", "flash_attention/causal", "Out"),
        ("dropout", "random > p", "random > p + 0.001", "dropout/fp32", "output_ptr"),
        ("embedding", "row_mask &= indices != padding_idx", "row_mask = row_mask", "embedding/backward", "dweight_ptr"),
    ],
    ids=["wrong-operator", "writes-nothing", "no-rescale", "slightly-off-probability", "padding-row-trained"],
)
def test_planted_mistake_is_found(tmp_path: Path, name: str, right: str, wrong: str, launch_id: str, tensor: str):
    folder = shutil.copytree(fixture_set.ROOT / name, tmp_path / name)
    kernel = folder / "kernel.py"
    assert kernel.read_text().count(right) == 1
    kernel.write_text(kernel.read_text().replace(right, wrong))
    (mismatch,) = interpret(folder)[launch_id]
    assert mismatch.startswith(f"{tensor}: ")


@pytest.mark.slow
@pytest.mark.compile
def test_compiles_with_plain_triton(fixture: Fixture, compile_target: str):
    results = compile_folder(fixture.folder, compile_target)
    assert set(results) == {launch["id"] for launch in fixture.launches()}
    wrong = {i: r for i, r in results.items() if r.get("language") != "triton" or not r["hsaco"]}
    assert wrong == {}


@pytest.mark.parametrize(
    "dtype, value, rounded",
    [
        ("bfloat16", 1.00390625, 1.0),  # 1 + 2**-8 is a tie: to even
        ("bfloat16", 1.01171875, 1.015625),  # 1 + 3 * 2**-8 is a tie: to even
        ("float8_e4m3fn", 1.0625, 1.0),
        ("float8_e4m3fn", 500.0, 448.0),
        ("float8_e4m3fn", 0.0009765625, 0.0),  # half of the least subnormal, 2**-9
        ("float8_e4m3fn", 0.0029296875, 0.00390625),  # 1.5 times the least subnormal is a tie
        ("float8_e4m3fnuz", 300.0, 240.0),
        ("float8_e5m2", -1.125, -1.0),
        ("float8_e5m2fnuz", 2.0**-17, 2.0**-17),  # the least subnormal
        ("float16", 1.00048828125, 1.0),
    ],
)
def test_rounding_to_narrow_floats(dtype: str, value: float, rounded: float):
    assert fixture_set.round_to(np.array([value]), dtype)[0] == rounded
