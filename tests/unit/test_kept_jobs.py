"""Jobs whose answers are kept: by content, for as long as what they read is the same."""

from __future__ import annotations

import ast
import json
import pickle
import tempfile
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import fixture_set

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.product.project.cache import kept_jobs
from gluonize.product.project.cache.kept_jobs import KeptJobs
from gluonize.product.project.cache.mapped import mapped
from gluonize.product.project.cache.places import Places
from gluonize.product.project.cache.plain_pickle import load_plain
from gluonize.product.project.cache.recorded import Reads, run_recorded
from gluonize.product.project.cache.results import ContentCache, content_key
from gluonize.read.files.environment import ALL, names_asked
from gluonize.read.files.modules import parse_file
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

LOWER = "gluonize.judge.lower.jobs:lower_file"


class Inline:
    """Runs jobs at once, in this process; counts them."""

    jobs, timeout = 1, 1.0

    def __init__(self):
        self.ran: list[str] = []

    def submit(self, function, /, *args, timeout=None, what="", **kwargs):
        future: Future = Future()
        self.ran.append(what)
        try:
            future.set_result(run_recorded(*args) if function == kept_jobs.RECORDED else function)
        except InternalError as error:
            future.set_exception(error)
        return future


def answer(path, *rest, inputs=None):
    """A pure function that reads one file."""
    text = parse_file(path).text
    if "refuse" in text:
        raise TranslationError(Diagnostic("spec-missing", text))
    if "bug" in text:
        raise InternalError(text)
    return text, path if "path" in text else ""


@pytest.fixture
def pool(tmp_path, monkeypatch):
    monkeypatch.setattr("gluonize.judge.lower.jobs.lower_file", answer)
    return KeptJobs(Inline(), ContentCache.in_folder(tmp_path / "cache"))


def runs(pool, path, *rest, **kwargs) -> int:
    """How many jobs a call starts."""
    before = len(pool.pool.ran)
    pool.call(LOWER, str(path), "spec", "gfx950", *rest, **kwargs)
    return len(pool.pool.ran) - before


def test_an_answer_is_kept_while_the_file_is_the_same(pool, tmp_path):
    source = tmp_path / "a.py"
    source.write_text("A = 1\n")
    assert [runs(pool, source), runs(pool, source)] == [1, 0]
    assert pool.call(LOWER, str(source), "spec", "gfx950") == ("A = 1\n", "")
    assert runs(pool, source, ("other",)) == 1
    source.write_text("A = 2\n")
    assert [runs(pool, source), runs(pool, source)] == [1, 0]


def test_a_refusal_is_kept_and_a_bug_is_not(pool, tmp_path):
    (tmp_path / "a.py").write_text("refuse\n")
    (tmp_path / "b.py").write_text("bug\n")
    for _ in range(2):
        with pytest.raises(TranslationError, match="spec-missing"):
            runs(pool, tmp_path / "a.py")
    assert len(pool.pool.ran) == 1
    for _ in range(2):
        with pytest.raises(InternalError):
            runs(pool, tmp_path / "b.py")
    assert len(pool.pool.ran) == 3


def test_user_code_takes_part_nothing_is_kept(pool, tmp_path):
    (tmp_path / "a.py").write_text("A = 1\n")
    assert [runs(pool, tmp_path / "a.py", (), True) for _ in range(2)] == [1, 1]
    assert [runs(pool, tmp_path / "a.py", inputs="hook.py") for _ in range(2)] == [1, 1]
    # Further flags are part of the key, no reason to keep nothing.
    assert [runs(pool, tmp_path / "a.py", (), False, True) for _ in range(2)] == [1, 0]


def test_a_draft_counts_by_its_content_wherever_it_lies(pool):
    def once(text):
        with tempfile.TemporaryDirectory(prefix="gluonize-") as folder:
            (Path(folder) / "draft.py").write_text(text)
            return runs(pool, Path(folder) / "draft.py")

    assert [once("A = 1\n"), once("A = 1\n"), once("A = 2\n")] == [1, 0, 1]
    assert [once("path\n"), once("path\n")] == [1, 1]  # the answer names a file that is gone


def test_who_waits_has_the_answer_when_the_cache_fails(pool, tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text("A = 1\n")
    monkeypatch.setattr(pool.cache, "put", lambda *_: 1 / 0)
    assert pool.submit(LOWER, str(tmp_path / "a.py"), "spec", "gfx950").result(timeout=5)


def test_without_a_cache_every_job_runs(tmp_path):
    pool = KeptJobs(Inline(), ContentCache(None))
    assert [runs(pool, tmp_path / "a.py") for _ in range(2)] == [1, 1]


def test_another_checkout_has_the_same_key_and_the_same_entries(tmp_path, monkeypatch):
    def at(name):
        folder = tmp_path / name / "checkout"
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("A = 1\n")
        monkeypatch.chdir(folder)
        return str(folder / "a.py")

    cache = ContentCache.in_folder(tmp_path / "cache")
    one = at("one")
    key = content_key("job", one, (one, "x"))
    reads = Reads(files=((one, "3be9fe12cd3b"),), lookups=((("a", "a", (str(tmp_path / "one/checkout"),)), one),))
    digest = content_key.__globals__["file_digest"](one)
    cache.put(key, {"file": one}, replace(reads, files=((one, digest),)))
    cache.put("bound", f"see {one}")
    assert cache.get(key) == {"file": one} and cache.get("bound")
    two = at("two")
    assert content_key("job", two, (two, "x")) == key
    assert cache.get(key) == {"file": two}
    assert cache.get("bound") is None  # a text that names the folder is good in that folder only
    Path(two).write_text("A = 2\n")
    assert cache.get(key) is None


def test_folders_next_to_a_named_one_are_not_it(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    places = Places.here()
    beside = f"{tmp_path}/here2/a.py"
    assert places.portable(beside) == beside
    inside = f"{tmp_path}/here/a.py"
    assert places.portable(inside) != inside and places.local(places.portable(inside)) == inside


@dataclass(frozen=True)
class _Held:
    path: str
    more: dict
    spec: LaunchSpec | None = None


def test_strings_of_nested_data_are_moved():
    held = _Held("/a/x", {"/a/k": ["/a/y", 1, ("/b",)]})
    moved = mapped(held, lambda text: text.replace("/a", "/c"))
    assert moved == _Held("/c/x", {"/c/k": ["/c/y", 1, ("/b",)]}) and held.path == "/a/x"
    assert mapped(held, str.strip) == held


def test_a_pickle_from_elsewhere_runs_no_code(tmp_path):
    import os

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    class Indirect:
        def __reduce__(self):
            return eval, ("1",)

    assert load_plain(pickle.dumps(Evil())) is None and load_plain(pickle.dumps(Indirect())) is None
    assert not (tmp_path / "made").exists()
    # A function of ours, and what a module of ours imported.
    for name in (
        b"gluonize.product.project.cache.results\nuser_folder",
        b"gluonize.product.project.cache.results\npickle.loads",
    ):
        assert load_plain(b"c" + name + b"\n)R.") is None
    assert load_plain(pickle.dumps((1, {"a": LaunchSpec}))) is not None


@pytest.mark.parametrize(
    "text, names",
    [
        ("import os\nA = os.environ.get('A', '0')", {"A"}),
        ("A = os.getenv('A') or environ['B']", {"A", "B"}),
        ("if 'A' in os.environ: pass", {"A"}),
        ("A = os.environ.get(name)", {ALL}),
        ("os.environ['A']\nfor x in os.environ: pass", {"A", ALL}),
        ("get = os.getenv", {ALL}),
        ("environment = 1", set()),
    ],
)
def test_names_of_variables_that_a_file_asks_for(text, names):
    assert names_asked(ast.parse(text)) == names


def test_only_variables_that_are_asked_for_count(tmp_path, monkeypatch):
    cache = ContentCache.in_folder(tmp_path)
    cache.put("k", 1, Reads(environment=("ASKED",)))
    key = content_key("k")
    monkeypatch.setenv("OTHER", json.dumps([1]))
    monkeypatch.setenv("GLUONIZE_CLUSTER_PATIENCE", "5")
    assert cache.get("k") == 1 and content_key("k") == key
    monkeypatch.setenv("ASKED", "")  # empty is not unset
    assert cache.get("k") is None


def test_a_translation_is_plain_data():
    """Else no cache keeps it."""
    fixture = fixture_set.ROOT / "vector_add"
    launches = read_launches(str(fixture / "launches.json"))
    result = translate_kernel(TranslateRequest(str(fixture / "kernel.py"), "gfx942", launches=launches[:1]))
    assert result.text and load_plain(pickle.dumps(result)) == result
