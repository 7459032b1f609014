"""Jobs that run in a process without a past."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.children import apart
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.spec.launch import read_launches

pytestmark = pytest.mark.usefixtures("cold_children")

REPO = Path(__file__).parents[2]
FIXTURE = REPO / "fixtures" / "vector_add"
LOWER = "gluonize.judge.lower.jobs:lower_file"
# `past` is what the process has done; each job says what it sees and adds to it.
_SCRIPT = """
import os, signal, sys
from gluonize.judge.lower.children.apart import Apart

past, answers = [], os.pipe()

def serve(job):
    if isinstance(job, int):
        os.kill(os.getpid(), job)
    os.write(answers[1], repr((job, past, os.getpid() == first)).encode())
    past.append(job)

first = os.getpid()
server = Apart(serve)
past.append("done meanwhile")
for job in JOBS:
    server.run(job)
    print(os.read(answers[0], 1000).decode())
"""


def run(jobs: list) -> subprocess.CompletedProcess:
    """Jobs of one process, one after another."""
    script = _SCRIPT.replace("JOBS", repr(jobs))
    return subprocess.run([sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, timeout=60)


def test_a_job_sees_nothing_of_others_and_of_what_its_process_did() -> None:
    done = run(["a", "b"])
    assert done.stdout.splitlines() == ["('a', [], False)", "('b', [], False)"], done.stderr


def test_the_process_ends_as_its_job_did() -> None:
    done = run(["a", 27, "b"])  # SIGPROF: the limit of a job
    assert (done.returncode, done.stdout) == (-27, "('a', [], False)\n")


def test_a_job_is_known_behind_what_records_and_sends_it() -> None:
    recorded = ("gluonize.product.project.cache.recorded:run_recorded", (LOWER, ("kernel.py",), {}))
    sent = SimpleNamespace(function=recorded[0], args=recorded[1])
    assert apart.asked(LOWER, ("kernel.py",)) == LOWER
    assert apart.asked(*recorded) == LOWER
    assert apart.asked("gluonize.product.cluster.sandbox:run_in_sandbox", (sent, "folder")) == LOWER
    assert apart.asked("gluonize.judge.verdict:validate_launch", ("kernel.py",)) not in apart.ALONE


def test_a_compile_apart_has_the_limit_of_its_job() -> None:
    spec = read_launches(str(FIXTURE / "launches.json"))[0]
    with WorkerPool() as pool:
        with pytest.raises(TranslationError) as caught:
            pool.call(LOWER, str(FIXTURE / "kernel.py"), spec, "gfx950", timeout=0.01)
        assert caught.value.diagnostics[0].code == "compiler-timeout"
        assert pool.call(LOWER, str(FIXTURE / "kernel.py"), spec, "gfx950").kernel == spec.kernel


def test_a_worker_does_not_compile_itself() -> None:
    spec = read_launches(str(FIXTURE / "launches.json"))[0]
    with WorkerPool() as pool:
        pool.call(LOWER, str(FIXTURE / "kernel.py"), spec, "gfx950")
        read = pool.call("linecache:cache.__contains__", str(FIXTURE / "kernel.py"))
    assert not read, "the worker has loaded the kernel"


def test_children_lie_at_the_same_addresses() -> None:
    with apart.fixed_addresses():
        allowed = int(Path("/proc/thread-self/personality").read_text(), 16) & 0x0040000
    if not allowed:
        pytest.skip("the system does not let a process choose")
    found = set()
    for _ in range(3):
        with WorkerPool() as pool:
            found.add(pool.call("builtins:id", None))
    assert len(found) == 1
    assert not int(Path("/proc/thread-self/personality").read_text(), 16) & 0x0040000, "only children lie there"
