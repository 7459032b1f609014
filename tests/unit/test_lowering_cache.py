"""The folder for compiled kernels."""

import os

from translator.lowering.cache_folder import prune_cache_folder, use_cache_folder


def test_the_users_folder_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert use_cache_folder() == tmp_path


def test_our_own_folder_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert use_cache_folder() == tmp_path / "gluonize" / "triton"
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "gluonize" / "triton")
    monkeypatch.delenv("TRITON_CACHE_DIR")


def test_a_cache_that_cannot_be_made_moves_to_the_temporary_folder(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = use_cache_folder()
    assert folder.is_dir() and folder.is_relative_to(tmp_path)
    monkeypatch.delenv("TRITON_CACHE_DIR")


def test_the_oldest_entries_go_first(tmp_path):
    ours = tmp_path / "gluonize" / "triton"
    for age in range(5):
        (ours / str(age)).mkdir(parents=True)
        os.utime(ours / str(age), (1000 - age, 1000 - age))
    assert prune_cache_folder(ours, keep=3) == 2
    assert sorted(os.listdir(ours)) == ["0", "1", "2"]


def test_a_folder_of_the_user_is_never_pruned(tmp_path):
    (tmp_path / "kernel").mkdir()
    assert prune_cache_folder(tmp_path, keep=0) == 0 and os.listdir(tmp_path) == ["kernel"]
