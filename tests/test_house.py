"""What every module of the translator keeps: a name of its own, at most 400 lines, functions of at most 60, capabilities instead of families."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(path for folder in ("translator", "rules") for path in (ROOT / folder).rglob("*.py"))
MOST_LINES, MOST_OF_A_FUNCTION = 400, 60


def test_no_two_modules_share_a_name():
    names = Counter(path.stem for path in MODULES if path.stem not in ("__init__", "__main__"))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("folder", ["translator", "rules"])
def test_modules_and_functions_are_short(folder: str):
    long = []
    for path in (path for path in MODULES if path.relative_to(ROOT).parts[0] == folder):
        text = path.read_text()
        long += [str(path)] if text.count("\n") > MOST_LINES else []
        functions = (n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
        long += [f"{path}: {f.name}" for f in functions if f.end_lineno - f.lineno >= MOST_OF_A_FUNCTION]
    assert long == []


def test_code_asks_for_capabilities():
    asked = [
        str(path) for path in MODULES if path.relative_to(ROOT).parts[0] != "rules" and ".family" in path.read_text()
    ]
    assert [path for path in asked if "/lift/" not in path and "/cli/" not in path] == []
