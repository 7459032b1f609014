"""One text for several launches does for each what its own translation does."""

from __future__ import annotations

import random
import textwrap

import pytest
from gluonize.gluon.trees.function import parsed
from gluonize.output.merging.one_text import Variant, one_text
from gluonize.write.contracts.configuration import Key


def program(rng: random.Random, depth: int = 0) -> list[str]:
    """Statements that write down what they do."""
    lines: list[str] = []
    for _ in range(rng.randint(2, 6)):
        name, value = rng.choice("abcd"), rng.randint(0, 2)
        kind = rng.random()
        if kind < 0.2 and depth < 2:
            head = rng.choice([f"for i{depth} in range({value + 1}):", f"if {name} > {value}:"])
            lines += [head, *textwrap.indent("\n".join(program(rng, depth + 1)), "    ").split("\n")]
        elif kind < 0.4:
            lines.append(f"{name} += {value}")
        elif kind < 0.5:
            lines.append(f"say(call({name}, mask={value}))")
        elif kind < 0.7:
            bound = f"call({rng.choice('abcd')}, {value})"
            lines.append(f"{name} = call({rng.choice('abcd')}, mask={rng.choice('abcd')} {rng.choice('<>')} {bound})")
        else:
            lines.append(f"{name} = call({rng.choice('abcd')}, {value}, mask={rng.choice('abcd')} + {value})")
    return lines


def changed(rng: random.Random, lines: list[str]) -> list[str]:
    """Some statements gone, some new, some with another number."""
    out: list[str] = []
    for line in lines:
        head = line.strip().endswith(":")
        if rng.random() < 0.15 and not head and not out[-1:] == [":"] and not (out and out[-1].endswith(":")):
            continue
        if rng.random() < 0.15 and not head:
            line = line.replace("0", "7") if rng.random() < 0.5 else line.replace("mask=", "mask=1 + ")
        out.append(line)
        if rng.random() < 0.1 and not head:
            out.append(line[: len(line) - len(line.lstrip())] + f"say({rng.randint(0, 9)})")
    return out


def function(lines: list[str]) -> str:
    return "def k(MODE, N):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def run(text: str, mode: int) -> list:
    said: list = []
    space = {
        "say": said.append,
        "call": lambda x, *more, mask=0: (x if isinstance(x, int) else 1) + 3 * mask % 101 + sum(more),
    }
    exec(text, space)
    before = "def k(MODE, N):\n    a, b, c, d = 1, 2, 3, 4\n"
    exec(before + text.removeprefix("def k(MODE, N):\n") + "    say((a, b, c, d))\n", space)
    space["k"](mode, mode * 10)
    return said


@pytest.mark.one_of(3)
@pytest.mark.parametrize("count", [2, 3, 4])
def test_each_launch_does_what_its_own_text_does(count):
    rng = random.Random(count)
    merged = 0
    for _ in range(60):
        base = program(rng)
        texts = [function(base), *(function(changed(rng, base)) for _ in range(count - 1))]
        served = [({Key("constexpr", "MODE"): n, Key("constexpr", "N"): n * 10},) for n in range(count)]
        one = one_text([Variant(parsed(text), c) for text, c in zip(texts, served)])
        if one is None:
            continue
        merged += 1
        for n, text in enumerate(texts):
            assert run(one.text, n) == run(text, n), one.text
    assert merged > 30


def variants(*texts: str) -> list[Variant]:
    return [Variant(parsed(text), ({Key("constexpr", "C"): c},)) for text, c in zip(texts, (True, False))]


def test_arguments_that_differ_are_conditional_expressions():
    a, b = (f"def k(x, C):\n    y = load(x, other={other})\n    store(y)\n" for other in ("x + 1", "2"))
    assert one_text(variants(a, b)).text == "def k(x, C):\n    y = load(x, other=x + 1 if C else 2)\n    store(y)\n"


def test_masks_that_differ_in_a_bound_are_one_with_that():
    a, b = (f"def k(x, C):\n    y = load(x, mask=(x >= 0) & (x < {n}))\n    store(y)\n" for n in "12")
    text = "def k(x, C):\n    y = load(x, mask=(x >= 0) & (x < (1 if C else 2)))\n    store(y)\n"
    assert one_text(variants(a, b)).text == text


def test_a_bound_of_several_masks_has_a_name_as_long_as_it_is_the_same():
    form = "def k(x, n, C):\n    y = load(x, mask=x < {0})\n    z = load(y, mask=y[None] < {0})\n    n = f(y)\n    store(z, mask=z < {0})\n"
    text = one_text(variants(form.format("where(n, 1)"), form.format("n"))).text
    assert text.splitlines()[1:] == [
        "    x_end = where(n, 1) if C else n",
        "    y = load(x, mask=x < x_end)",
        "    z = load(y, mask=y[None] < x_end)",
        "    n = f(y)",
        "    z_end = where(n, 1) if C else n",
        "    store(z, mask=z < z_end)",
    ]


def test_what_only_one_launch_does_is_in_a_branch():
    a, b = "def k(x, C):\n    # Why.\n    f(x)\n    g(x)\n", "def k(x, C):\n    g(x)\n"
    assert one_text(variants(a, b)).text == "def k(x, C):\n    if C:\n        # Why.\n        f(x)\n    g(x)\n"


def test_names_that_differ_in_a_number_become_one():
    layouts = "gl.BlockedLayout([1], [64], [4], [0])", "gl.BlockedLayout([2], [64], [4], [0])"
    a = "def k(x, C):\n    m: gl.constexpr = {}\n    m_2: gl.constexpr = {}\n\n    f(x, m)\n    g(x, m_2)\n"
    text = one_text(
        variants(
            a.format(*layouts), a.format(*layouts[::-1]).replace("f(x, m)", "f(x, m_2)").replace("g(x, m_2)", "g(x, m)")
        )
    ).text
    assert text == a.format(*layouts)


def test_a_condition_on_what_the_kernel_assigns_is_asked_first():
    a, b = (f"def k(x, C):\n    C = C + 1\n    y = {f}(x)\n    y = {f}(y)\n" for f in "fg")
    text = one_text(variants(a, b)).text
    head = text.split("\n")[1].strip()
    assert head == "c: gl.constexpr = C" and "f(x) if c else g(x)" in text


def test_a_return_of_one_launch_keeps_texts_apart():
    a, b = "def k(x, C):\n    f(x)\n    return\n", "def k(x, C):\n    f(x)\n"
    assert one_text(variants(a, b)) is None


def test_what_differs_in_the_same_way_is_in_one_branch():
    texts = ["def k(x, C):\n" + "".join(f"    {f}{i}(x)\n" for i in range(3)) + "    g(x)\n" for f in ("a", "b", "a")]
    served = [({Key("constexpr", "C"): n},) for n in range(3)]
    text = one_text([Variant(parsed(t), c) for t, c in zip(texts, served)]).text
    assert text.count("if C == 1:") == 1 and text.count("else:") == 1, text
