"""General kernels made from a launch with some flags, for others too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from translation_of import TARGET, compiled, launch, translate
from gluonize.diagnostics import TranslationError
from gluonize.general.launches.flags import launches_of_other_flags
from gluonize.general.launches.trials import Trials
from gluonize.judge.verdict import validate_launch
from gluonize.read.kernels.load import load_for_launch
from gluonize.read.spec.launch import LaunchSpec

ACT = """import triton
import triton.language as tl


@triton.jit
def act(x_ptr, bias_ptr, y_ptr, n, RELU: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if HAS_BIAS:
        x += tl.load(bias_ptr + i, mask=i < n)
    if RELU:
        x = tl.maximum(x, 0.0)
    else:
        x = tl.exp(x)
    tl.store(y_ptr + i, x, mask=i < n)
"""
NOT_NONE = ACT.replace("    if HAS_BIAS:", "    if bias_ptr is not None:")
HALVES = ACT.replace(
    "        x = tl.exp(x)",
    "        x = tl.sum(tl.reshape(x, (BLOCK // 2, 2)), axis=1)\n        i = tl.arange(0, BLOCK // 2)",
)
WITHOUT = {"x_ptr": "*fp32", "bias_ptr": "constexpr", "y_ptr": "*fp32", "n": "i32"}
WITH = WITHOUT | {"bias_ptr": "*fp32"}


def act(signature=None, block: int = 1024, **flags: bool) -> LaunchSpec:
    signature = signature or WITHOUT
    none = {} if signature["bias_ptr"].startswith("*") else {"bias_ptr": None}
    values = {"RELU": True, "HAS_BIAS": bool(not none)} | flags
    return launch("act", signature, {**none, **values, "BLOCK": block}, id="act", warps=4)


def others(folder, source: str, spec: LaunchSpec) -> list[list[str]]:
    (folder / "source.py").write_text(source)
    spec = replace(spec, source=str(folder / "source.py"))
    found = launches_of_other_flags(spec, load_for_launch(spec).fn)
    assert all(not other.values for every in found for other in every)
    return [[other.id.removeprefix("act with ") for other in every] for every in found]


def note_of(result) -> str:
    (note,) = [note for note in result.notes if "holds for" in note]
    return note


def test_flags_are_tried_the_other_way_and_all_at_once(tmp_path):
    assert others(tmp_path, ACT, act()) == [["RELU=False"], ["HAS_BIAS=True"], ["RELU=False, HAS_BIAS=True"]]


def test_a_flag_may_need_the_pointers_that_it_is_about(tmp_path):
    assert others(tmp_path, NOT_NONE, act()) == [
        ["RELU=False", "bias_ptr *fp32, RELU=False"],
        ["HAS_BIAS=True", "bias_ptr *fp32, HAS_BIAS=True"],
        ["bias_ptr *fp32"],
        ["RELU=False, HAS_BIAS=True", "bias_ptr *fp32, RELU=False, HAS_BIAS=True"],
    ]
    assert ["bias_ptr=None"] in others(tmp_path, NOT_NONE, act(WITH))


@pytest.mark.compile
@pytest.mark.slow
def test_both_sides_are_in_one_kernel(tmp_path):
    result = translate(tmp_path, NOT_NONE, act(), target=TARGET, general=True)
    assert "in no translated launch" not in result.text and result.text.count("def act(") == 1
    assert "RELU=False" in note_of(result) and "#   and RELU=False; " in result.text
    assert "act with bias_ptr *fp32" in [outcome.spec.id for outcome in result.outcomes]
    (tmp_path / "output.py").write_text(result.text)
    for spec in (act(WITH, RELU=False), act(RELU=False, block=256)):
        answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, TARGET)
        assert answer["status"] == "validated", answer


@pytest.mark.slow
def test_a_side_with_other_layouts_stays_refused(tmp_path):
    result = translate(tmp_path, HALVES, act(), target=TARGET, general=True)
    assert "RELU=False" not in note_of(result)
    with pytest.raises(TranslationError, match="in no translated launch"):
        compiled(tmp_path, result.text, act(RELU=False))


@pytest.mark.slow
def test_a_side_with_another_text_somewhere_stays_refused(tmp_path, monkeypatch):
    """Planted: at some sizes the launch with the other flag has another text."""
    real = Trials.at

    def with_another_text(trials, i, point):
        if not trials.given[i].spec.constexprs["RELU"] and point[-1] == 16:
            trials.found[i, point] = None
        return real(trials, i, point)

    monkeypatch.setattr(Trials, "at", with_another_text)
    result = translate(tmp_path, NOT_NONE, act(), target=TARGET, general=True)
    assert "RELU=False" not in note_of(result) and "in no translated launch" in result.text


@pytest.mark.slow
def test_a_flag_asks_nothing_more_of_the_launches_that_were_given(tmp_path, monkeypatch):
    """Planted: all that is checked before a launch was unknown before."""
    from gluonize.general import general_kernels

    monkeypatch.setattr(general_kernels, "_asks_no_more", lambda *_: False)
    assert "as well" not in note_of(translate(tmp_path, NOT_NONE, act(), target=TARGET, general=True))


def test_what_is_asked_of_arguments_that_are_none_does_not_count():
    from types import SimpleNamespace

    from gluonize.facts.obligations import Obligation
    from gluonize.general.general_kernels import _asks_no_more

    def resting_on(*names: str):
        every = {Obligation(0, name, "storage", "offsets", "launch", (name,)) for name in names}
        return SimpleNamespace(record=SimpleNamespace(obligations=every))

    assert _asks_no_more(resting_on("x_ptr", "bias_ptr"), resting_on("x_ptr"), act())
    assert not _asks_no_more(resting_on("x_ptr", "y_ptr"), resting_on("x_ptr"), act())
