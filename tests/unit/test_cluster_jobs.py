"""A job from another machine: it sees what it was sent, asks for the rest, and answers with the paths of who asked."""

from __future__ import annotations

import functools
import os
import pickle
from dataclasses import replace
from types import SimpleNamespace

import pytest

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.cluster import sandbox
from gluonize.product.cluster.sandbox import run_in_sandbox
from gluonize.product.cluster.sent_job import Answer, Job, Needs
from gluonize.product.cluster.version import version
from gluonize.product.cluster.world import Knowledge, content, environment_of
from gluonize.read.files import modules, package as package_files
from gluonize.read.files.modules import find_module, full_search_path, module_of_path, parse_file
from gluonize.request import TranslateRequest

HERE = __name__


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The folder of the machine that asks; the worker's is another."""
    folder = tmp_path / "asks"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg/__init__.py").write_text("")
    (folder / "pkg/a.py").write_text("import os\nfrom pkg.b import B\nA = os.environ.get('FLEET_A', '')\n")
    (folder / "pkg/b.py").write_text("import pkg.c\nB = 1\n")
    (folder / "pkg/c.py").write_text("C = 1\n")
    monkeypatch.chdir(folder)
    return folder


def sent(function, *args, contents=None, world=None, environment=None) -> Job:
    """A job as the pool makes it, with every file."""
    world = world or Knowledge().world(args, {})
    contents = {digest: content(path, digest) for path, digest in world.files} if contents is None else contents
    asked = environment_of(world) if environment is None else environment
    return Job(f"{HERE}:{function.__name__}", args, {}, 5.0, "a job", world, (), asked, (), version(), contents)


def until_answered(function, *args, base) -> tuple[Answer, int]:
    """The answer of a job that is sent again with what it asks for; and how many rounds it took."""
    knowledge, rounds = Knowledge(), 0
    world = knowledge.world(args, {})
    while rounds < 20:
        rounds += 1
        answer = run_in_sandbox(sent(function, *args, world=world), str(base))
        if answer.kind != "needs":
            return answer, rounds
        world = knowledge.learn(world, answer.payload)
    raise AssertionError("asks for ever")


def reads_all(path: str) -> dict:
    """What a translation asks of the file system, in short."""
    file, root = module_of_path(path)
    folders = (root, *full_search_path(()))
    found = {name: find_module(name, folders) for name in ("pkg.b", "pkg.c", "pkg.missing")}
    texts = {name: parse_file(module.path).text for name, module in found.items() if module}
    return {
        "name": file.name,
        "texts": texts,
        "paths": [module and module.path for module in found.values()],
        "environment": (os.environ.get("FLEET_A"), os.environ.get("FLEET_OTHER")),
        "cwd": os.getcwd(),
        "relative": parse_file("pkg/a.py").path,
        "text": f"{path}:1: a place in a message",
    }


def test_a_job_reads_what_is_where_it_was_asked_for(project, tmp_path, monkeypatch):
    monkeypatch.setenv("FLEET_A", "asked")
    monkeypatch.setenv("FLEET_OTHER", "of this machine")
    path = str(project / "pkg/a.py")
    expected = reads_all(path) | {"environment": ("asked", None)}
    before = os.getcwd(), dict(os.environ), modules._stat, modules._find_in, package_files._files_below
    answer, rounds = until_answered(reads_all, path, base=tmp_path / "worker")
    assert answer.kind == "value" and answer.payload == expected
    assert before == (
        os.getcwd(),
        dict(os.environ),
        modules._stat,
        modules._find_in,
        package_files._files_below,
    )
    # The imports of a file are sent with it, so a chain of them is no round each.
    assert 1 < rounds <= 4


def test_jobs_of_one_family_know_what_the_first_asked_for(project, tmp_path):
    knowledge, path = Knowledge(), str(project / "pkg/a.py")
    world = knowledge.world((path,), {})
    for _ in range(9):
        answer = run_in_sandbox(sent(reads_all, path, world=world), str(tmp_path / "worker"))
        if answer.kind == "value":
            break
        world = knowledge.learn(world, answer.payload)
    again = knowledge.world((path, "another argument"), {})
    assert run_in_sandbox(sent(reads_all, path, world=again), str(tmp_path / "worker")).kind == "value"


def asks(path: str) -> str | None:
    return os.environ.get("OMP_FLEET")


def test_a_variable_that_is_not_set_here_is_not_that_of_the_worker(project, tmp_path, monkeypatch):
    path = project / "pkg/a.py"
    path.write_text("import os\nA = os.environ.get('OMP_FLEET', '')\n")
    job = sent(asks, str(path))
    monkeypatch.setenv("OMP_FLEET", "of the worker")
    assert run_in_sandbox(job, str(tmp_path / "worker")).payload is None
    assert os.environ["OMP_FLEET"] == "of the worker"
    assert run_in_sandbox(replace(job, environment=(("OMP_FLEET", "1"),)), str(tmp_path / "worker")).payload == "1"


def reaches(path: str) -> tuple[str | None, ...]:
    return os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("FLEET_A")


def test_a_worker_reaches_the_shared_cache_with_credentials_of_its_own(project, tmp_path, monkeypatch):
    """They are not sent, and no source sees them that asks for them."""
    path = project / "pkg/a.py"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the worker")
    monkeypatch.setenv("FLEET_A", "of the worker")
    job = sent(reaches, str(path), environment=())
    assert "of the worker" not in repr(job)
    assert run_in_sandbox(job, str(tmp_path / "worker")).payload == ("of the worker", None)
    asks = replace(job, environment=(("AWS_ACCESS_KEY_ID", None),))
    assert run_in_sandbox(asks, str(tmp_path / "worker")).payload == (None, None)


def test_a_worker_does_not_watch_itself_while_its_children_work(monkeypatch):
    distributed = pytest.importorskip("distributed")
    from gluonize.product.cluster import worker_side

    stopped = []
    callbacks = {
        name: SimpleNamespace(stop=functools.partial(stopped.append, name)) for name in ("heartbeat", "tick", "profile")
    }
    worker = SimpleNamespace(periodic_callbacks=callbacks, loop=SimpleNamespace(add_callback=lambda call: call()))
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    worker_side._leave_time_to_children.cache_clear()
    try:
        for _ in range(2):
            worker_side._leave_time_to_children()
    finally:
        worker_side._leave_time_to_children.cache_clear()
    assert sorted(stopped) == ["profile", "tick"]


def test_a_change_here_is_seen_there(project, tmp_path):
    path = str(project / "pkg/a.py")
    first, _ = until_answered(reads_all, path, base=tmp_path / "worker")
    (project / "pkg/c.py").write_text("C = 2\n")
    (project / "pkg/missing.py").write_text("")
    second, _ = until_answered(reads_all, path, base=tmp_path / "worker")
    assert first.payload["texts"]["pkg.c"] == "C = 1\n" and second.payload["texts"]["pkg.c"] == "C = 2\n"
    assert first.payload["paths"][2] is None and second.payload["paths"][2] == str(project / "pkg/missing.py")


def refuses(path: str) -> None:
    raise TranslationError(Diagnostic("spec-missing", f"in {path}", path, 1))


def fails(path: str) -> None:
    raise ValueError(f"about {path}")


def test_refusals_and_bugs_name_the_paths_of_who_asked(project, tmp_path):
    path = str(project / "pkg/a.py")
    refused, _ = until_answered(refuses, path, base=tmp_path / "worker")
    assert refused.kind == "refused" and refused.payload == (Diagnostic("spec-missing", f"in {path}", path, 1),)
    bug, _ = until_answered(fails, path, base=tmp_path / "worker")
    assert bug.kind == "bug" and f"about {path}" in bug.payload and str(tmp_path / "worker") not in bug.payload


def swallows(path: str) -> str:
    try:
        find_module("pkg.b", ("/nowhere",))
    except BaseException:
        return "a wrong answer"
    return "right"


def test_a_question_that_something_swallowed_is_still_asked(project, tmp_path):
    answer, rounds = until_answered(swallows, str(project / "pkg/a.py"), base=tmp_path / "worker")
    assert (answer.payload, rounds) == ("right", 2)


def test_files_that_a_worker_lacks_are_asked_for_and_kept(project, tmp_path):
    path, base = str(project / "pkg/a.py"), str(tmp_path / "worker")
    job = sent(parses, path, contents={})
    answer = run_in_sandbox(job, base)
    digests = frozenset(digest for _, digest in job.world.files)
    assert answer == Answer("needs", Needs(contents=digests))
    assert run_in_sandbox(sent(parses, path), base).kind == "value"
    assert run_in_sandbox(job, base).kind == "value"


def parses(path: str) -> str:
    return parse_file(path).text


def loses(path: str) -> None:
    import shutil

    shutil.rmtree(os.getcwd().split("/trees-")[0])
    parse_file(path)


def test_a_folder_that_goes_away_is_no_answer(project, tmp_path):
    path = str(project / "pkg/a.py")
    assert run_in_sandbox(sent(loses, path), str(tmp_path / "worker")).kind == "lost"
    (tmp_path / "file").write_text("")
    assert run_in_sandbox(sent(parses, path), str(tmp_path / "file")).kind == "lost"


def package(path: str) -> tuple[str, ...]:
    return package_files._package_files(path)


def test_the_files_of_a_package_are_those_there(project, tmp_path):
    path = str(project / "pkg/a.py")
    answer, _ = until_answered(package, path, base=tmp_path / "worker")
    assert answer.payload == tuple(str(project / "pkg" / name) for name in ("__init__.py", "a.py", "b.py", "c.py"))


def test_rules_and_environment_go_with_a_request(project, monkeypatch):
    (project / "rules").mkdir()
    (project / "rules/more.toml").write_text("")
    request = TranslateRequest("pkg/a.py", "gfx950", rules=("rules",))
    monkeypatch.setenv("FLEET_A", "1")
    monkeypatch.setenv("FLEET_B", "2")
    world = Knowledge().world((request,), {})
    names = {os.path.relpath(path) for path, _ in world.files}
    assert {"rules/more.toml", "pkg/a.py", "pkg/__init__.py"} <= names
    assert environment_of(world) == (("FLEET_A", "1"),)


def test_a_file_that_changed_is_not_sent_as_the_old_one(project):
    path = project / "pkg/c.py"
    ((_, digest),) = [item for item in Knowledge().world((str(path),), {}).files if item[0] == str(path)]
    assert content(str(path), digest)
    path.write_text("C = 3\n")
    assert content(str(path), digest) is None


def test_trees_of_children_that_ended_go(project, tmp_path):
    base = tmp_path / "worker"
    (base / "trees-999999999/x").mkdir(parents=True)
    run_in_sandbox(sent(parses, str(project / "pkg/a.py")), str(base))
    assert sorted(p.name for p in base.iterdir()) == ["contents", f"trees-{os.getpid()}"]


def test_no_more_trees_than_the_limit(project, tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "MAX_TREES", 3)
    for number in range(8):
        (project / f"{number}.py").write_text("")
        assert run_in_sandbox(sent(parses, str(project / f"{number}.py")), str(tmp_path / "worker")).kind == "value"
    assert len(os.listdir(tmp_path / "worker" / f"trees-{os.getpid()}")) <= 4


class TestWorker:
    """`remote.py`, without Dask around it."""

    @pytest.fixture(autouse=True)
    def _pools(self):
        pytest.importorskip("distributed")
        yield
        from gluonize.product.cluster import worker_side

        for pool in worker_side._pools.values():
            pool.kill()
        worker_side._pools.clear()

    def answer(self, job: Job) -> Answer:
        from gluonize.product.cluster.worker_side import run_job

        return pickle.loads(run_job(pickle.dumps(job)))

    def test_each_set_of_switches_has_children_of_its_own(self, project, monkeypatch):
        for name in [name for name in os.environ if name.startswith(("TRITON_", "LLVM_", "GLUONIZE_"))]:
            monkeypatch.delenv(name)
        path = str(project / "pkg/a.py")
        job = sent(parses, path)
        job = replace(job, function="gluonize.product.cluster.small_job:where", args=())
        plain, again, other = (
            self.answer(replace(job, switches=switches)).payload for switches in ((), (), (("LLVM_SOMETHING", "1"),))
        )
        assert plain == again and plain[0] != other[0]
        assert (plain[1], other[1]) == ({}, {"LLVM_SOMETHING": "1"})

    def test_another_version_does_not_work(self, project):
        answer = self.answer(replace(sent(parses, str(project / "pkg/a.py")), version=("gluonize 0",)))
        assert (answer.kind, answer.payload) == ("version", version())

    @pytest.mark.parametrize("signal, kind", [("SIGKILL", "killed"), ("SIGABRT", "refused")])
    def test_a_child_that_dies_costs_its_job(self, project, signal, kind):
        job = replace(sent(parses, str(project / "pkg/a.py")), function="gluonize.product.cluster.small_job:die")
        answer = self.answer(replace(job, args=(signal,)))
        assert (
            answer.kind == kind and answer.payload[0].code == "compiler-abort" and signal in answer.payload[0].message
        )
        assert self.answer(sent(parses, str(project / "pkg/a.py"))).kind in ("value", "bug")

    def test_a_memory_limit_holds(self, project):
        path = str(project / "pkg/a.py")
        job = replace(sent(parses, path), function="gluonize.product.cluster.small_job:hold", memory=300_000_000)
        answer = self.answer(replace(job, args=(400_000_000,)))
        assert answer.kind == "refused" and answer.payload[0].code == "compiler-memory"
        assert self.answer(replace(job, args=(4,))).payload == 4
        assert self.answer(replace(job, args=(400_000_000,), memory=0)).payload == 400_000_000

    def test_a_time_limit_holds(self, project):
        job = replace(
            sent(parses, str(project / "pkg/a.py")), function="gluonize.product.cluster.small_job:spin", limit=0.3
        )
        answer = self.answer(replace(job, args=(str(project / "pkg/a.py"), 30.0, 1)))
        assert answer.kind == "refused" and answer.payload[0].code == "compiler-timeout"
