"""What translations of clusters have is needed: each barrier of the cluster, and each byte of the operands once."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from cluster_sources import SOURCES
from translation_of import translate

from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.inputs import make_inputs
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.stages import translated_stage
from gluonize.judge.verdict import validate_launch
from gluonize.trace.model.parse import parse_module

PAIR = re.compile(r" +cluster\.arrive\(\)\n +cluster\.wait\(\)\n")
NAMES = ("matmul", "matmul with masks", "matmul with descriptors", "split-K", "attention", "causal attention")
COUNTS = (2, 4)


@cache
def _translated(folder: Path, name: str, count: int) -> str:
    return translate(folder, SOURCES[name].file, SOURCES[name].launch(count), target="gfx1250").text


def translated(folder: Path, name: str, count: int) -> str:
    own = folder / f"{name}-{count}"
    own.mkdir(exist_ok=True)
    return _translated(own, name, count)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("clusters")


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_no_barrier_of_the_cluster_is_superfluous(name: str, count: int, folder: Path, tmp_path: Path):
    """Without any one of them the reference machine finds a hazard between workgroups; with all of them it finds nothing."""
    text, spec = translated(folder, name, count), SOURCES[name].launch(count)
    (tmp_path / "source.py").write_text(SOURCES[name].file)
    pairs = list(PAIR.finditer(text))
    assert len(pairs) == text.count("cluster.arrive()") == text.count("cluster.wait()") > 1
    for left_out in (None, *pairs):
        changed = text if left_out is None else text[: left_out.start()] + text[left_out.end() :]
        (tmp_path / "output.py").write_text(changed)
        answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, "gfx1250")
        if left_out is None:
            assert answer["status"] == "validated", answer
        else:
            assert any(found["kind"].startswith("cluster-") for found in answer["hazards"]), changed


def test_a_tile_that_no_workgroup_shares_needs_no_barrier(folder: Path, tmp_path: Path):
    """Each has its rows of the tile, which no copy of another one touches; a copy to all would have a peer too many."""
    text, spec = translated(folder, "descriptor copy", 2), SOURCES["descriptor copy"].launch(2)
    assert "cluster" not in text
    (tmp_path / "source.py").write_text(SOURCES["descriptor copy"].file)
    (tmp_path / "output.py").write_text(text.replace("[1, 0], [[1, 0]])", "[1, 0], [[0, 0]])"))
    answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, "gfx1250")
    (found,) = answer["hazards"]
    line = next(n for n, line in enumerate(text.splitlines(), 1) if "tdm.async_load(" in line)
    assert (found["kind"], found["line"]) == ("cluster-start", line), answer


def fetched(folder: Path, name: str, count: int) -> dict[str, int]:
    """The bytes that a translation reads from memory, by copies and by lanes, by the text of the line that asks for them."""
    text, spec = translated(folder, name, count), SOURCES[name].launch(count)
    output = folder / f"{name}-{count}" / "output.py"
    output.write_text(text)
    stage, inputs, memory = translated_stage(str(output), spec, "gfx1250"), make_inputs(spec), Memory()
    addresses = place_tensors(memory, inputs)
    module = parse_module(stage.text, stage.file)
    machine = Machine(module, memory, tuple(spec.grid))
    machine.run(bind(module, list(stage.names), inputs, addresses), [0])
    return dict(machine.fetched)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    "name, elements",
    [
        ("matmul", 2 * 128 * 256),
        ("matmul with masks", 2 * 128 * 256),
        ("matmul with descriptors", 2 * 128 * 256),
        ("attention", 128 * 64 + 2 * 256 * 64),  # rows of queries; all keys and values
    ],
)
def test_operands_are_read_once_for_the_whole_cluster(name: str, elements: int, count: int, folder: Path):
    assert sum(fetched(folder, name, count).values()) == 2 * elements
