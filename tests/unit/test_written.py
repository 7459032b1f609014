"""Expressions of the output know whether they need parentheses, and what warps do in them."""

from __future__ import annotations

import ast
import pickle

import pytest
from parsed_expressions import mistakes

from gluonize.gluon.written import (
    Does,
    Written,
    addend,
    binary,
    call,
    closed,
    converted,
    indexed,
    literal,
    method,
    name,
    negative,
    operand,
    times,
    total,
)

X, Y = name("x"), name("y")
OPEN = Written("x *\n    y", ast.Mult, open=True)


@pytest.mark.parametrize(
    "made, text",
    [
        (method(binary(X, "+", Y), "to", "gl.int32"), "(x + y).to(gl.int32)"),
        (indexed(call("f", X), ":, None"), "f(x)[:, None]"),
        (times(operand(binary(X, "+", Y)), Y), "(x + y) * y"),
        (negative(binary(X, "+", Y)), "-(x + y)"),
        (operand(literal(-1)), "(-1)"),
        (operand(literal(1)), "1"),
        (operand(OPEN), "(x *\n    y)"),
        (closed(OPEN), "(x *\n    y)"),
        (closed(operand(OPEN)), "(x *\n    y)"),
        (total([("+", X), ("-", Y)]), "x - y"),
        (total([("-", X), ("+", Y)]), "- x + y"),
    ],
)
def test_parentheses_where_they_are_needed(made: Written, text: str):
    assert made == text
    assert mistakes(made) == []


@pytest.mark.parametrize("sign, text", [("<<", "(x << y)"), ("&", "(x & y)"), ("<", "(x < y)"), ("*", "x * y")])
def test_an_addend_binds_at_least_as_a_sum_does(sign: str, text: str):
    assert addend(binary(X, sign, Y), "+") == text
    assert addend(binary(X, "+", Y), "-") == "(x + y)", "what is taken away is one value"


def test_what_is_done_in_a_part_is_done_in_the_whole():
    moved = converted(X, "layout")
    for whole in (times(moved, Y), call("f", moved), method(moved, "to", "t"), operand(binary(Y, "+", moved))):
        assert whole.does == Does.CONVERTS
    assert call("f", X).does == Does.NOTHING
    assert moved.moving(Y) == "gl.convert_layout(y, layout)"


@pytest.mark.parametrize(
    "wrong",
    [
        Written("x + y", ast.Call),
        Written("x *\n    y", ast.Mult),
        Written("f(\n    x)", ast.Call, open=True),
        Written("x + y", ast.Add, grouped=True),
        Written("gl.convert_layout(x, l)", ast.Call),
    ],
)
def test_a_wrong_word_on_an_expression_is_found(wrong: Written):
    assert mistakes(wrong)


def test_another_process_gets_the_text():
    assert pickle.loads(pickle.dumps(binary(X, "+", Y))) == "x + y"
