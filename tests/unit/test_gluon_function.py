"""Functions of the output as values: their parts, and the functions that are made of them."""

from __future__ import annotations

import pytest
from gluonize.diagnostics import InternalError
from gluonize.gluon.code import code_of, ended, text_of
from gluonize.gluon.layout_names import LayoutNames, Variant
from gluonize.gluon.trees.function import parsed, statements
from gluonize.gluon.trees.long_lines import bases_in_lines, with_long_lines_wrapped
from gluonize.gluon.trees.references import References, named, references
from gluonize.gluon.trees.walk import dotted, names, same, stores, walk
from gluonize.trace.model.layouts import Blocked, Slice

TEXT = '''def k(a, b=f(a), *, c: gl.constexpr = 2,  # of c
      d: gl.constexpr = 3,
):
    """What it does."""
    # Of x.
    x: gl.constexpr = gl.BlockedLayout(
        [1], [64],
    )

    # Of y.
    y: gl.constexpr = x.rank
    if a:
        # Of z.
        z = g(x)  # beside
        # at the end
    else: z = [w for w in (y, b)]
    return z
    # after all
'''


def test_a_function_is_its_text():
    function = parsed(TEXT)
    assert function.text == TEXT and function.name == "k" and len(function.constants) == 1
    assert function.header == TEXT[: TEXT.index("    # Of x")]
    assert function.bound == {"a", "b", "c", "d", "x", "y", "z", "w"}
    assert list(function.variables) == ["x", "gl", "y", "a", "z", "g", "w", "b"]


def test_the_signature_can_lose_parameters():
    shorter, defaults = parsed(TEXT).without_parameters({"d"})
    assert defaults == {"d": "3"} and shorter.header.startswith("def k(a, b=f(a), *, c: gl.constexpr = 2,  # of c\n):")
    last, defaults = parsed("def k(a, n: gl.constexpr = 4):\n    pass\n").without_parameters({"n", "m"})
    assert defaults == {"n": "4"} and last.text == "def k(a):\n    pass\n"


def test_comments_stay_where_a_statement_goes():
    function = parsed("def k():\n    # one\n    x = 1\n    # two\n    y = 2\n")
    first, second = function.statements
    assert function.without([first]).text == "def k():\n    # one\n    # two\n    y = 2\n"
    assert function.without([second]).text == "def k():\n    # one\n    x = 1\n    # two\n"


def test_names_that_are_bound_are_renamed_only_where_variables_are_meant():
    function = parsed("def k(f, x):\n    y = f(x.g, g=g(h))\n    return h\n")
    assert function.renaming({"f": "f_2", "g": "g_2", "y": "y_2"}).text == function.text.replace("g(h)", "g_2(h)")
    assert function.exchanging({"y": "z"}).text == function.text.replace("y =", "z =")


def test_statements_go_where_they_are_put():
    function = parsed("def k(a):\n  if a: return\n")  # two columns
    added = function.with_statements(statements("# Why.\nx = (\n    1\n)\n"), function.body)
    assert added.text == "def k(a):\n  # Why.\n  x = (\n      1\n  )\n  if a: return\n"
    assert parsed("def k(a): return a\n").with_statements(statements("b = a\n")).text == "def k(a):\n    b = a\n"


@pytest.mark.parametrize(
    "a, b, alike",
    [
        ("x = (a +\n     b)  # why\n", "x = a + b\n", True),
        ("x = a - b\n", "x = a + b\n", False),
        ("f(x=a)\n", "f(y=a)\n", False),
        ("x.a = 1\n", "x.b = 1\n", False),
        ("f(a)\n", "f(a, b)\n", False),
    ],
)
def test_the_same_code_may_be_written_differently(a, b, alike):
    assert same(statements(a)[0], statements(b)[0]) is alike


def test_what_is_read_and_assigned():
    (s,) = statements("for i, (j, k) in f(x=a.b):\n    c[i] = d\n    e += (g := h)\n")
    assert names(s) == set("ijkfacdegh") and stores(s) == set("ijkeg")
    assert [dotted(n) for n in walk(statements("a.b.c(d().e)\n")[0]) if dotted(n)] == ["a.b.c", "a.b", "a", "d"]


def test_only_lines_of_the_author_may_be_too_long():
    long = f"x = f({', '.join(f'argument_{i}' for i in range(12))})"
    wrapped = with_long_lines_wrapped(
        parsed(f"def k():\n    if a:\n        {long}  # kept\n    {long}\n"), f"    {long}\n"
    )
    assert wrapped.text.count(long) == 1 and wrapped.text.endswith(f"    {long}\n")
    assert "        x = f(\n            argument_0," in wrapped.text and max(map(len, wrapped.text.splitlines())) > 120


def test_statements_that_share_a_line_which_is_too_long_are_all_kept():
    """As black has them: each on a line of its own."""
    arguments = ", ".join(f"argument_{i}" for i in range(5))
    line = f"x = f({arguments}); y = g({arguments}); z += x * y"
    wrapped = with_long_lines_wrapped(parsed(f"def k():\n    if a:\n        # why\n        {line}\n    {line}\n"), "")
    alone = [f"x = f({arguments})", f"y = g({arguments})", "z += x * y"]
    inner, outer = ["# why", *alone], alone
    assert wrapped.text.splitlines() == [
        "def k():",
        "    if a:",
        *(" " * 8 + s for s in inner),
        *("    " + s for s in outer),
    ]


def test_layouts_have_no_names_until_the_function_is_whole():
    rows, columns = Blocked((1, 4), (8, 8), (4, 1), (1, 0)), Blocked((4, 1), (8, 8), (4, 1), (0, 1))
    names_of, trees = LayoutNames(), References()
    names_of.suggest(rows, "a_load", 0)
    lines = [
        code_of("x = f(", names_of.spell(Slice(1, rows)), ")"),
        code_of(names_of.variant("x", rows), " = g(x, ", names_of.spell(columns), ")"),
    ]
    with pytest.raises(InternalError):
        text_of(lines[0])
    function = trees.function(trees.text(code_of("def k():\n", ended(lines, "    "))))
    used = references(function.node)
    found, constants = names_of.named(used, {"layout_2d"})
    assert [name for name, _ in constants] == ["a_load", "layout_2d_2"] and dict(constants)["a_load"] == rows
    text = "def k():\n    x = f(gl.SliceLayout(1, a_load))\n    x_a = g(x, layout_2d_2)\n"
    assert named(function, found).text == text
    assert not names_of.named(used, set(), defined=used)[1]
    moved = trees.exchanged(function, {rows: columns, Variant("x", rows, "full"): Variant("x", columns, "full")})
    assert named(moved, LayoutNames().named(references(moved.node), set())[0]).text == (
        "def k():\n    x = f(gl.SliceLayout(1, layout))\n    x_layout = g(x, layout)\n"
    )


@pytest.mark.parametrize(
    "numbers, written",
    [
        ("1, " * 10, "[1] * 10"),
        ("16, " + "1, " * 7 + "2, 2", "[16] + [1] * 7 + [2, 2]"),
        ("1, 1, 2, 2, " + "1, " * 6, "[1, 1, 2, 2] + [1] * 6"),
        ("4, 4, 4", None),  # too short a run
        ("[0, 0, 0, 0, 1], [0, 0, 0, 0, 2]", None),  # bases
    ],
)
def test_runs_of_one_number_are_products_where_a_layout_is_too_long(numbers, written):
    given = f"[{numbers.removesuffix(', ')}]"
    long = f"layout: gl.constexpr = gl.BlockedLayout({given}, {', '.join(['[64, 32, 16, 8]'] * 8)})"
    assert bases_in_lines(long) == (long.replace(given, written) if written else long)
    short = f"layout: gl.constexpr = gl.BlockedLayout({given})"
    assert bases_in_lines(short) == short
