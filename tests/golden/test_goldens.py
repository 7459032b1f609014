"""Each fixture translates for each target to its golden, and each refusal case is refused in the words of its golden.

A changed golden is read as code before it is committed: `make golden` prints the difference.
"""

from __future__ import annotations

import ast
import sys

import pytest

import golden_set
from child_process import ChildFailed, compile_folder
from fixture_set import Fixture
from golden_set import SHOWN, Golden

TRANSLATIONS = golden_set.translations()
REFUSALS = golden_set.refusals()
# What is translated under every release of Triton: one target each, so that every family has several, and every way to write a loop.
SAMPLE = (
    "attention_backward-gfx1201 batched_matmul-gfx942 block_matmul-gfx942 chunked_scan-gfx950 cross_entropy-gfx1100 descriptor_matmul-gfx1250 dropout-gfx950 embedding-gfx1100"
    " flash_attention-gfx950 fp8_matmul-gfx1201 int8_matmul-gfx942 layer_norm-gfx1250 matmul-gfx1250 matmul-gfx950 rms_norm-gfx942"
    " rotary_embedding-gfx950 scan-gfx1250 softmax-gfx942 split_k_matmul-gfx950 top_k-gfx942 vector_add-gfx1201"
).split()


def each(golden: Golden):
    """The golden as a case. Of kernels that are Gluon already one target is enough for every day."""
    slow = golden in golden_set.of_gluon() and golden.target != "gfx950"
    marks = [pytest.mark.slow] * slow + [pytest.mark.versions] * (golden.id in SAMPLE)
    return pytest.param(golden, id=golden.id, marks=marks)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("golden", [each(golden) for golden in (*TRANSLATIONS, *REFUSALS)])
def test_golden(golden: Golden):
    try:
        found = golden_set.produce(golden)
    except (golden_set.Unexpected, ChildFailed) as error:
        pytest.fail(str(error), pytrace=False)
    if not golden.path.exists():
        pytest.fail(f"the golden of {golden.id} is missing; write it with: {golden.refresh}", pytrace=False)
    lines = golden_set.difference(golden, found).splitlines(True)
    more = f"... {len(lines) - SHOWN} more lines\n" if len(lines) > SHOWN else ""
    if lines:
        message = f"{golden.id} has changed; if that is right: {golden.refresh}\n"
        pytest.fail(message + "".join(lines[:SHOWN]) + more, pytrace=False)


@pytest.mark.versions
def test_the_sample_has_every_fixture():
    found = {golden.id: golden.source.parent.name for golden in TRANSLATIONS if golden not in golden_set.of_gluon()}
    assert set(SAMPLE) <= set(found)
    assert {found[id] for id in SAMPLE} >= set(found.values()) - {"root_finding"}


def test_no_golden_is_left_over():
    assert golden_set.orphans() == []


@pytest.mark.parametrize("golden", TRANSLATIONS, ids=lambda golden: golden.id)
def test_golden_stands_alone(golden: Golden):
    """Nothing of gluonize is imported by what it writes."""
    tree = ast.parse(golden.path.read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in modules} <= {"triton", "torch", *sys.stdlib_module_names}


def test_output_does_not_depend_on_hash_order():
    """The goldens are made by processes that draw a seed; here are two that are known."""
    (golden,) = [g for g in TRANSLATIONS if g.id == "matmul-gfx950"]
    texts = {golden_set.translate(golden, PYTHONHASHSEED=seed)["text"] for seed in ("1", "2")}
    assert len(texts) == 1


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("golden", golden_set.with_options(), ids=lambda golden: golden.id)
def test_golden_with_options_compiles(golden: Golden):
    results = compile_folder(golden.source.parent, golden.target, golden.path, golden.ctas)
    assert results and all(r.get("language") == "gluon" and r["hsaco"] for r in results.values())


@pytest.mark.one_of(2)
@pytest.mark.compile
def test_golden_compiles(fixture: Fixture, compile_target: str):
    results = compile_folder(fixture.folder, compile_target, fixture.golden_file(compile_target))
    assert set(results) == {launch["id"] for launch in fixture.launches()}
    wrong = {i: r for i, r in results.items() if r.get("language") != "gluon" or not r["hsaco"]}
    assert wrong == {}
