"""Options and marks of the test suite."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import gc
import logging
import os
import sys
import tempfile

import pytest

# Several hundred processes import the package: they do it from bytecode, as a user's do, also where the environment would have none
# written. Compiling 500 modules anew takes each of them as long again as all else that they do before their first job.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# The warning that Triton prints while this is unset would fill the captured output; 1 is the default of Triton 3.9.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
# As in the workers: numpy's threads would only wait for those of the other tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Results of earlier runs of gluonize must not make a test pass; a test of the cache uses a folder of its own.
_CACHE = tempfile.TemporaryDirectory(prefix="gluonize-tests-")
os.environ["GLUONIZE_CACHE_DIR"] = _CACHE.name

import fixture_set  # noqa: E402  (imports numpy)
import missing_tools  # noqa: E402
from warm_children import WarmChildren  # noqa: E402

from gluonize.judge.lower.children import worker  # noqa: E402
from gluonize.judge.lower.cache_folder import use_cache_folder  # noqa: E402
from gluonize.judge.lower.children.worker_process import ALLOCATIONS_BETWEEN_COLLECTIONS  # noqa: E402

COLD = worker.start_child
gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)  # as in the workers
use_cache_folder()  # as whatever compiles first would do, in the middle of some test


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-targets", action="store_true", help="compile fixtures for every target, not for one each")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "compile: compiles kernels to machine code (about a second each)")
    config.addinivalue_line(
        "markers", "versions: is run with every release of Triton that is served; `make test-versions`"
    )
    config.addinivalue_line("markers", "slow: runs commands from start to end, or many kernels; `make test-slow`")
    config.addinivalue_line(
        "markers", "one_of(n): one of n of its rows is run each time, the others with the slow tests"
    )


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a table whose rows take the same path one of several is quick: a fault in the path is seen at once, one of a row a little later."""
    rows: collections.Counter[str] = collections.Counter()
    for item in items:
        if mark := item.get_closest_marker("one_of"):
            table = item.nodeid.partition("[")[0]
            if rows[table] % mark.args[0]:
                item.add_marker(pytest.mark.slow)
            rows[table] += 1


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of tests and all modules stay to the end: no collection of garbage goes through them."""
    global _held
    gc.collect()
    gc.freeze()
    _held = _resident() if sys.platform.startswith("linux") else 0


def pytest_unconfigure(config: pytest.Config) -> None:
    gc.freeze()  # what is left ends with the process: pytest would go through all of it five times


_held = 0  # bytes that this process had when it last gave some back
ENOUGH = 256 * 2**20


@pytest.fixture(scope="module", autouse=True)
def freed_memory():
    """What modules leave behind is given back: a process of 2 GB takes a tenth of a second to fork, and tests fork hundreds of times."""
    yield
    global _held
    if sys.platform.startswith("linux") and _resident() > _held + ENOUGH:
        gc.collect()
        gc.freeze()  # what stays is not looked through again
        with contextlib.suppress(AttributeError):  # only glibc has this, and only it keeps what was freed
            ctypes.CDLL(None).malloc_trim(0)
        _held = _resident()


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.fixture(autouse=True)
def log_of_one_test():
    """What a command with `-v` logs to is closed with its test."""
    yield
    log = logging.getLogger("gluonize")
    log.handlers.clear()
    log.setLevel(logging.NOTSET)
    log.propagate = True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`fixture, compile_target`: each fixture with one target, in turn, or with --all-targets every fixture with each."""
    if "compile_target" not in metafunc.fixturenames:
        return
    targets, every = fixture_set.TARGETS, metafunc.config.getoption("--all-targets")
    fixtures = list(enumerate(fixture_set.fixtures()))
    pairs = [
        (fixture, target) for i, fixture in fixtures for target in (targets if every else [targets[i % len(targets)]])
    ]
    metafunc.parametrize("fixture, compile_target", pairs, ids=[f"{f.name}-{target}" for f, target in pairs])


def pytest_terminal_summary(terminalreporter) -> None:
    """What would bring the tools for which tests were skipped, in one line at the end."""
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    if said := missing_tools.line(reasons):
        terminalreporter.write_line(said, yellow=True)


@pytest.fixture(autouse=True)
def same_environment():
    """A command that runs in this process may set variables for its own run: the next test starts without them."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(scope="session", autouse=True)
def warm_children():
    """Pools fork their children from a process that has imported the compiler (`warm_children.py`)."""
    if not sys.platform.startswith("linux"):
        yield
        return
    children = WarmChildren()
    worker.start_child = children.start_child
    yield
    worker.start_child = COLD
    children.close()


@pytest.fixture
def cold_children(monkeypatch):
    """Children are started as for a user."""
    monkeypatch.setattr(worker, "start_child", COLD)


@pytest.fixture(scope="session")
def s3_server():
    """The address of an S3 server on this machine; needs `pip install '.[s3-tests]'`."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def bucket(s3_server, monkeypatch):
    """The address of a bucket, which the environment says how to reach."""
    import boto3

    for name, value in {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "one",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3").create_bucket(Bucket="kernels")
    return "s3://kernels"
