"""Statements of a translation know which line of the source they came from, and a review takes their word."""

import pytest
from gluonize.product.report.review.correspondence import correspond
from gluonize.product.report.review.rows import rows_of
from gluonize.read.text.source_text import kept_lines, replace_spans
from translation_of import launch, translate

SOURCE = '''"""Two sums that look alike."""
import triton
import triton.language as tl

SCALE = 2


@triton.jit
def twice(x):
    return x * 2


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    # Of one.
    for k in range(0, n, BLOCK):
        a = tl.load(a_ptr + k + offs, mask=offs < n - k, other=0.0)
        total += a
    # Of the other.
    for k in range(0, n, BLOCK):
        a = tl.load(b_ptr + k + offs, mask=offs < n - k, other=0.0)
        total += a
    if BLOCK > 16:
        total = twice(total)
    else:
        total = total + 1
    tl.store(c_ptr, tl.sum(total))


def host(x):
    if x:
        return SCALE
    return kernel
'''


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("origins")
    signature = {"a_ptr": "*fp32", "b_ptr": "*fp32", "c_ptr": "*fp32", "n": "i32"}
    launches = [launch("kernel", signature, {"BLOCK": block}, id=f"k/{block}") for block in (16, 1024)]
    return translate(folder, SOURCE, *launches)


def test_every_statement_that_is_still_there_knows_its_line(translated):
    source, result = SOURCE.splitlines(), translated.text.splitlines()
    came: dict[int, list[str]] = {}
    for line, origin in translated.origins:
        came.setdefault(origin, []).append(result[line - 1].strip())
    assert set(came) >= {*range(15, 17), *range(18, 21), *range(22, 26), 26, 29, *range(32, 36)}
    for number in (20, 24):  # the same text twice
        assert source[number - 1].strip() in came[number]
    for number, pointer in ((19, "a_ptr"), (23, "b_ptr")):
        assert all(pointer in text for text in came[number] if "load" in text) and came[number]
    assert came[34] == ["return SCALE"] and "def host(x):" in came[32]


def test_a_review_takes_the_word_of_statements_before_likeness(translated):
    found = correspond(SOURCE, translated.text, dict(translated.origins))
    for line, origin in translated.origins:
        assert origin in found.lines[line - 1].source
    rows = rows_of(found)
    assert sorted(r.left for r in rows if r.left) == list(range(1, len(SOURCE.splitlines()) + 1))
    swapped = {line: {20: 24, 24: 20}.get(origin, origin) for line, origin in translated.origins}
    wrong = correspond(SOURCE, translated.text, swapped)
    assert [x.source for x in wrong.lines] != [x.source for x in found.lines]


def test_lines_of_edited_text_are_those_that_their_code_came_from():
    text = "a = 1\nb = f(\n    2\n)\nc = 3\n"
    at = text.index("c = 3")
    spans = [
        (0, 1, "x", ()),
        (at, at, "new = 0\n", ()),
        (text.index("2"), text.index("2") + 1, "20", ()),
        (at, at + 5, "c = 3\nd = 4", (5, 0)),
    ]
    made = replace_spans(text, 0, len(text), [span[:3] for span in spans])
    assert list(zip(made.split("\n"), kept_lines(text, 0, len(text), spans))) == [
        ("x = 1", 1), ("b = f(", 2), ("    20", 3), (")", 4), ("new = 0", 0), ("c = 3", 5), ("d = 4", 0), ("", 0)
    ]  # fmt: skip
