"""The client's side of a cluster: what is lost is sent again, what cannot be answered ends the run."""

from __future__ import annotations

import logging
import pickle
from concurrent.futures import CancelledError

import pytest

from gluonize.diagnostics import ClusterLost, Diagnostic, InternalError, TranslationError
from gluonize.product.cluster import pool as pool_module
from gluonize.product.cluster.connection import Connection, Lost, check_address, patience
from gluonize.product.cluster.pool import ClusterPool
from gluonize.product.cluster.sent_job import Answer, Needs
from gluonize.product.cluster.version import version

DIED = (Diagnostic("compiler-abort", "a job killed the compiler with SIGKILL"),)


class Script:
    """A connection whose answers are written down: an Answer, or an exception to raise; the last one again and again."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.jobs = []

    def run(self, payload, what):
        self.jobs.append(pickle.loads(payload))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return pickle.dumps(answer)

    def threads(self):
        return 2

    def close(self):
        pass


@pytest.fixture
def pool(monkeypatch):
    made = []

    def make(*answers) -> ClusterPool:
        made.append(ClusterPool("tcp://nowhere:1", timeout=7.0))
        made[-1]._connection = Script(*answers)
        return made[-1]

    yield make
    for one in made:
        one.kill()


def call(pool, *args, **kwargs):
    return pool.submit("module:function", *args, **kwargs).result(timeout=20)


def test_answers_and_what_was_said_arrive(pool, caplog):
    one = pool(Answer("value", 5, ((logging.WARNING, "mind this"),), "tcp://w"))
    with caplog.at_level(logging.WARNING, "gluonize"):
        assert call(one, 1, what="a job") == 5
    assert "mind this (on tcp://w)" in caplog.text
    (job,) = one._connection.jobs
    assert (job.function, job.args, job.limit, job.what) == ("module:function", (1,), 7.0, "a job")


def test_the_memory_limit_goes_with_the_job(pool, monkeypatch):
    monkeypatch.setenv("GLUONIZE_MEMORY_LIMIT", "2GB")
    one = pool(Answer("value", 5))
    call(one)
    assert one._connection.jobs[0].memory == 2 * 10**9


def test_what_is_lost_is_sent_again_and_told(pool, caplog):
    one = pool(Lost("workers died"), Answer("lost", "its folder went"), Lost("broke"), Answer("value", 5))
    with caplog.at_level(logging.WARNING, "gluonize"):
        assert call(one, what="a job") == 5
    assert caplog.text.count("a job: ") == 3 and caplog.text.count("sent again") == 3


def test_a_worker_that_ended_is_told_with_the_jobs_it_had(caplog):
    """Dask gives them to another worker without a word."""
    one = Connection("tcp://nowhere:1")
    one._under_way = {"k1": "job 1", "k2": "job 2", "k3": "job 3"}
    gone = {"action": "remove-worker", "worker": "tcp://w", "processing-tasks": {"k3", "k1", "of another client"}}
    with caplog.at_level(logging.INFO, "gluonize"):
        for message in (
            gone,
            {"action": "add-worker", "worker": "tcp://v"},
            "of some plugin",
            gone | {"processing-tasks": set()},
        ):
            one._heard((0.0, message))
    assert [record.getMessage() for record in caplog.records] == [
        "job 1: its worker tcp://w ended: sent again",
        "job 3: its worker tcp://w ended: sent again",
        "worker tcp://w ended",
    ]


def test_a_child_that_was_killed_is_tried_again_but_not_for_ever(pool):
    assert call(pool(Answer("killed", DIED), Answer("value", 5))) == 5
    hungry = pool(Answer("killed", DIED))
    with pytest.raises(TranslationError, match="SIGKILL"):
        call(hungry)
    assert len(hungry._connection.jobs) == pool_module.MAX_KILLED


def test_a_job_that_ends_every_worker_ends_the_run(pool):
    one = pool(Lost("workers died"))
    with pytest.raises(ClusterLost, match="cluster-lost"):
        call(one)
    assert len(one._connection.jobs) == pool_module.MAX_LOST + 1


@pytest.mark.parametrize(
    "answer, error",
    [
        (Answer("refused", (Diagnostic("spec-missing", "no"),)), TranslationError),
        (Answer("bug", "Traceback"), InternalError),
        (Answer("version", ("gluonize 0",)), ClusterLost),
        (Answer("needs", Needs(files=frozenset({"/nowhere/x.py"}))), InternalError),
        (ZeroDivisionError(), ZeroDivisionError),
    ],
)
def test_ends_of_a_job(pool, answer, error):
    with pytest.raises(error):
        call(pool(answer))


def test_contents_go_once_unless_they_are_asked_for(pool, tmp_path):
    source = tmp_path / "a.py"
    source.write_text("A = 1\n")
    one = pool(Answer("value", 5))
    call(one, str(source))
    call(one, str(source))
    first, second = one._connection.jobs
    assert len(first.contents) == 1 and not second.contents and first.world == second.world
    one._connection.answers = [Answer("needs", Needs(contents=frozenset(first.contents))), Answer("value", 6)]
    assert call(one, str(source)) == 6
    assert one._connection.jobs[-1].contents == first.contents


def test_a_file_that_cannot_be_sent_as_it_was_read_ends_the_job(pool, tmp_path, monkeypatch):
    """A file whose digest is remembered and whose bytes are others, whatever its date says."""
    source = tmp_path / "a.py"
    source.write_text("A = 1\n")
    monkeypatch.setattr(pool_module, "content", lambda path, digest: None)
    with pytest.raises(InternalError, match="more and more"):
        call(pool(Answer("value", 5)), str(source))


def test_leaving_finishes_and_killing_cancels(pool):
    one = pool(Answer("value", 5))
    futures = [one.submit("module:function", number) for number in range(30)]
    one.close()
    assert [future.result(timeout=0) for future in futures] == [5] * 30
    with pytest.raises(RuntimeError):
        one.submit("module:function")
    two = pool(Lost("gone"))
    two._killed = True
    with pytest.raises(CancelledError):
        call(two)


def test_many_jobs_never_have_more_under_way_than_workers_need(pool):
    one = pool(Answer("value", 5))
    for future in [one.submit("module:function", number) for number in range(300)]:
        future.result(timeout=20)
    assert len(one._threads) <= pool_module.LEAST_IN_FLIGHT


@pytest.mark.parametrize("address", ["", "local", "local:", "local:0", "local:two", "host:8786"])
def test_what_is_no_address(address):
    with pytest.raises(TranslationError, match="cluster-address"):
        check_address(address)


@pytest.mark.parametrize(
    "given, seconds", [("soon", None), ("-1", None), ("nan", None), ("inf", None), ("2.5", 2.5), ("", 120.0)]
)
def test_a_patience_that_is_no_number_of_seconds_is_refused(given: str, seconds: float | None, monkeypatch):
    monkeypatch.setenv("GLUONIZE_CLUSTER_PATIENCE", given)
    if seconds is None:
        with pytest.raises(TranslationError, match="cluster-patience"):
            check_address("local:1")
    else:
        check_address("local:1")
        assert patience() == seconds


def test_versions_tell_code_apart():
    assert len(version()) == 4 and version()[1] and version() == version()
