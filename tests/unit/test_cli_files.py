"""Arguments, file names and atomic writes."""

import errno
import os
import stat

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.product.cli.edge import normalize
from gluonize.product.project.output import file
from gluonize.product.project.output.file import file_stem, launch_stems, write_whole


@pytest.mark.parametrize(
    "given, expected",
    [
        ("translate a.py --json", "translate a.py --json=-"),
        ("translate --json a.py -t all", "translate --json=- a.py -t all"),
        ("translate --json out.json a.py", "translate --json=out.json a.py"),
        ("translate --json - a.py", "translate --json=- a.py"),
        ("translate --json=x a.py", "translate --json=x a.py"),
        ("translate a.py -v -t all", "-v translate a.py -t all"),
        ("translate a.py --color never --quiet", "--color never --quiet translate a.py"),
        ("translate --color=always a.py", "--color=always translate a.py"),
        ("translate -- --json -v", "translate -- --json -v"),
        ("translate a.py --color", "translate a.py --color"),
    ],
)
def test_arguments_are_normalized(given, expected):
    assert normalize(given.split()) == expected.split()


def test_stems_are_names_and_differ():
    ids = ["conch/kernels.x/_k", "conch/kernels.x/_K", "a b", "a.b", "plain", "x" * 300, "x" * 301]
    stems = launch_stems(ids)
    assert len({stem.lower() for stem in stems.values()}) == len(ids)
    assert all(stem == file_stem(stem) and len(stem) < 200 for stem in stems.values())
    assert stems["plain"] == "plain"
    assert launch_stems(reversed(ids)) == stems


def test_a_file_is_written_with_the_usual_mode(tmp_path):
    write_whole(str(tmp_path / "out.py"), "text\n")
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "out.py").read_text() == "text\n"
    assert stat.S_IMODE((tmp_path / "out.py").stat().st_mode) == 0o666 & ~umask
    assert os.listdir(tmp_path) == ["out.py"]


def test_a_rewrite_keeps_the_mode_and_follows_links(tmp_path):
    (tmp_path / "real.py").write_text("old")
    (tmp_path / "real.py").chmod(0o640)
    (tmp_path / "link.py").symlink_to("real.py")
    write_whole(str(tmp_path / "link.py"), "new")
    assert (tmp_path / "link.py").is_symlink() and (tmp_path / "real.py").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "real.py").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"]
)
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, failure):
    path = tmp_path / "out.py"
    path.write_text("old")

    def fail(*_):
        raise failure

    monkeypatch.setattr(file.os, "fsync", fail)
    with pytest.raises(TranslationError if isinstance(failure, OSError) else KeyboardInterrupt) as caught:
        write_whole(str(path), "new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["out.py"]
    if isinstance(failure, OSError):
        assert caught.value.diagnostics[0].why == "the disk is full"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_protected_folder_is_reported(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(TranslationError, match="cannot write the output"):
        write_whole(str(tmp_path / "out.py"), "new")


def test_a_folder_in_the_way_and_a_missing_folder_are_reported(tmp_path):
    for path in (tmp_path, tmp_path / "missing" / "out.py"):
        with pytest.raises(TranslationError) as caught:
            write_whole(str(path), "new")
        assert caught.value.diagnostics[0].code == "output-unwritable"


def test_a_device_is_written_in_place():
    write_whole("/dev/null", "text")
    assert not os.path.isfile("/dev/null")
