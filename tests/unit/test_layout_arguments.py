"""Helpers that differ in layouts alone are one, which is given them."""

from __future__ import annotations

from types import SimpleNamespace

from gluonize.gluon.trees.function import parsed
from gluonize.output.merging.helper import Helper
from gluonize.output.merging.layout_arguments import with_layout_arguments

ONE, TWO = "gl.BlockedLayout([1], [64], [4], [0])", "gl.BlockedLayout([2], [64], [4], [0])"


def helper(name: str, text: str) -> Helper:
    source = SimpleNamespace(
        file_name="x.py", def_file_line_number=len(name.split("_")[0]), __name__=name.split("_")[0]
    )
    return Helper(parsed(text), source, False)


def read(name: str, layout: str, parameters: str = "x", used: str = "own") -> Helper:
    return helper(
        name,
        f"def {name}({parameters}):\n    # What it is for.\n    own: gl.constexpr = {layout}\n\n    return f(x, {used})\n",
    )


def test_one_is_given_the_layout():
    kernel = parsed("def k(x):\n    a = read(x)\n    b = read_2(x) + read(x)\n")
    helpers, (kernel,), instead = with_layout_arguments([read("read", ONE), read("read_2", TWO)], [kernel])
    assert [h.function.text for h in helpers] == ["def read(x, own: gl.constexpr):\n    return f(x, own)\n"]
    about = "    # What it is for.\n"
    assert kernel.text == (
        f"def k(x):\n{about}    own: gl.constexpr = {ONE}\n{about}    own_2: gl.constexpr = {TWO}\n\n"
        "    a = read(x, own)\n    b = read(x, own_2) + read(x, own)\n"
    )
    assert instead == {"read": "read", "read_2": "read"}


def test_a_caller_hands_its_own_on_and_helpers_of_helpers_become_one():
    inner = [read("inner", ONE), read("inner_2", TWO)]
    outer = [
        helper(n, f"def {n}(x):\n    return {i}(x) * 2\n") for n, i in (("outer", "inner"), ("outer_2", "inner_2"))
    ]
    kernel = parsed(f"def k(x):\n    mine: gl.constexpr = {TWO}\n\n    a = outer(x)\n    b = outer_2(x)\n")
    helpers, (kernel,), _ = with_layout_arguments([*inner, *outer], [kernel])
    assert [h.name for h in helpers] == ["inner", "outer"]
    assert helpers[1].function.text == "def outer(x, own: gl.constexpr):\n    return inner(x, own) * 2\n"
    assert "outer(x, mine)" in kernel.text


def test_defaults_stay_behind_what_is_given():
    kernel = parsed("def k(x):\n    a = read(x, 2)\n    b = read_2(x, n=3)\n")
    helpers, (kernel,), _ = with_layout_arguments(
        [read("read", ONE, "x, n=1"), read("read_2", TWO, "x, n=1")], [kernel]
    )
    assert helpers[0].function.text.startswith("def read(x, own: gl.constexpr, n=1):")
    assert "read(x, n=2, own=own)" in kernel.text and "read(x, n=3, own=own_2)" in kernel.text


def test_what_follows_from_a_layout_is_written_where_it_is_given():
    helpers = [read("read", ONE, used="gl.SliceLayout(0, own)"), read("read_2", ONE, used="gl.SliceLayout(1, own)")]
    made, (kernel,), _ = with_layout_arguments(helpers, [parsed("def k(x):\n    a = read(x) + read_2(x)\n")])
    assert made[0].function.text == "def read(x, layout: gl.constexpr):\n    return f(x, layout)\n"
    assert "read(x, gl.SliceLayout(0, own)) + read(x, gl.SliceLayout(1, own))" in kernel.text


def test_helpers_that_are_handed_on_as_values_or_do_something_else_stay():
    kernel = parsed("def k(x):\n    a = gl.reduce(x, read) + read_2(x)\n")
    helpers, (same,), instead = with_layout_arguments([read("read", ONE), read("read_2", TWO)], [kernel])
    assert len(helpers) == 2 and same.text == kernel.text and not instead
    other = helper("read_2", f"def read_2(x):\n    own: gl.constexpr = {TWO}\n\n    return g(x, own)\n")
    helpers, _, instead = with_layout_arguments([read("read", ONE), other], [kernel])
    assert len(helpers) == 2 and not instead


REFUSED = 'gl.static_assert(False, "read: `it` was in no translated launch")'


def flipped(name: str, layout: str, up: str, down: str, end: str = "own") -> Helper:
    body = f"    if UP:\n        y = {up}\n    else:\n        y = {down}\n".replace(f"y = {REFUSED}", REFUSED)
    text = f"def {name}(x, UP):\n    own: gl.constexpr = {layout}\n\n{body}    return f(x, y, {end})\n"
    return helper(name, text)


def test_a_branch_that_one_never_takes_is_that_of_the_other():
    """Where both have one layout in the place of another, it is that one."""
    kernel = parsed("def k(x):\n    a = read(x, True)\n    b = read_2(x, False)\n")
    helpers, (kernel,), instead = with_layout_arguments(
        [flipped("read", ONE, "g(own)", REFUSED), flipped("read_2", TWO, REFUSED, "h(own)")], [kernel]
    )
    assert [h.function.text for h in helpers] == [
        "def read(x, UP, own: gl.constexpr):\n    if UP:\n        y = g(own)\n    else:\n        y = h(own)\n"
        "    return f(x, y, own)\n"
    ]
    assert instead == {"read": "read", "read_2": "read"} and "read(x, False, own_2)" in kernel.text


def test_a_layout_that_only_one_branch_has_is_the_same_for_all():
    kernel = parsed("def k(x):\n    a = read(x, True)\n    b = read_2(x, False)\n")
    helpers, (kernel,), _ = with_layout_arguments(
        [flipped("read", ONE, "g(own)", REFUSED, "None"), flipped("read_2", TWO, REFUSED, "x", "None")], [kernel]
    )
    (one,) = helpers
    assert f"own: gl.constexpr = {ONE}" in one.function.text and "y = g(own)" in one.function.text
    assert "own" not in kernel.text and "b = read(x, False)" in kernel.text


def test_helpers_that_differ_in_more_than_branches_keep_their_refusals():
    kernel = parsed("def k(x):\n    a = read(x, True)\n    b = read_2(x, False)\n")
    pair = [flipped("read", ONE, "g(own)", REFUSED), flipped("read_2", TWO, REFUSED, "h(own)", "own, x")]
    helpers, _, instead = with_layout_arguments(pair, [kernel])
    assert [h.function.text.count(REFUSED) for h in helpers] == [1, 1] and not instead
