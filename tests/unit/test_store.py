"""Stores of entries: whole or absent, checked, limited; the same for a folder and for what fsspec opens."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.product.project.cache.results import ContentCache
from gluonize.store import shelf as shelf_module
from gluonize.store.address import absolute_url, open_store, parse_bytes, shown_bytes
from gluonize.store.chosen_store import share, shared_shelf
from gluonize.store.entries import seal, unseal
from gluonize.store.folder import FolderStore
from gluonize.store.packed import pack, unpack
from gluonize.store.remote import RemoteStore
from gluonize.store.shelf import Shelf


@pytest.fixture(params=["file", "memory", "moved", "s3"])
def store(request, tmp_path):
    """A store in a folder, in fsspec's memory, in a file system whose writes are not whole by themselves, and in a bucket."""
    if request.param == "s3":
        return open_store(f"{request.getfixturevalue('bucket')}/{uuid.uuid4().hex}")
    if request.param == "file":
        return open_store(f"file://{tmp_path}/store")
    if request.param == "memory":
        return open_store(f"memory://{uuid.uuid4().hex}")
    import fsspec

    return RemoteStore("local", fsspec.filesystem("file"), str(tmp_path / "moved"))


def test_entries_come_back_and_go(store):
    assert store.read("a/b") is None and list(store.entries()) == []
    store.write("a/b", b"12")
    store.write("a/b", b"123")
    store.write("c", b"")
    assert (store.read("a/b"), store.read("c")) == (b"123", b"")
    assert sorted((entry.name, entry.size) for entry in store.entries()) == [("a/b", 3), ("c", 0)]
    store.delete("a/b")
    store.delete("a/b")
    assert store.read("a/b") is None


def test_writers_of_one_entry_never_mix(store):
    shelf = Shelf(store)

    def work(number):
        for _ in range(30):
            shelf.put("k", bytes([number]) * 50_000)
            found = shelf.get("k")
            assert found is not None and len(set(found)) == 1 and len(found) == 50_000
        return True

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(work, range(6)))
    assert [entry.name for entry in store.entries()] == ["k"]


@pytest.mark.parametrize("damage", [b"", b"short", lambda raw: raw[:-1], lambda raw: raw[:40] + b"?" + raw[41:]])
def test_damage_is_found_told_and_removed(store, caplog, damage):
    shelf = Shelf(store)
    shelf.put("k", b"what was kept here")
    store.write("k", damage(store.read("k")) if callable(damage) else damage)
    with caplog.at_level(logging.WARNING, "gluonize"):
        assert shelf.get("k") is None
    assert "entry k" in caplog.text and "damaged" in caplog.text
    assert store.read("k") is None
    shelf.put("k", b"anew")
    assert shelf.get("k") == b"anew"


def test_what_was_not_used_for_longest_is_evicted(tmp_path):
    store = FolderStore(tmp_path)
    shelf = Shelf(store, limit=1000)
    for number in range(5):
        shelf.put(f"k{number}", bytes(168))  # 200 with its checksum
        os.utime(tmp_path / f"k{number}", (number, number))
    shelf.get("k0")
    shelf.put("k5", bytes(168))
    assert sorted(entry.name for entry in store.entries()) == ["k0", "k3", "k4", "k5"]
    told = []
    assert shelf.prune(0, lambda: told.append(1)) == 4 == len(told)


def test_a_process_that_writes_much_evicts_by_itself(tmp_path):
    shelf = Shelf(FolderStore(tmp_path), limit=10_000)
    for number in range(100):
        shelf.put(f"k{number}", bytes(500))
    assert sum(entry.size for entry in shelf.store.entries()) <= 11_000


def test_what_another_machine_writes_after_a_listing_is_seen(store):
    """As an eviction lists, which a long run does now and then."""
    store.write("first", b"1")
    list(store.entries())
    other = store
    if isinstance(store, RemoteStore):
        other = RemoteStore(store.url, type(store.fs)(skip_instance_cache=True), store.root)
    other.write("second", b"2")
    assert store.read("second") == b"2" and len(list(store.entries())) == 2


def permissions(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))[2:]


@pytest.mark.parametrize("mode, below, entry", [("700", "700", "600"), ("2770", "2770", "660"), ("755", "755", "644")])
def test_who_may_use_the_folder_may_use_its_entries(tmp_path, mode, below, entry):
    """Whatever the umask of who writes."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(int(mode, 8))
    before = os.umask(0o077)
    try:
        FolderStore(folder).write("a/b/k", b"1")
    finally:
        os.umask(before)
    assert [permissions(folder / name) for name in ("", "a", "a/b", "a/b/k")] == [mode, below, below, entry]


def test_a_folder_that_is_made_follows_the_umask_and_a_users_own_is_private(tmp_path):
    before = os.umask(0o022)
    try:
        open_store(f"file://{tmp_path}/shared").write("k", b"1")
        ContentCache.in_folder(tmp_path / "own").put("k", 1)
    finally:
        os.umask(before)
    assert [permissions(tmp_path / name) for name in ("shared", "shared/k", "own", "own/k")] == [
        "755",
        "644",
        "700",
        "600",
    ]


def test_a_store_that_does_not_answer_is_left_alone_for_a_while(monkeypatch):
    """Each attempt may take many seconds; but one entry that is not readable is no reason."""
    now, asked = [0.0], []

    class Gone:
        url, gone = "gone://", True

        def read(self, name):
            asked.append(name)
            if self.gone:
                raise OSError("no answer")

        def write(self, name, data):
            asked.append(f"{name}!")

        def entries(self):
            return iter(())

    monkeypatch.setattr(shelf_module.time, "monotonic", lambda: now[0])
    shelf = Shelf(Gone())
    for name in "abcdef":
        shelf.get(name)
    shelf.put("g", b"1")
    assert asked == ["a", "b", "c", "g!"]
    now[0], Gone.gone = 100.0, False
    for name in "hi":
        shelf.get(name)
    Gone.gone = True
    for name in "jk":
        shelf.get(name)
    assert asked[4:] == ["h", "i", "j", "k"]


def test_a_store_that_cannot_be_written_is_told_once(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    shelf = Shelf(FolderStore(tmp_path / "file" / "store"))
    with caplog.at_level(logging.WARNING, "gluonize"):
        shelf.put("k", b"1")
        shelf.put("k", b"1")
    assert shelf.get("k") is None and caplog.text.count("cannot be written") == 1


def test_whatever_a_store_raises_is_a_miss(caplog):
    """Such as what a client of an object store raises when it finds no credentials, which is no OSError."""

    class Refuses:
        protocol = "s3"

        def __getattr__(self, name):
            raise LookupError("no credentials")

    shelf = Shelf(RemoteStore("s3://bucket", Refuses(), "bucket"))
    shelf.put("k", b"1")
    assert shelf.get("k") is None and shelf.prune(0) == 0 and caplog.text.count("no credentials") == 3


def test_what_cannot_be_dated_is_found_all_the_same(tmp_path, monkeypatch, caplog):
    """Entries on a disk that is only read, or of another user."""
    shelf = Shelf(FolderStore(tmp_path))
    shelf.put("k", b"1")

    def refuses(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refuses)
    assert shelf.get("k") == b"1" and not caplog.text


def test_what_a_killed_writer_left_is_no_entry_and_goes_later(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from gluonize.store.folder import FolderStore\n"
        "os.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "FolderStore(Path(sys.argv[1])).write('k', b'half')"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == -9
    (left,) = tmp_path.iterdir()
    assert list(FolderStore(tmp_path).entries()) == [] and left.exists()
    os.utime(left, (1, 1))
    assert list(FolderStore(tmp_path).entries()) == [] and not left.exists()


def test_seals_and_packs():
    assert unseal(seal(b"")) == b"" and unseal(b"") is None and unseal(seal(b"ab")[:-1]) is None
    files = {"a.json": b"{}", "b": bytes(range(256))}
    assert unpack(pack(files)) == files and list(unpack(pack(files))) == ["a.json", "b"]
    assert unpack(b"") is None and unpack(pack(files)[:-9]) is None
    assert unpack(pack({"../up": b"1"})) is None


@pytest.mark.parametrize("text, size", [("500MB", 500_000_000), ("20 GB", 2 * 10**10), ("7", 7), ("1.5k", 1500)])
def test_sizes(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1 apple", "nan", "inf"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError):
        parse_bytes(text)


def test_sizes_as_shown():
    assert [shown_bytes(size) for size in (5, 1500, 2 * 10**9)] == ["5 B", "1.5 kB", "2.0 GB"]


def test_addresses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute_url("shared") == absolute_url(f"file://{tmp_path}/shared") == f"file://{tmp_path}/shared"
    assert absolute_url("s3://bucket/x") == "s3://bucket/x"
    with pytest.raises(TranslationError, match="cache-address"):
        open_store("nosuch://x")


def test_the_address_is_that_of_children_too(tmp_path, monkeypatch):
    monkeypatch.setenv("GLUONIZE_CACHE", "")
    assert shared_shelf() is None
    share(str(tmp_path / "shared"))
    assert os.environ["GLUONIZE_CACHE"] == f"file://{tmp_path}/shared"
    shared_shelf().put("k", b"1")
    assert (tmp_path / "shared" / "k").exists() and shared_shelf().get("k") == b"1"
    monkeypatch.setenv("GLUONIZE_CACHE_LIMIT", "much")
    with pytest.raises(TranslationError, match="cache-limit"):
        share(None)
