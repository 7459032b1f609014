"""Parts of the editor's server by themselves: lines that move, outlines of texts, the command without its package."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gluonize.product.cli import lsp_command
from gluonize.product.cli.edge import run
from gluonize.product.editor import jobs
from gluonize.product.editor.line_map import LineMap
from gluonize.product.editor.outline import read_outline
from gluonize.product.editor.shown.hover import word_at
from gluonize.product.editor.work import Overtaken, unmoved
from gluonize.product.report.layouts.inlined import inlined

TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=12).map("\n".join)
KERNEL = """
@gluon.jit
def kernel(x_ptr, n, BLOCK: gl.constexpr):
    load: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    part: gl.constexpr = gl.SliceLayout(0, load)
    é = gl.arange(0, BLOCK, layout=gl.SliceLayout(1, load)); x = é
    for i in range(n):
        x = x + 1
        y = x
    return y
"""


@given(TEXTS, TEXTS)
def test_lines_lead_to_lines_that_say_the_same_and_back(before, now):
    moved, old, new = LineMap(before, now), before.splitlines(), now.splitlines()
    pairs = [(n, moved.back(n)) for n in range(-1, len(new) + 3)]
    known = [(n, was) for n, was in pairs if was is not None]
    assert all(new[n - 1] == old[was - 1] and moved.forth(was) == n for n, was in known)
    assert known == sorted(known, key=lambda pair: pair[1])
    assert len(known) == len(new) or before != now


def test_one_edited_line_moves_no_other():
    before = "\n".join("abcdefgh")
    moved = LineMap(before, before.replace("d", "x\ny"))
    assert [moved.back(n) for n in range(1, 10)] == [1, 2, 3, None, None, 5, 6, 7, 8]


def test_an_outline_knows_where_names_are_bound():
    (scope,) = read_outline(KERNEL).scopes
    assert (scope.name, scope.first, scope.last) == ("kernel", 2, 10)
    assert [scope.definition("x", line).line for line in (6, 7, 8, 9, 10)] == [6, 6, 8, 8, 8]
    assert scope.definition("y", 7).line == 9  # of the iteration before
    assert scope.definition("nothing", 9) is None
    assert scope.definition("é", 9).column == 4 and scope.definition("x", 6).column == KERNEL.splitlines()[5].index(
        "x ="
    )
    assert scope.layout("part", 9) == "gl.SliceLayout(0, gl.BlockedLayout([4], [64], [4], [0]))"
    assert scope.layout("x", 9) == ""
    spelled = {text: constructor for constructor, text, _ in scope.spelled}
    assert spelled["gl.SliceLayout(1, load)"] == "gl.SliceLayout(1, gl.BlockedLayout([4], [64], [4], [0]))"


def test_a_layout_that_is_made_of_itself_is_written_out_once():
    node = ast.parse("gl.SliceLayout(0, a)", mode="eval").body
    assert ast.unparse(inlined(ast.Name("a"), {"a": node})) == "gl.SliceLayout(0, a)"


@pytest.mark.parametrize("text", ["def f(:", "x = '", "\x00", "(" * 2000, "if x:\n  a\n b"])
def test_a_text_that_is_no_python_is_read_as_nothing(text):
    assert jobs.read_pair("x = 1", text) is None
    assert jobs.read_pair(text, "x = 1") is None


@pytest.mark.parametrize("column, word", [(0, "ab_1"), (4, "ab_1"), (5, ""), (6, "c"), (99, "")])
def test_the_word_under_a_column(column, word):
    assert word_at("\nab_1  c +", 2, column) == word


def test_an_answer_about_files_that_change_meanwhile_is_none():
    versions = iter([1, 2])
    with pytest.raises(Overtaken):
        unmoved(lambda: next(versions), 1, lambda: "answer")
    with pytest.raises(Overtaken):
        unmoved(lambda: 2, 1, lambda: pytest.fail("it was asked"))
    assert unmoved(lambda: 1, 1, str, 5) == "5"


def test_without_pygls_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(lsp_command, "find_spec", lambda name: None)
    assert run(["lsp"]) == 2
    assert "needs pygls" in (said := capsys.readouterr().err) and "pip install 'gluonize[lsp]'" in said


def test_an_unknown_target_is_refused(capsys):
    assert run(["lsp", "-t", "gfx000"]) == 2 and "gfx000" in capsys.readouterr().err
