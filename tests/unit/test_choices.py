"""Named choices: what is asked for, over defaults by capability, and what is refused."""

from __future__ import annotations

import pytest
from translation_of import dedent, launch, translate

from gluonize.decide.choices.chosen import Choices, choices_of, parse_choices
from gluonize.product.cli.edge import run
from gluonize.request import TranslateRequest
from gluonize.rules.choices import BY_NAME, CHOICES, Choice, Default
from gluonize.rules.targets import TARGETS


def test_rows_are_complete():
    assert len(BY_NAME) == len(CHOICES)
    for choice in CHOICES:
        assert choice.what and all(d.why for d in choice.defaults) and all(choice.values.values()), choice.name
        for target in TARGETS.values():
            assert choice.default(target).value in choice.values


def test_defaults_by_capability():
    row = Choice(
        "x", "x", {"a": "a", "b": "b"}, (Default("b", "it can", lambda t: t.supports_tdm), Default("a", "it cannot"))
    )
    assert row.default(TARGETS["gfx1250"]).value == "b" and row.default(TARGETS["gfx950"]).value == "a"


@pytest.mark.parametrize(
    "values, default", [({"a": "a"}, ("b",)), ({"a": "a", "b": "b"}, ())], ids=["no value", "none for every target"]
)
def test_a_row_that_contradicts_itself(values, default):
    with pytest.raises((AssertionError, IndexError)):
        Choice("x", "x", values, tuple(Default(value, "why") for value in default))


def test_what_is_asked_for_holds():
    asked = parse_choices(["slot-form=told-apart", "depth=3"])
    assert asked.words() == ("depth=3", "slot-form=told-apart") and asked == choices_of(
        depth="3", slot_form="told-apart"
    )
    assert asked.value("depth", TARGETS["gfx950"]) == "3" and asked.number("depth") == 3
    assert asked.value("stores", TARGETS["gfx950"]) == "direct" and not asked.asks("stores", "copied")
    assert not asked.keeps_loops and choices_of(depth="3").keeps_loops and not choices_of(depth="3").keeps_depth


def test_asking_for_a_default_asks_for_nothing():
    assert choices_of(depth="as-fits", stores="direct") == Choices() and Choices().keeps_depth


@pytest.mark.parametrize(
    "words",
    [
        ["colour=red"],
        ["depth=17"],
        ["depth"],
        ["depth=2", "depth=3"],
    ],
    ids=" ".join,
)
def test_what_there_is_not_is_refused(words):
    with pytest.raises(ValueError):
        parse_choices(words)


def test_a_request_adds_strategy_and_depth():
    request = TranslateRequest(
        "k.py", "gfx950", strategy="ping-pong", num_buffers=3, choices=choices_of(stores="copied")
    )
    assert request.choices_for("k").words() == ("depth=3", "warp-groups=alternating", "stores=copied")


SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr):
        r = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            a = tl.load(a_ptr + r[:, None] * K + k + r[None, :])
            b = tl.load(b_ptr + (k + r)[:, None] * B + r[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + r[:, None] * B + r[None, :], acc)
""")
SPEC = launch("k", {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32"}, {"B": 64}, stages=2)


def test_a_choice_changes_the_kernel(tmp_path):
    text = translate(tmp_path, SOURCE, SPEC, choices=choices_of(depth="4")).text
    assert "NUM_BUFFERS: gl.constexpr = 4" in text


def test_a_wrong_choice_is_bad_usage(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(SOURCE)
    assert run(["translate", "k.py", "-t", "gfx950", "--choose", "depth=99"]) == 2
    assert "--choose depth=99: it is one of as-fits, launch, 1, 2" in " ".join(capsys.readouterr().err.split())
