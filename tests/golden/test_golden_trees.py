"""Golden outputs through two other readers: libcst gives back every byte, astor's source means the same tree."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import libcst
import pytest
from slow_rows import slow_but_every

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
GOLDENS = sorted(FIXTURES.glob("*/golden/*.py"))
EVERY = 3  # is read each time, the others with the slow tests


def name(path: Path) -> str:
    return f"{path.parent.parent.name}-{path.stem}"


class Comments(libcst.CSTVisitor):
    """Every comment, in order."""

    def __init__(self):
        self.found: list[str] = []

    def visit_Comment(self, node: libcst.Comment) -> None:
        self.found.append(node.value)


def comments(path: Path) -> list[str]:
    visitor = Comments()
    libcst.parse_module(path.read_text()).visit(visitor)
    return visitor.found


@pytest.mark.parametrize("golden", slow_but_every(GOLDENS, EVERY), ids=name)
def test_concrete_tree_gives_back_the_text(golden: Path):
    assert libcst.parse_module(golden.read_text()).code == golden.read_text()


# What is lifted from Gluon says what its source does, not how: comments on how stay behind.
@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "golden", slow_but_every([g for g in GOLDENS if (g.parent.parent / "kernel.py").exists()], EVERY), ids=name
)
def test_source_comments_are_kept(golden: Path):
    kept = comments(golden)
    source = comments(golden.parent.parent / "kernel.py")
    # A branch that no launch takes is replaced by its refusal, and goes with its comments.
    lost = [c for c in source if c not in kept]
    assert len(lost) <= golden.read_text().count("is in no launch that was translated"), lost


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="astor does not run on Python 3.14")
@pytest.mark.parametrize("golden", slow_but_every(GOLDENS, EVERY), ids=name)
def test_a_second_unparser_agrees(golden: Path):
    import astor

    tree = ast.parse(golden.read_text())
    again = ast.parse(astor.to_source(tree))
    assert normal(again) == normal(tree)


def normal(tree: ast.Module) -> str:
    """The tree without what astor spells differently: white space at the ends of docstrings, kinds of strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value, node.kind = " ".join(node.value.split()), None
    return ast.dump(tree)
