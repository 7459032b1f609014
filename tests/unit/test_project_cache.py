"""The cache of results: same bytes, no stale ones, whole entries under parallel runs."""

import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from test_project_check import LAUNCH, SOURCE, edit, values
from gluonize.product.project.cache.recorded import Reads, recorded, recording
from gluonize.product.project.cache.results import ContentCache, content_key, own_digest, still_holds
from gluonize.read.files import modules
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel


@pytest.fixture
def cache(tmp_path):
    return ContentCache.in_folder(tmp_path / "cache")


def entry(cache, key="k") -> Path:
    """The file of an entry."""
    return cache.shelf.store.folder / key


def test_values_come_back(cache):
    assert cache.get("k") is None
    cache.put("k", ("value", 1))
    assert cache.get("k") == ("value", 1) and (cache.hits, cache.misses) == (1, 1)


def test_no_cache_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / "c"))
    cache = ContentCache.of_user(enabled=False)
    cache.put("k", 1)
    assert cache.get("k") is None and not (tmp_path / "c").exists()


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_entry_is_a_miss(cache, damage):
    cache.put("k", 1)
    path = entry(cache)
    raw = path.read_bytes()
    path.write_bytes(raw[:-3] if damage is None else damage)
    assert cache.get("k") is None


def test_a_changed_byte_that_still_loads_is_a_miss(cache):
    cache.put("k", "hello")
    path = entry(cache)
    path.write_bytes(path.read_bytes().replace(b"hello", b"jello"))
    assert cache.get("k") is None


def test_an_entry_of_a_class_that_is_gone_is_a_miss(cache):
    import hashlib

    payload = b"cgluonize.product.project.cache.results\nNoSuchClass\n."
    with pytest.raises(AttributeError):
        pickle.loads(payload)
    cache.put("k", 1)
    entry(cache).write_bytes(hashlib.sha256(payload).digest() + payload)
    assert cache.get("k") is None


def test_an_entry_holds_only_while_its_files_do(cache, tmp_path):
    helper = tmp_path / "helper.py"
    helper.write_text("A = 1\n")
    with recording() as reads:
        modules.parse_file(str(helper))
        found = modules.find_module("helper", (str(tmp_path),))
        assert found.path == str(helper) and modules.find_module("later", (str(tmp_path),)) is None
    cache.put("k", 1, reads())
    assert cache.get("k") == 1
    helper.write_text("A = 2\n")
    assert cache.get("k") is None
    helper.write_text("A = 1\n")
    assert cache.get("k") == 1
    (tmp_path / "later.py").write_text("")  # a module that could not be found before
    assert cache.get("k") is None


@pytest.mark.parametrize("times, runs", [(1, 2), (9, 3)])
def test_what_is_found_while_a_file_is_written_is_found_again_and_never_kept_for_its_new_text(
    cache, tmp_path, times, runs
):
    helper, seen = tmp_path / "helper.py", []
    helper.write_text("A = 0\n")

    def run() -> str:
        text = modules.parse_file(str(helper)).text
        seen.append(text)
        if len(seen) <= times:
            helper.write_text(f"A = {'1' * (1 + len(seen))}\n")
        modules.parse_file(str(helper))
        return text

    answer, reads = recorded(run)
    assert len(seen) == runs and answer == seen[-1] and reads.steady == (runs == 2)
    cache.put("k", answer, reads)
    assert cache.get("k") == (helper.read_text() if reads.steady else None)


KERNEL = """
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(y_ptr + o, tl.load(x_ptr + o, mask=o < n), mask=o < n)
"""
PACKAGE_LAUNCH = """
import torch
from pkg.kernel import k


def host(x):
    y = torch.empty_like(x)
    k[(1,)](x, y, x.numel(), B=512)
"""


def test_a_guess_holds_only_while_no_other_file_of_the_package_launches_the_kernel(cache, tmp_path):
    package = tmp_path / "pkg"
    package.mkdir()
    for name, text in (("__init__", ""), ("kernel", KERNEL), ("other", "A = 1\n")):
        (package / f"{name}.py").write_text(text)
    request = TranslateRequest(str(package / "kernel.py"), "gfx942", search_path=(str(tmp_path),))
    with recording() as reads:
        assert "B=512" not in translate_kernel(request).text
    cache.put("k", 1, reads())
    assert cache.get("k") == 1
    (package / "unrelated.py").write_text("B = 2\n")
    assert cache.get("k") == 1
    (package / "new.py").write_text(PACKAGE_LAUNCH)
    assert cache.get("k") is None
    with recording() as reads:
        assert "B=512" in translate_kernel(request).text
    cache.put("k", 1, reads())
    assert cache.get("k") == 1
    (package / "new.py").write_text("C = 3\n")
    assert cache.get("k") is None


def test_an_entry_of_a_source_that_asks_the_environment_holds_for_this_one(cache, monkeypatch):
    cache.put("k", 1, Reads(environment=("*",)))
    assert cache.get("k") == 1
    monkeypatch.setenv("MY_SWITCH", "1")
    assert cache.get("k") is None
    assert not still_holds(Reads(environment=("*",)), "")


def test_keys_tell_parts_versions_and_switches_apart(monkeypatch):
    keys = {content_key("a", "b"), content_key("ab"), content_key("a", "b", "")}
    monkeypatch.setenv("AMDGCN_USE_BUFFER_OPS", "0")
    keys.add(content_key("a", "b"))
    assert len(keys) == 4
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    assert content_key("a", "b") in keys


def test_own_code_is_part_of_the_version():
    from gluonize.product.project.cache.places import PACKAGE

    assert own_digest() == own_digest()
    assert (PACKAGE / "translation.py").exists()


def test_pruning_keeps_what_was_used_last(cache):
    for index in range(6):
        cache.put(f"k{index}", index)
        os.utime(entry(cache, f"k{index}"), (index, index))
    cache.get("k0")  # used now
    assert cache.prune(3 * entry(cache, "k0").stat().st_size) == 3
    assert sorted(path.name for path in cache.shelf.store.folder.iterdir()) == ["k0", "k4", "k5"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    cache = ContentCache.in_folder(tmp_path / "file" / "cache")
    cache.put("k", 1)
    assert cache.get("k") is None


def test_parallel_writers_and_readers_see_whole_entries(cache):
    def work(number):
        other = ContentCache.in_folder(cache.shelf.store.folder)
        for step in range(50):
            other.put("k", [number] * 2000)
            found = other.get("k")
            assert found is not None and len(found) == 2000 and len(set(found)) == 1
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))
    assert [path.name for path in cache.shelf.store.folder.iterdir()] == ["k"]


def gluonize(folder, *arguments):
    environment = {**os.environ, "GLUONIZE_CACHE_DIR": str(folder / ".cache")}
    command = [sys.executable, "-m", "gluonize.product.cli", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.compile
def test_a_cached_run_gives_the_same_bytes_and_a_changed_source_others(tmp_path):
    (tmp_path / "scale.py").write_text(SOURCE)
    (tmp_path / "factor.py").write_text("import triton.language as tl\n\nFACTOR = tl.constexpr(2)\n")
    (tmp_path / "l.json").write_text(json.dumps([{**LAUNCH, "values": values(), "grid": [2]}]))
    arguments = ["-v", "translate", "scale.py", "-t", "gfx942", "-l", "l.json", "--json", "r.json"]

    def results():
        done = gluonize(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        return (tmp_path / "scale_gfx942.py").read_bytes(), (tmp_path / "r.json").read_bytes(), done.stderr

    first = results()
    second = results()
    assert second[:2] == first[:2]
    assert "translated in" in first[2] and "found in the cache" in second[2]
    assert "translated in" not in second[2]
    assert "checks found in the cache" in second[2] and "checks found in the cache" not in first[2]
    arguments.append("--no-cache")
    third = results()
    assert third[0] == first[0] and "found in the cache" not in third[2]
    arguments.remove("--no-cache")
    edit(tmp_path / "scale.py", "x * FACTOR", "x * FACTOR * 2")
    fourth = results()
    assert fourth[0] != first[0] and "translated in" in fourth[2]


@pytest.mark.compile
@pytest.mark.slow
def test_parallel_runs_of_one_translation(tmp_path):
    (tmp_path / "scale.py").write_text(SOURCE)
    (tmp_path / "factor.py").write_text("import triton.language as tl\n\nFACTOR = tl.constexpr(2)\n")
    (tmp_path / "l.json").write_text(json.dumps([LAUNCH]))
    command = ["translate", "scale.py", "-t", "gfx942", "-l", "l.json", "--no-compile", "-q"]
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda n: gluonize(tmp_path, *command, "-o", f"o{n}.py"), range(4)))
    assert [x.returncode for x in done] == [0] * 4, done[0].stderr
    assert len({(tmp_path / f"o{n}.py").read_bytes() for n in range(4)}) == 1
