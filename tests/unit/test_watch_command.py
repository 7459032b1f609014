"""`gluonize watch`: a save of what a file is made from brings the file up to date."""

from pathlib import Path

import pytest

from test_project_check import OUT, edit, project  # noqa: F401 - a folder with a source, its import and its translation
from gluonize.product.cli.edge import run
from gluonize.product.cli.project import watch


@pytest.mark.parametrize("path, old, new", [("scale.py", "x * FACTOR", "x * FACTOR + 1"), ("l.json", "1024", "2048")])
def test_a_save_is_followed_by_an_update(project, capsys, monkeypatch, path, old, new):  # noqa: F811
    looks = []
    stamps = watch._stamps

    def seen(*arguments):
        looks.append(arguments)
        if len(looks) == 2:  # the first update is over
            edit(path, old, new)
        return stamps(*arguments)

    monkeypatch.setattr(watch, "_stamps", seen)
    status = run(["watch", "--no-compile", "--every", "0.05", "--once"])
    printed = capsys.readouterr().out
    assert status == 0 and f"{path} changed" in printed and f"{OUT}: written" in printed
    assert run(["check"]) == 0


def test_every_input_is_watched_and_a_half_written_source_is_no_end(project, capfd, monkeypatch):  # noqa: F811
    looks = []
    stamps = watch._stamps

    def seen(*arguments):
        looks.append(arguments)
        found = stamps(*arguments)
        if len(looks) == 1:  # the first look, before which nothing counts as a change
            good = Path("scale.py").read_text()
            Path("scale.py").write_text(good.replace("x * FACTOR", "x * (FACTOR"))
        return found

    monkeypatch.setattr(watch, "_stamps", seen)
    status = run(["watch", "--no-compile", "--every", "0.05", "--once"])
    printed = capfd.readouterr()
    assert status == 2 and "watching 3 files" in printed.out and "scale.py:" in printed.err


def test_nothing_to_watch_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["watch"]) == 2 and "no generated files" in capsys.readouterr().err
