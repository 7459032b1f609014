"""The part of the suite that is run with every release of Triton that gluonize serves: `make test-versions`. At most four minutes."""

from __future__ import annotations

import json
import subprocess
import sys

import golden_set
import pytest
from child_process import ChildFailed

from gluonize.versions import TRIED, release_of, triton_version

pytestmark = pytest.mark.versions
# One target each, so that every family has several, and every way to write a loop.
SAMPLE = (
    "attention_backward-gfx1201 batched_matmul-gfx942 block_matmul-gfx942 chunked_scan-gfx950 cross_entropy-gfx1100 descriptor_matmul-gfx1250 dropout-gfx950 embedding-gfx1100"
    " flash_attention-gfx950 fp8_matmul-gfx1201 int8_matmul-gfx942 layer_norm-gfx1250 matmul-gfx1250 matmul-gfx950 rms_norm-gfx942"
    " rotary_embedding-gfx950 scan-gfx1250 softmax-gfx942 split_k_matmul-gfx950 top_k-gfx942 vector_add-gfx1201"
).split()
GOLDENS = {golden.id: golden for golden in golden_set.translations()}


def test_the_sample_has_every_fixture():
    assert {golden.source.parent.name for golden in map(GOLDENS.get, SAMPLE)} >= {
        golden.source.parent.name for golden in GOLDENS.values() if golden not in golden_set.of_gluon()
    } - {"root_finding"}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_fixture_translates_to_its_golden(name: str):
    golden = GOLDENS[name]
    try:
        found = golden_set.produce(golden)
    except (golden_set.Unexpected, ChildFailed) as error:
        pytest.fail(str(error), pytrace=False)
    assert golden_set.difference(golden, found) == ""


def test_the_doctor_finds_nothing():
    command = [sys.executable, "-m", "gluonize.product.cli", "doctor", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    results = json.loads(done.stdout)["results"]
    assert [check for check in results if not check["works"]] == [] and len(results) > 10 and done.returncode == 0


def test_this_release_is_one_that_is_served():
    assert release_of(triton_version()) in TRIED
