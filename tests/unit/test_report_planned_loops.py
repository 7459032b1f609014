"""The page shows the pipeline that the plan has, for every fixture."""

import html
import re

import pytest

import fixture_set
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.loops.plan.schedule import copy_schedule, held_schedule, refill_schedule, register_schedule
from gluonize.product.report.loops.hazards import events_of, hazards
from gluonize.product.report.loops.planned import replay_of_schedule
from gluonize.product.report.page.page import ReportData, report_page
from gluonize.product.report.page.pipeline import pipeline_section
from gluonize.product.report.review.correspondence import correspond
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest

TRANSLATE = "gluonize.translation:translate_kernel"
LOOPS = "gluonize.product.report.loops.planned:planned_loops"
FIXTURES = fixture_set.fixtures()
TEXT_ONLY = ("could not be followed", "is not drawn")


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(2) as found:
        yield found


def test_every_planned_pipeline_is_drawn(pool):
    """Of some fixtures for one target, in turn."""
    every_pipeline_is_drawn(pool, [(f, ("gfx950", "gfx1250")[i % 2]) for i, f in enumerate(FIXTURES[::12])])


@pytest.mark.slow
def test_every_planned_pipeline_of_a_fixture_is_drawn(pool):
    """Of each fixture for one target, in turn."""
    targets = fixture_set.TARGETS
    every_pipeline_is_drawn(pool, [(f, targets[i % len(targets)]) for i, f in enumerate(FIXTURES)])


def every_pipeline_is_drawn(pool, cases):
    pending = []
    for fixture, target in cases:
        launches = tuple(read_launches(str(fixture.kernel_file.parent / "launches.json")))
        request = TranslateRequest(str(fixture.kernel_file), target, launches=launches)
        jobs = [
            pool.submit(LOOPS, request, None, what=fixture.name),
            pool.submit(TRANSLATE, request, what=fixture.name),
        ]
        pending.append((fixture, target, *jobs))
    drawn = 0
    for fixture, target, future, translation in pending:
        loops = future.result()
        page = pipeline_section(loops)
        assert not any(words in page for words in TEXT_ONLY), fixture.name
        pipelined = [loop for loop in loops if loop.replay]
        drawn += len(pipelined)
        assert bool(pipelined) == ("<svg" in page)
        for card in re.findall(r'<div class="card">.*?</ul>', page, re.DOTALL):
            assert ("not pipelined" in card) != (
                "pipelined " in card or "held in registers" in card or "warp-spec" in card
            )
        assert not any(loop.hazards for loop in loops), fixture.name
        check_page(fixture, target, loops, translation.result())
    assert drawn > len(cases) // 3


def check_page(fixture, target, loops, result):
    """The whole page, with what the translation says of its choices in the notes, says one thing of each loop, and draws the pipelines."""
    source = fixture.kernel_file.read_text()
    remarks = tuple(dict.fromkeys([*(c for o in result.outcomes for c in o.choices), *result.notes]))
    data = ReportData(
        correspond(source, result.text or source), "kernel.py", f"{target}.py", target, loops=loops, remarks=remarks
    )
    page = report_page(data)
    assert all(remark.split(": ")[0] in html.unescape(page) for remark in remarks)
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert not any(words in text for words in TEXT_ONLY), fixture.name
    for line in {loop.line for loop in loops}:
        pipelined = {bool(loop.replay) for loop in loops if loop.line == line}
        said = {not words for words in re.findall(rf"line {line}: (not )?pipelined", text)}
        assert said <= pipelined, (fixture.name, line, said, pipelined)


def test_a_tuned_text_is_read_itself(pool):
    fixture = next(f for f in FIXTURES if f.name == "matmul")
    launches = tuple(read_launches(str(fixture.kernel_file.parent / "launches.json")))
    request = TranslateRequest(str(fixture.kernel_file), "gfx950", launches=launches)
    text = fixture.golden_file("gfx950").read_text()
    assert "NUM_BUFFERS: gl.constexpr = 2" in text
    assert (
        pool.call(LOOPS, request, text.replace("NUM_BUFFERS: gl.constexpr = 2", "NUM_BUFFERS: gl.constexpr = 3"))
        is None
    )
    (loop,) = {loop.line: loop for loop in pool.call(LOOPS, request, text)}.values()
    source = fixture.kernel_file.read_text().splitlines()
    assert source[loop.line - 1].lstrip().startswith(f"for {loop.index} in")
    assert {ring.slots for ring in loop.rings} == {2} and "asynchronous copies" in loop.how


@pytest.mark.parametrize(
    "schedule",
    [copy_schedule(2), copy_schedule(3, 2, False), copy_schedule(3, 1), register_schedule(1), held_schedule(), refill_schedule(2)],
    ids=lambda schedule: f"{schedule.mechanism}-{schedule.buffers}-{schedule.tensor_loads}",
)  # fmt: skip
def test_a_replayed_schedule_has_the_schedule_s_slots(schedule):
    replay = replay_of_schedule(schedule)
    assert replay.ahead == schedule.ahead and len(replay.iterations) == schedule.buffers + 8
    if schedule.mechanism != "held":
        assert [replay.slot_of(tile) for tile in range(5)] == [tile % schedule.buffers for tile in range(5)]
    assert [*replay.events(4)] == [*events_of(schedule, 4)] and not hazards(replay.events(4), 4)
