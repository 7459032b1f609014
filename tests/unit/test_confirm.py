"""Which choices a compile confirms, on made-up figures; one real loop, compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.cycles.prediction import Walked
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.lower.metrics import InstructionMix, KernelMetrics
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.request import LaunchOutcome, TranslateRequest, TranslateResult
from gluonize.rules.targets import TARGETS
from gluonize.search import confirm
from gluonize.search.choose import Tried
from gluonize.search.cost import Cost

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
REQUEST, SPEC = TranslateRequest("k.py", "gfx950"), LaunchSpec("k", "k")
BODY = "\tv_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n" * 8
LOOP = analyze(f".L:\n{BODY}\ts_cbranch_scc1 .L\n\ts_endpgm\n", "gfx950", 4, 160 * 1024)
MIX = InstructionMix(
    insns=9, mma=8, valu=0, salu=1, ds=0, ds_read=0, lds_dma=0, barrier=0, wait=0, widths={}, matrix={}
)


def walked(clocks: float, vgpr: int = 200, spill: int = 0, lds: int = 80 * 1024) -> Walked:
    """A loop that takes `clocks` where its matrix instructions take half of 1000."""
    loop = replace(LOOP.hot, cycles=clocks, alone=clocks, bounds={"matrix": 500.0}, workgroups=1)
    metrics = KernelMetrics(MIX, vgpr, 0, 60, spill, 0, 0, lds, 1, MIX, 2)
    return Walked("k", "gfx950", "gluon", "k", 4, lds, metrics, 0.0, cycles=replace(LOOP, loops=(loop,), outside=0.0))


def found(monkeypatch, figures, launches=(SPEC,), request=REQUEST) -> tuple[confirm.Confirmed | None, list[Choices]]:
    """What is confirmed where choices have the figures `figures(overrides, launch)`, and what was compiled; None: no text of their own."""
    order: list[Choices] = []

    def compiled(request, spec, pool, tries, before, costs_only):
        order.extend(tries)
        made = [(choices, figures(dict(choices.overrides), spec)) for choices in tries]
        return [
            Tried(spec, x, lowered=w, cost=Cost(1.0, 0.5, True)) if w else Tried(spec, x, same_as=Choices())
            for x, w in made
        ]

    monkeypatch.setattr(confirm, "try_candidates", compiled)
    return confirm.confirmed(request, launches, None), order


def test_what_is_better_is_kept_and_built_on(monkeypatch):
    def figures(given: dict, spec: LaunchSpec) -> Walked:
        return walked(1000 - 200 * (given.get("depth") == "3") - 100 * (given.get("scheduler") == "max-ilp"))

    made, order = found(monkeypatch, figures)
    assert (
        made is not None
        and made.choices == choices_of(depth="3", scheduler="max-ilp")
        and made.ratio == pytest.approx(0.7)
    )
    assert "0.70" in made.line and order[0] == Choices() and len(order) == len(set(order))
    assert made.choices in order


@pytest.mark.parametrize(
    "better",
    [
        walked(970),  # the model tells loops apart that are further from each other
        walked(930, spill=9),
        None,
    ],
    ids=["too little", "spills", "the same text"],
)
def test_what_is_not_clearly_better_is_not_taken(monkeypatch, better: Walked | None):
    made, order = found(monkeypatch, lambda given, spec: better if given else walked(1000))
    assert made is None and len(order) > 3


def test_spills_have_to_be_worth_it(monkeypatch):
    made, _ = found(monkeypatch, lambda given, spec: walked(500, spill=9) if "depth" in given else walked(1000))
    assert made is not None and "depth" in dict(made.choices.overrides)


def test_no_launch_of_the_kernel_becomes_slower(monkeypatch):
    other = LaunchSpec("other", "k")

    def figures(given: dict, spec: LaunchSpec) -> Walked:
        return walked(1000 if not given else 300 if spec.id == "k" else 1100)

    assert found(monkeypatch, figures, (SPEC, other))[0] is None
    assert found(monkeypatch, lambda given, spec: figures(given, SPEC), (SPEC, other))[0] is not None


def test_compiles_are_bounded_for_all_launches_together(monkeypatch):
    launches = [LaunchSpec(str(n), "k") for n in range(5)]
    _, order = found(monkeypatch, lambda given, spec: walked(1000), launches)
    assert len(order) == confirm.MOST_COMPILES // 5 * 5
    assert not found(monkeypatch, lambda given, spec: walked(1000), launches * 5)[1]


@pytest.mark.parametrize("registers, waves", [(256, None), (264, "2"), (320, "2"), (321, None), (136, "4"), (129, "4")])
def test_one_more_wave_where_few_registers_are_too_many(registers: int, waves: str | None):
    row = TARGETS["gfx950"]
    made = [
        c
        for p in confirm.PROPOSALS
        for c in p.of(row, [walked(1000, registers, lds=0)])
        if dict(c.overrides).get("waves-per-eu")
    ]
    assert made == ([choices_of(waves_per_eu=waves)] if waves else [])


def test_what_leaves_no_unit_idle_is_left_alone(monkeypatch):
    """But for what no unit is busy with: a second wave, and copies past the end."""
    _, order = found(monkeypatch, lambda given, spec: walked(510))
    assert {name for x in order for name, _ in x.overrides} == {"copies-past-end"}


def translated(asked: list[TranslateRequest], multiplies: bool = True):
    def made(request: TranslateRequest) -> TranslateResult:
        asked.append(request)
        return TranslateResult("translated", "text", (LaunchOutcome(SPEC, "translated", multiplies=multiplies),))

    return made


def test_a_translation_has_what_was_confirmed_and_says_so(monkeypatch):
    better, asked = confirm.Confirmed("k", choices_of(depth="4"), 0.5), []
    monkeypatch.setattr(confirm, "confirmed", lambda request, launches, pool: better)
    result = confirm.with_confirmed(REQUEST, None, translated(asked))
    assert result.chosen == (("k", better.choices),) == asked[-1].chosen and result.outcomes[0].choices == (
        better.line,
    )


@pytest.mark.parametrize(
    "request_, multiplies",
    [
        (REQUEST, False),
        (replace(REQUEST, chosen=(("k", choices_of(depth="3")),)), True),
        (replace(REQUEST, choices=choices_of(depth="3")), True),
        (replace(REQUEST, general=True), True),
        (replace(REQUEST, fallback="general"), True),
        (replace(REQUEST, strategy="ping-pong"), True),
        (replace(REQUEST, optimize="rules"), True),
    ],
    ids=["no products", "chosen before", "asked for", "for all sizes", "a fallback", "a strategy", "rules alone"],
)
def test_where_nothing_is_tried(monkeypatch, request_: TranslateRequest, multiplies: bool):
    asked: list[TranslateRequest] = []
    monkeypatch.setattr(confirm, "confirmed", lambda *given: pytest.fail("nothing is to be compiled"))
    result = confirm.with_confirmed(request_, None, translated(asked, multiplies))
    assert asked == [request_] and not result.chosen


@pytest.mark.slow
@pytest.mark.parametrize("target, head, fenced", [("gfx942", 128, True), ("gfx950", 128, False)])
def test_stores_are_fenced_where_a_second_wave_fits_then(target: str, head: int, fenced: bool):
    """Of attention whose tiles go through registers; on gfx950 they do not."""
    source = FIXTURES / "flash_attention"
    given = next(x for x in read_launches(str(source / "launches.json")) if not x.constexprs["CAUSAL"])
    spec = replace(given, constexprs={**given.constexprs, "HEAD_DIM": head}, values={})
    request = TranslateRequest(str(source / "kernel.py"), target, launches=(spec,))
    with WorkerPool(1, timeout=300.0) as pool:
        made = confirm.confirmed(request, [spec], pool)
    assert (made is not None and made.choices.asks("tile-stores", "fenced")) == fenced
