"""Recipes and the picture in the documentation are what the repository has: each line that a diff adds stands there, behind the one before it."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def _parts() -> list[tuple[str, str]]:
    """(file, lines of its diff) of each file in each recipe."""
    diffs = re.findall(r"```diff\n(.*?)```", TEXT, re.S)
    return [tuple(part.split("\n", 1)) for diff in diffs for part in diff.split("--- ")[1:]]


def test_each_recipe_takes_two_files_at_most():
    diffs = re.findall(r"```diff\n(.*?)```", TEXT, re.S)
    assert len(diffs) == len(re.findall(r"^### ", TEXT, re.M)) == 5
    assert all(1 <= diff.count("--- ") <= 2 and "\n+" in diff for diff in diffs)


@pytest.mark.parametrize("file, diff", _parts())
def test_a_recipe_is_what_the_repository_has(file: str, diff: str):
    assert "".join(line[1:] + "\n" for line in diff.splitlines()) in (ROOT / file).read_text()


def test_every_place_that_is_named_exists():
    named = re.findall(r"`((?:rules|translator|tests|docs|fixtures|bench)/[\w./]+)`", TEXT)
    assert len(named) > 20
    assert [place for place in named if not (ROOT / place).exists() and "CASE" not in place] == []


def test_the_picture_is_of_the_code_as_it_is():
    drawn = runpy.run_path(str(ROOT / "docs" / "generate_picture.py"))["picture"]()
    kept = (ROOT / "docs" / "explanation" / "stages.svg").read_text()
    assert drawn == kept, "run python docs/generate_picture.py"
    assert all(
        f">{folder.name}/<" in kept for folder in (ROOT / "translator").iterdir() if (folder / "__init__.py").exists()
    )
