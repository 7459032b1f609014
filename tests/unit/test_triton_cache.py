"""Triton's cache of compiled kernels: checked, shared through one entry a kernel, readable by Triton's own manager."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from triton.runtime.cache import FileCacheManager

from gluonize.judge.lower.cache_folder import MANAGER, use_cache_folder
from gluonize.judge.lower.children.triton_cache import CheckedCacheManager
from gluonize.store.chosen_store import shared_shelf

KEY = "ABC"


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("GLUONIZE_CACHE", "")
    machine(monkeypatch, tmp_path / "one")


def machine(monkeypatch, folder: Path) -> Path:
    """Another machine: its own folder of Triton's."""
    own = folder / "gluonize" / "triton"
    own.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(own))
    return own / KEY


def written() -> dict[str, str]:
    manager = CheckedCacheManager(KEY)
    group = {name: manager.put(data, name) for name, data in (("k.json", "{}"), ("k.hsaco", b"\1\2"))}
    manager.put_group("k.json", group)
    return group


def test_a_group_comes_back_and_tritons_own_manager_reads_it():
    group = written()
    assert CheckedCacheManager(KEY).get_group("k.json") == group
    assert FileCacheManager(KEY).get_group("k.json") == group
    assert CheckedCacheManager("OTHER").get_group("k.json") is None


@pytest.mark.parametrize("name", ["k.hsaco", "k.json", "__grp__k.json", "__sums__k.json"])
@pytest.mark.parametrize("damage", [b"", b"[]", b'{"child_paths": ["k.json"]}', b"\xff"])
def test_damage_is_found_and_told(name, damage, caplog):
    Path(written()["k.json"]).with_name(name).write_bytes(damage)
    with caplog.at_level(logging.WARNING, "gluonize"):
        assert CheckedCacheManager(KEY).get_group("k.json") is None
    assert "damaged" in caplog.text
    assert CheckedCacheManager(KEY).get_group("k.json") is None
    written()
    assert CheckedCacheManager(KEY).get_group("k.json") is not None


@pytest.mark.parametrize("name", ["k.hsaco", "__grp__k.json", "__sums__k.json"])
def test_a_lost_file_is_a_miss(name):
    Path(written()["k.json"]).with_name(name).unlink()
    assert CheckedCacheManager(KEY).get_group("k.json") is None


def test_what_triton_itself_wrote_in_the_users_folder_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "users"))
    manager = FileCacheManager(KEY)
    manager.put_group("k.json", {"k.json": manager.put("{}", "k.json")})
    assert list(CheckedCacheManager(KEY).get_group("k.json")) == ["k.json"]


def test_another_machine_gets_the_whole_group(tmp_path, monkeypatch):
    monkeypatch.setenv("GLUONIZE_CACHE", f"file://{tmp_path}/shared")
    written()
    (entry,) = shared_shelf().store.entries()
    assert entry.name == "compiled/ABC-k.json"
    there = machine(monkeypatch, tmp_path / "two")
    found = CheckedCacheManager(KEY).get_group("k.json")
    assert found == {"k.json": str(there / "k.json"), "k.hsaco": str(there / "k.hsaco")}
    assert Path(found["k.hsaco"]).read_bytes() == b"\1\2"
    # What lies there now is what Triton's own manager can read: a table, not a list.
    assert isinstance(json.loads((there / "__grp__k.json").read_text())["child_paths"], dict)
    assert FileCacheManager(KEY).get_group("k.json") == found


def test_a_damaged_shared_entry_is_a_miss_and_made_anew(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("GLUONIZE_CACHE", f"file://{tmp_path}/shared")
    written()
    path = tmp_path / "shared" / "compiled" / "ABC-k.json"
    path.write_bytes(path.read_bytes()[:-4])
    machine(monkeypatch, tmp_path / "two")
    with caplog.at_level(logging.WARNING, "gluonize"):
        assert CheckedCacheManager(KEY).get_group("k.json") is None
    assert "compiled/ABC-k.json" in caplog.text
    written()
    machine(monkeypatch, tmp_path / "three")
    assert CheckedCacheManager(KEY).get_group("k.json") is not None


def test_children_use_it_unless_the_user_has_another(monkeypatch):
    import os

    monkeypatch.delenv("TRITON_CACHE_MANAGER", raising=False)
    use_cache_folder()
    assert os.environ["TRITON_CACHE_MANAGER"] == MANAGER
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "mine:Manager")
    use_cache_folder()
    assert os.environ["TRITON_CACHE_MANAGER"] == "mine:Manager"
