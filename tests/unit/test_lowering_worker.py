"""The pool survives what a compiler can do to its process."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from warm_children import WarmChildren

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.lower.children import worker
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.lower.stderr_log import error_lines
from gluonize.product.project.cache.results import switches

pytestmark = pytest.mark.usefixtures("cold_children")

HERE = __name__


def double(x):
    return 2 * x


def refuse():
    raise TranslationError(Diagnostic("offset-range", "no bound", "a.py", 3, 4, why="w", help="h"))


def fail():
    return {}["missing key"]


def abort():
    os.write(2, b"some IR dump\nLLVM ERROR: Cannot select: intrinsic %llvm.amdgcn.mfma\n")
    os.abort()


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)


def hang():
    os.write(2, b"kernel.py:4:2: error: still thinking\n")
    time.sleep(60)


def work():
    while True:
        pass


def nap():
    time.sleep(1)
    return "done"


def unpicklable():
    return lambda: 0


def chatter():
    print("to standard output")
    os.write(1, b"and to its descriptor\n")
    return os.getpid()


def leave():
    os._exit(7)


def hold(bytes_):
    HELD.append(bytearray(bytes_))
    return os.getpid()


def refused_for_memory():
    try:
        bytearray(1 << 40)
    except MemoryError:
        raise TranslationError(Diagnostic("source-syntax", "what it was doing failed")) from None


def abort_for_memory():
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


HELD = []


@pytest.fixture
def pool():
    with WorkerPool(1) as pool:
        yield pool


def test_results_come_in_order():
    with WorkerPool(2) as pool:
        assert list(pool.map(f"{HERE}:double", [(x,) for x in range(20)])) == [2 * x for x in range(20)]


def test_a_refusal_keeps_its_diagnostics(pool):
    with pytest.raises(TranslationError) as caught:
        pool.call(f"{HERE}:refuse")
    assert caught.value.diagnostics == (Diagnostic("offset-range", "no bound", "a.py", 3, 4, why="w", help="h"),)


def test_another_exception_is_a_bug_with_its_traceback(pool):
    with pytest.raises(InternalError, match="(?s)in fail.*missing key"):
        pool.call(f"{HERE}:fail", what="matmul on gfx950")


def test_an_abort_becomes_a_diagnostic_and_the_next_job_runs(pool):
    with pytest.raises(TranslationError) as caught:
        pool.call(f"{HERE}:abort", what="matmul on gfx950")
    (found,) = caught.value.diagnostics
    assert found.code == "compiler-abort"
    assert found.message == "matmul on gfx950 killed the compiler with SIGABRT"
    assert found.why == "LLVM ERROR: Cannot select: intrinsic %llvm.amdgcn.mfma"
    assert pool.call(f"{HERE}:double", 4) == 8


def test_a_segfault_becomes_a_diagnostic(pool):
    with pytest.raises(TranslationError, match="SIGSEGV"):
        pool.call(f"{HERE}:segfault")


def test_a_time_limit_ends_the_job_only(pool):
    pool.call(f"{HERE}:double", 1)  # the child is up before the clock starts
    started = time.monotonic()
    with pytest.raises(TranslationError) as caught:
        pool.call(f"{HERE}:hang", timeout=0.5)
    assert time.monotonic() - started < 10
    assert caught.value.diagnostics[0].code == "compiler-timeout"
    assert "still thinking" in caught.value.diagnostics[0].why
    assert pool.call(f"{HERE}:double", 4) == 8


def test_the_limit_is_of_cpu_time(pool):
    pool.call(f"{HERE}:double", 1)
    assert pool.call(f"{HERE}:nap", timeout=0.5) == "done"
    with pytest.raises(TranslationError, match="took more than 0.5 s") as caught:
        pool.call(f"{HERE}:work", timeout=0.5)
    assert caught.value.diagnostics[0].code == "compiler-timeout"
    assert pool.call(f"{HERE}:double", 4) == 8


class TestMemoryLimit:
    """A job that asks for more than it may have is refused by its name, and costs no other job anything."""

    @pytest.fixture
    def small(self):
        with WorkerPool(1, memory=300_000_000) as pool:
            yield pool

    @pytest.mark.parametrize("job", ["hold", "refused_for_memory", "abort_for_memory"])
    def test_what_asks_for_too_much_is_refused(self, small, job):
        arguments = (400_000_000,) if job == "hold" else ()
        with pytest.raises(TranslationError) as caught:
            small.call(f"{HERE}:{job}", *arguments, what="compiling k")
        (found,) = caught.value.diagnostics
        assert found.code == "compiler-memory" and found.message == "compiling k needs more memory than 300.0 MB"
        assert small.call(f"{HERE}:double", 4) == 8

    def test_what_other_jobs_left_in_a_child_is_no_reason(self, small):
        first = small.call(f"{HERE}:hold", 200_000_000)
        assert small.call(f"{HERE}:hold", 200_000_000) != first

    def test_a_refusal_for_memory_says_nothing_of_a_source(self, small):
        with pytest.raises(TranslationError, match="compiler-memory"):
            small.call("gluonize.product.project.cache.recorded:run_recorded", f"{HERE}:refused_for_memory", (), {})

    def test_without_a_limit_the_machine_is_the_limit(self, pool):
        with pytest.raises(TranslationError, match="compiler-memory.*|more memory than there is"):
            pool.call(f"{HERE}:hold", 1 << 60)
        # Python's parser raises MemoryError for what is nested too deeply.
        with pytest.raises(TranslationError, match="source-syntax"):
            pool.call(f"{HERE}:refused_for_memory")

    def test_the_limit_is_read_from_the_environment(self, monkeypatch):
        monkeypatch.setenv("GLUONIZE_MEMORY_LIMIT", "1.5GB")
        assert WorkerPool(1).memory == 1_500_000_000 and not any("MEMORY" in name for name, _ in switches())
        monkeypatch.setenv("GLUONIZE_MEMORY_LIMIT", "a lot")
        with pytest.raises(TranslationError, match="memory-limit"):
            WorkerPool(1)


def test_what_a_job_prints_does_not_damage_its_answer(pool):
    assert pool.call(f"{HERE}:chatter") > 0


def test_an_answer_that_cannot_be_pickled_is_a_bug(pool):
    with pytest.raises(InternalError, match="pickle"):
        pool.call(f"{HERE}:unpicklable")


def test_a_child_that_leaves_is_a_bug(pool):
    with pytest.raises(InternalError, match="status 7"):
        pool.call(f"{HERE}:leave")


def test_a_child_is_reused_and_then_replaced():
    with WorkerPool(1, max_jobs=2) as pool:
        first, second, third = (pool.call(f"{HERE}:chatter") for _ in range(3))
    assert first == second != third


def test_what_its_parent_holds_is_not_counted_against_a_child(monkeypatch):
    held = bytearray(os.urandom(1)) * (256 << 20)
    monkeypatch.setattr("gluonize.judge.lower.children.worker.MAX_BYTES", len(held) // 2)
    with WorkerPool(1) as pool:
        first, second = (pool.call(f"{HERE}:chatter") for _ in range(2))
    assert first == second


def test_no_child_outlives_the_pool():
    with WorkerPool(1) as pool:
        child = pool.call(f"{HERE}:chatter")
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_modules_in_the_working_folder_do_not_reach_the_children(tmp_path, monkeypatch):
    for name in ("typing.py", "pickle.py", "triton.py", "translator.py"):
        (tmp_path / name).write_text("raise RuntimeError('shadowed')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    with WorkerPool(1) as pool:
        assert pool.call(f"{HERE}:double", 3) == 6


def test_ctrl_c_kills_the_children(tmp_path):
    note = tmp_path / "child"
    (tmp_path / "jobs.py").write_text(textwrap.dedent(f"""
            import os, time
            def hang():
                with open({str(note)!r} + ".new", "w") as file:
                    file.write(str(os.getpid()))
                os.rename({str(note)!r} + ".new", {str(note)!r})
                time.sleep(60)
            """))
    program = (
        "from gluonize.judge.lower.children.worker import WorkerPool\nwith WorkerPool(1) as p: p.call('jobs:hang')\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 20
    while not note.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    child = int(note.read_text())
    parent.send_signal(signal.SIGINT)
    _, errors = parent.communicate(timeout=10)
    assert b"KeyboardInterrupt" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_warnings_of_python_are_no_reason():
    warning = (
        "/lib/knobs.py:504: UserWarning: FP_FUSION is unset: it will change\n  warn_once(FP_FUSION_DEFAULT_WARNING)\n"
    )
    assert error_lines(warning) == [] and error_lines("stuck here\n" + warning) == ["stuck here"]
    assert error_lines(warning + "x.py:1:2: error: no\n") == ["x.py:1:2: error: no"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are started anew elsewhere")
def test_warm_children_are_started_by_several_threads(monkeypatch):
    """Those of other tests (`warm_children.py`)."""
    children = WarmChildren()
    monkeypatch.setattr(worker, "start_child", children.start_child)
    pools = [WorkerPool() for _ in range(8)]
    pending = [pool.submit(f"{HERE}:double", n) for n, pool in enumerate(pools)]
    assert [future.result(timeout=60) for future in pending] == [2 * n for n in range(8)]
    processes = [pool._workers[0].process for pool in pools]
    for pool in pools:
        pool.close()
    assert len({process.pid for process in processes}) == 8 and {process.wait() for process in processes} == {-9}
    children.close()
