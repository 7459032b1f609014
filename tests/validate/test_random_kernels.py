"""Random kernels: Triton's own lowering, and ours, compute what the source does, on every target.

GLUONIZE_EXAMPLES sets how many kernels are tried per test (default 15); a failing one is printed whole. `random_run.py` runs thousands and
lists all that fail.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_kernels import RandomKernel, kernels

from translator.diagnostics import TranslationError
from translator.lowering.worker import WorkerPool
from translator.request import TranslateRequest
from translator.validate.run import validate_pair
from translator.validate.stages import source_stage, translated_stage

EXAMPLES = int(os.environ.get("GLUONIZE_EXAMPLES", "15"))
TARGETS = ("gfx942", "gfx950", "gfx1250", "gfx1100", "gfx1201")
tried = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="GLUONIZE_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as started:
        yield started


@tried
@given(case=kernels(), target=st.sampled_from(TARGETS))
def test_tritons_lowering_of_a_random_kernel_validates(tmp_path, case: RandomKernel, target: str):
    file = tmp_path / "kernel.py"
    file.write_text(case.text)
    left, right = source_stage(str(file), case.spec, target), translated_stage(str(file), case.spec, target)
    result = validate_pair(left.text, right.text, case.spec, source_names=left.names, translated_names=right.names)
    assert result.status == "validated", f"{target}: {result.reason}\n{case.text}\n{case.spec}"


@tried
@given(case=kernels(), target=st.sampled_from(TARGETS))
def test_translation_of_a_random_kernel_validates(tmp_path, pool, case: RandomKernel, target: str):
    source, out = tmp_path / "kernel.py", tmp_path / "out.py"
    source.write_text(case.text)
    request = TranslateRequest(str(source), target, launches=(case.spec,))
    try:
        translated = pool.call("translator.translation:translate_kernel", request)
    except TranslationError as error:
        raise AssertionError(f"{target}: {error}\n{case.text}\n{case.spec}") from None
    assert (
        translated.status == "translated"
    ), f"{target}: {translated.diagnostics} {translated.outcomes}\n{case.text}\n{case.spec}"
    out.write_text(translated.text)
    found = pool.call("translator.validate:validate_launch", str(source), str(out), case.spec, target)
    assert found["status"] == "validated", f"{target}: {found['reason']}\n{case.text}\n{translated.text}\n{case.spec}"
