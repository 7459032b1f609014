"""Templates with holes, as values."""

import pytest

from gluonize.rules.template import template


def operand(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def test_the_author_s_arguments_come_first():
    arange = template("gl.arange({...}, layout={layout})")
    assert arange.takes_arguments and arange.called({}, operand) == ("gl.arange",)
    assert ["".join(more) for more in arange.more({"layout": "rows"}, operand)] == ["layout=rows"]


@pytest.mark.parametrize(
    "text, values, expected",
    [
        ("gl.permute({input}, {order})", {"input": "a + b", "order": "[1, 0]"}, "gl.permute(a + b, [1, 0])"),
        ("{input}[{index}]", {"input": "a + b", "index": ":, None"}, "(a + b)[:, None]"),
        ("{x} * 2", {"x": "a + b"}, "(a + b) * 2"),
        ("-{x}", {"x": "a + b"}, "-(a + b)"),
        ("{x} < {y}", {"x": "a if c else b", "y": "b < c"}, "(a if c else b) < (b < c)"),
        ("gl.f({x}, mask={mask}, layout={layout})", {"x": "a", "mask": None, "layout": "rows"}, "gl.f(a, layout=rows)"),
        ("gl.f({x})[1]", {"x": "a"}, "gl.f(a)[1]"),
    ],
)
def test_holes_are_filled(text, values, expected):
    assert "".join(template(text).filled(values, operand)) == expected


@pytest.mark.parametrize("text", ["gl.f({", "gl.f(1, {...})", "{...} + 1"])
def test_what_is_no_template_is_refused(text):
    with pytest.raises(ValueError):
        template(text)


def test_a_template_is_parsed_once():
    assert template("gl.g({x})") is template("gl.g({x})")
