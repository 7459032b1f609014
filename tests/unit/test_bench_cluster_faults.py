"""What the bench of a cluster with trouble takes for wrong."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("distributed")
sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from bench.cluster_faults import Run, report, wrong  # noqa: E402

ALONE = Run(0, 100.0, 12, {"a.py": "x = 1\n"}, [{"id": "a"}], "")
FAR = replace(ALONE, log="a: its worker tcp://w ended: sent again\nconnected again to tcp://s\n")
WARM = replace(ALONE, seconds=3.0, compiled=0)
MENDED = replace(ALONE, log="cache entry k in file://shared is damaged: it is made anew\n")
FAULTS = [(3.0, "worker 0 killed"), (6.0, "scheduler restarted"), (6.0, "entries of the cache lost or damaged: 2")]
RUNS = {"alone": ALONE, "far": FAR, "warm": WARM, "mended": MENDED, "faults": FAULTS}


def test_nothing_is_wrong_with_what_is_as_it_has_to_be():
    assert wrong(ALONE, FAR, WARM, MENDED, FAULTS) == []
    assert "1 sent again, 1 connected again, 1 damaged" in report(ALONE, FAR, WARM, MENDED, FAULTS)


@pytest.mark.parametrize(
    "runs, found",
    [
        ({"far": replace(FAR, outputs={"a.py": "x = 2\n"})}, "the run with trouble has other outputs"),
        ({"far": replace(FAR, results=[])}, "the run with trouble has other results"),
        ({"far": replace(FAR, status=1)}, "the run with trouble has other results or another status"),
        ({"far": replace(FAR, log="connected again")}, "a worker was killed"),
        ({"far": replace(FAR, log="worker tcp://w ended")}, "the scheduler was restarted"),
        ({"mended": replace(MENDED, log="")}, "entries were damaged"),
        ({"mended": replace(MENDED, status=1)}, "the run with a damaged cache"),
        ({"faults": []}, "there was no trouble"),
        ({"warm": replace(WARM, compiled=1)}, "the second run compiled something"),
        ({"warm": replace(WARM, seconds=5.1)}, "the second run took more than 5%"),
        ({"warm": replace(WARM, results=[])}, "the second run has other outputs"),
        (
            {name: replace(run, outputs={}) for name, run in (("alone", ALONE), ("far", FAR), ("warm", WARM))},
            "no outputs",
        ),
    ],
)
def test_each_thing_that_is_wrong_is_found(runs, found):
    assert any(found in what for what in wrong(**(RUNS | runs)))
