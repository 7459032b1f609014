"""Hand edits meet a new translation: ten things people do to a generated kernel, and real conflicts."""

import ast
from pathlib import Path

import pytest

from gluonize.product.project.edits.diff3 import merge_sequences
from gluonize.product.project.edits.merge import find_renames, merge_texts

BASE = (Path(__file__).parent / "project_matmul.txt").read_text()
LABELS = ("edited", "before", "new")
WAIT = "async_copy.wait_group(NUM_BUFFERS - 2)"
SCALE = ("    c = acc.to(c_ptr.dtype.element_ty)\n", "    acc = acc * scale\n    c = acc.to(c_ptr.dtype.element_ty)\n")
GROUP = ("    group_id = pid // num_pid_in_group\n", "    group_id = pid // (num_pid_in_group + 0)\n")
ARGUMENT = ("    M, N, K,\n    stride_am", "    M, N, K, scale,\n    stride_am")
TAIL = ("        # The last tile may be partial.\n", "        # The last tile of K may be partial.\n")


def changed(text, *replacements):
    for old, new in replacements:
        assert old in text, f"the base has no {old!r}"
        text = text.replace(old, new)
    return text


# name -> (what the hand did, what the new translation has, what must be in the result, what must not)
SCENARIOS = {
    "renamed variable": (
        [("acc =", "total ="), ("acc)", "total)"), ("acc.to", "total.to")],
        [ARGUMENT, SCALE],
        ["total = total * scale", "total = cdna4.mfma(a, b, total)", "c = total.to("],
        ["acc "],
    ),
    "changed tile": (
        [("warps_per_cta=[2, 2]", "warps_per_cta=[4, 1]"), ("[NUM_BUFFERS, 128, 64]", "[NUM_BUFFERS, 256, 64]")],
        [SCALE, GROUP],
        ["warps_per_cta=[4, 1]", "[NUM_BUFFERS, 256, 64]", SCALE[1], GROUP[1]],
        [],
    ),
    "new argument by hand, another by the source": (
        [
            (
                "    NUM_BUFFERS: gl.constexpr = 2,\n",
                "    NUM_BUFFERS: gl.constexpr = 2,\n    SWIZZLE: gl.constexpr = 0,\n",
            )
        ],
        [ARGUMENT],
        ["    SWIZZLE: gl.constexpr = 0,\n", "M, N, K, scale,"],
        [],
    ),
    "tuned wait beside a line that the source changes": (
        [(WAIT, "async_copy.wait_group(NUM_BUFFERS - 1)")],
        [("        k_ahead = k + NUM_BUFFERS - 1\n", "        k_ahead = k + (NUM_BUFFERS - 1)\n"), TAIL],
        ["wait_group(NUM_BUFFERS - 1)", "k_ahead = k + (NUM_BUFFERS - 1)", TAIL[1]],
        [WAIT],
    ),
    "deleted comment": (
        [("    # Programs walk C in groups of GROUP_M rows so that B tiles stay in L2.\n", "")],
        [GROUP],
        [GROUP[1]],
        ["# Programs walk C"],
    ),
    "comment added beside a line that the source changes": (
        [(GROUP[0], "    # Measured: 8 is best on 304 CUs.\n" + GROUP[0])],
        [GROUP],
        ["    # Measured: 8 is best on 304 CUs.\n" + GROUP[1]],
        [],
    ),
    "more buffers while the source gains an argument": (
        [("NUM_BUFFERS: gl.constexpr = 2", "NUM_BUFFERS: gl.constexpr = 3")],
        [("GROUP_M: gl.constexpr,\n", "GROUP_M: gl.constexpr, EVEN_K: gl.constexpr,\n")],
        ["NUM_BUFFERS: gl.constexpr = 3", "EVEN_K: gl.constexpr"],
        [],
    ),
    "moved statement": (
        [
            ("        async_copy.commit_group()\n        a = async_copy", "        a = async_copy"),
            ("a_operand)\n        b =", "a_operand)\n        async_copy.commit_group()\n        b ="),
        ],
        [GROUP, SCALE],
        ["a_operand)\n        async_copy.commit_group()\n        b =", GROUP[1], SCALE[1]],
        ["        async_copy.commit_group()\n        a = async_copy"],
    ),
    "two changes in one line of host code": (
        [("num_warps=4, num_stages=2,\n", "num_warps=4, num_stages=3,\n")],
        [("BLOCK_K=64, GROUP_M=8, num_warps", "BLOCK_K=64, GROUP_M=4, num_warps")],
        ["BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=4, num_warps=4, num_stages=3,"],
        [],
    ),
    "a block replaced by hand": (
        [
            (
                "    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)\n",
                "    if EVEN:\n        c_mask = None\n    else:\n        c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)\n",
            )
        ],
        [("(sha256 92eff5b8fe5f)", "(sha256 000000000000)"), SCALE],
        ["    if EVEN:\n        c_mask = None\n", "(sha256 000000000000)", SCALE[1]],
        ["92eff5b8fe5f"],
    ),
    "instruction scheduling added in the loop": (
        [
            (
                "        acc = cdna4.mfma(a, b, acc)\n",
                "        gl.amd.sched_barrier(0)\n        acc = cdna4.mfma(a, b, acc)\n",
            )
        ],
        [("acc = cdna4.mfma(a, b, acc)\n", "acc = cdna4.mfma(b, a, acc)\n")],
        ["        gl.amd.sched_barrier(0)\n        acc = cdna4.mfma(b, a, acc)\n"],
        [],
    ),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("use_git", [True, False], ids=["git", "without-git"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_edits_and_changes_are_both_kept(name, use_git):
    by_hand, by_source, present, absent = SCENARIOS[name]
    merge = merge_texts(BASE, changed(BASE, *by_hand), changed(BASE, *by_source), LABELS, use_git)
    assert merge.conflicts == ()
    ast.parse(merge.text)
    assert [text for text in present if text not in merge.text] == []
    assert [text for text in absent if text in merge.text] == []
    changed_lines = set(merge.text.splitlines()) - set(BASE.splitlines())
    allowed = set(changed(BASE, *by_hand).splitlines()) | set(changed(BASE, *by_source).splitlines())
    mixed = changed_lines - allowed  # lines that only the merge has: none but those that both sides had a part in
    assert all(any(text in line or line in text for text in present) for line in mixed), mixed


@pytest.mark.parametrize("use_git", [True, False], ids=["git", "without-git"])
def test_two_different_changes_of_one_number_are_a_conflict(use_git):
    edited = changed(BASE, ("wait_group(NUM_BUFFERS - 2)", "wait_group(1)"))
    new = changed(BASE, ("wait_group(NUM_BUFFERS - 2)", "wait_group(2)"))
    merge = merge_texts(BASE, edited, new, LABELS, use_git)
    lines = merge.text.splitlines()
    assert len(merge.conflicts) == 1
    assert lines[merge.conflicts[0] - 1] == "<<<<<<< edited"
    start = merge.conflicts[0]
    assert [line.strip() for line in lines[start : start + 7]] == [
        "async_copy.wait_group(1)", "||||||| before", "async_copy.wait_group(NUM_BUFFERS - 2)", "=======",
        "async_copy.wait_group(2)", ">>>>>>> new", "k_ahead = k + NUM_BUFFERS - 1",
    ]  # fmt: skip


def test_a_changed_line_that_the_source_deletes_is_a_conflict():
    edited = changed(BASE, (GROUP[0], "    group_id = pid // num_pid_in_group * 1\n"))
    assert merge_texts(BASE, edited, changed(BASE, (GROUP[0], "")), LABELS).conflicts


def test_neighbouring_words_are_not_merged():
    base, edited, new = "x = a + b\n", "x = a * b\n", "x = a + c\n"
    assert merge_texts(base, edited, new, LABELS).conflicts == (1,)


def test_the_same_change_on_both_sides_is_no_conflict():
    new = changed(BASE, GROUP)
    assert merge_texts(BASE, new, new, LABELS).text == new


@pytest.mark.parametrize("use_git", [True, False], ids=["git", "without-git"])
def test_marker_like_lines_in_the_text_are_text(use_git):
    base = "'''\n=======\n<<<<<<< x\n'''\na = 1\n"
    merge = merge_texts(base, base.replace("a = 1", "a = 2"), base, LABELS, use_git)
    assert merge.text == base.replace("a = 1", "a = 2")


class TestRenames:
    BASE = "def f(a):\n    x = a + 1\n    y = x * x\n    return y\n"

    def test_found(self):
        edited = self.BASE.replace("x", "wide")
        assert list(find_renames(self.BASE, edited, self.BASE)) == [("f", "x", "wide")]

    def test_not_when_the_old_name_is_still_used(self):
        edited = self.BASE.replace("y = x * x", "y = wide * x")
        assert list(find_renames(self.BASE, edited, self.BASE)) == []

    def test_not_when_the_new_translation_uses_the_new_name(self):
        edited = self.BASE.replace("x", "wide")
        new = self.BASE.replace("return y", "wide = 2\n    return y")
        assert list(find_renames(self.BASE, edited, new)) == []

    def test_keywords_and_attributes_keep_their_names(self):
        base = "def f(p, mask):\n    load(p, mask=mask)\n    return p.mask\n"
        edited = "def f(p, valid):\n    load(p, mask=valid)\n    return p.mask\n"
        new = base.replace("    return", "    store(p, mask=mask)\n    return")
        merge = merge_texts(base, edited, new, LABELS)
        assert merge.text == edited.replace("    return", "    store(p, mask=valid)\n    return")

    def test_a_text_that_is_not_python_merges_by_lines(self):
        assert merge_texts("a(\nb\nc\n", "a(\nb\nd\n", "e(\nb\nc\n", LABELS).text == "e(\nb\nd\n"


def test_chunks_hold_everything_in_order():
    base, mine, theirs = "abcdef", "abXdef", "abcdeYf"
    chunks = merge_sequences(base, mine, theirs)
    assert "".join("".join(c.base) for c in chunks) == base
    assert "".join("".join(c.mine) for c in chunks) == mine
    assert "".join("".join(c.theirs) for c in chunks) == theirs
    assert "".join("".join(c.merged) for c in chunks) == "abXdeYf"
