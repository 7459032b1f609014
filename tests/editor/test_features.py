"""`gluonize lsp` in a real client, on three fixtures: hovers, places, hints, lenses, and how long they take."""

from __future__ import annotations

import re

import pytest
from editor_client import BEING_COMPUTED, QUICK_S, until

from gluonize.product.cli.edge import run

# fixture -> (word, a line of the translation that has it) -> what is said over it
VALUES = {
    "matmul": {
        ("offs_k_b", "offs_k_b ="): ["`gl.SliceLayout(1, b_load)`: 64 int32", "4 registers per lane", "kernel.py:26"],
        ("a_offs", "a_smem.index(t), a_base, a_offs"): ["`a_load`: 128x64 int32", "a_ptrs (base and offsets)"],
        ("acc", "acc = cdna4.mfma"): ["`mma`: 128x128 fp32", "64 registers per lane", "kernel.py:35"],
        ("c", "c = acc.to("): ["`mma`: 128x128 fp16/bf16", "anchor: ", "kernel.py:38"],
        ("convert_layout", "gl.convert_layout(c, c_store)"): ["conversion `c`", "`mma -> c_store`", "kernel.py:44"],
    },
    "softmax": {
        ("col_offsets", "col_offsets = gl.arange"): ["`layout`: 1024 int32", "4 registers per lane", "kernel.py:16"],
        ("buffer_load", "cdna4.buffer_load("): ["access `load(", "buffer operation", "within 2 GiB", "kernel.py:21"],
        ("denominator", "denominator = "): ["From kernel.py:25"],
    },
    "flash_attention": {
        ("m_ij", "m_ij = gl.maximum"): ["`gl.SliceLayout(1, mma)`: 128 fp32", "1 register per lane", "kernel.py:28"],
        ("k", "k = async_copy.load_shared_relaxed"): ["`k_operand`: 64x64 fp16", "kernel.py:20"],
    },
}
# fixture -> layout -> what is said of it
LAYOUTS = {
    "matmul": {
        "a_load": ["128x64 int32: `a_ptrs (base and offsets)` (kernel.py:27, 36)", "4 warps, 64 lanes, 32 registers a lane"],
        "a_shared": ["128x64 fp16/bf16: `tl.load(...)` (kernel.py:33)", "16624 bytes of LDS", "64 banks"],
        "a_operand": ["gl.DotOperandLayout(0, gl.amd.AMDMFMALayout(", "128x64 fp16/bf16: `a`"],
    },
    "softmax": {"layout": ["gl.BlockedLayout([4], [64], [4], [0])", "1024 int32: `col_offsets` (kernel.py:16)", "warp.lane:registers"]},
    "flash_attention": {"k_shared": ["64x64 fp16: `tl.load(...)` (kernel.py:20, 22)", "bytes of LDS", "conflicts"]},
}  # fmt: skip
# fixture -> (line of the source, variable) -> hint
HINTS = {
    "matmul": {
        (24, "offs_am"): ": int32[128] slice 1 of a_load",
        (26, "offs_k"): ": int32[64] slice 0 of a_load | slice 1 of b_load",
        (30, "acc"): ": fp32[128x128] mma (mfma 32x32x16)",
        (33, "a"): ": fp16/bf16[128x64] a_operand (operand 0 of mfma 32x32x16)",
        (43, "c_mask"): ": int1[128x128] c_store (distributed linear)",
    },
    "softmax": {(16, "col_offsets"): ": int32[1024] layout (blocked 4)"},
    "flash_attention": {
        (20, "k"): ": fp16[64x64] k_operand (operand 1 of mfma 32x32x16)",
        (28, "m_ij"): ": fp32[128] slice 1 of mma",
        (57, "q_ptrs"): ": int32[128x64] q_load (blocked 1x8)",
    },
}


def drawing(text: str) -> list[str]:
    return text.partition("```text\n")[2].partition("\n```")[0].splitlines()


def test_a_value_has_its_layout_its_cost_and_its_origin(opened):
    name, editor, _, text, _ = opened
    for (word, within), expected in VALUES[name].items():
        said = editor.hover_over("kernel_gfx950.py", text, word, within)
        assert [x for x in expected if x not in said] == [], said


def test_a_layout_is_drawn_as_gluonize_layout_draws_it(opened, capsys):
    name, editor, _, text, _ = opened
    for layout, expected in LAYOUTS[name].items():
        said = editor.hover_over("kernel_gfx950.py", text, layout, f"{layout}: gl.constexpr")
        assert [x for x in expected if x not in said] == [], said
        command = re.search(r"`gluonize layout '(.*)' --shape (\S+) --bits (\d+) -t (\w+)`", said)
        assert run(["layout", command[1], "--shape", command[2], "--bits", command[3], "-t", command[4]]) == 0
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        shown = [line.removesuffix("...") for line in drawing(said) if "more rows" not in line]
        assert len(shown) > 3
        assert [line for line in shown if not any(one.startswith(line) for one in printed)] == []


def test_a_layout_spelled_in_place_is_drawn_too(opened):
    name, editor, _, text, _ = opened
    if name == "softmax":
        pytest.skip("it spells none in place")
    said = editor.hover_over("kernel_gfx950.py", text, "SliceLayout", "layout=gl.SliceLayout(1,")
    assert "Not drawn" not in said, said
    assert said.startswith("**gl.SliceLayout(1, ") and "warp.lane:registers" in said


def test_a_variable_of_the_source_says_what_became_of_it(opened):
    name, editor, source, result, _ = opened
    for (line, word), label in HINTS[name].items():
        said = editor.hover_over("kernel.py", source, word, source.splitlines()[line - 1].strip())
        layout = label.partition("] ")[2].partition(" |")[0].partition(" (")[0].split()[-1]  # `slice 1 of a_load`
        assert f"**{word}**" in said and re.search(rf"`[^`]*\b{layout}\b[^`]*`", said)
        numbers = re.search(r"In kernel_gfx950.py, line ([\d, ]+\d)", said)[1]
        assert all(f"{result.splitlines()[int(n) - 1].strip()}" in said for n in numbers.split(", ")[:1])


def test_lines_that_both_files_have_lead_to_each_other(opened):
    _, editor, source, result, _ = opened
    ours, theirs = result.splitlines(), source.splitlines()
    same = [
        (n, theirs.index(line) + 1)
        for n, line in enumerate(ours, 1)
        if line.strip() and ours.count(line) == 1 == theirs.count(line) and not line.startswith(("import", "from", '"'))
    ]
    assert len(same) > 5
    for there, here in same:
        assert editor.definition("kernel_gfx950.py", there) == [("kernel.py", here)]
        first = next(n for n, _ in same if n == there)
        places = editor.implementation("kernel.py", here)
        assert ("kernel_gfx950.py", first) in places or any(n < first for _, n in places)


def test_what_has_no_counterpart_leads_to_the_nearest_line_above(opened):
    name, editor, source, result, _ = opened
    if name != "matmul":
        pytest.skip("read from the fixture's translation")
    line = next(n for n, row in enumerate(result.splitlines(), 1) if "async_copy.commit_group()" in row)
    origin = next(n for n, row in enumerate(source.splitlines(), 1) if "b = tl.load(" in row)
    assert editor.definition("kernel_gfx950.py", line) == [("kernel.py", origin)]


def test_hints_are_beside_the_variables_of_the_source(opened):
    name, editor, source, _, _ = opened
    found = until(lambda: editor.hints("kernel.py"), bool)
    assert editor.refreshed
    for (line, variable), label in HINTS[name].items():
        row = source.splitlines()[line - 1]
        assert found[(line, row.index(variable) + len(variable))] == label
    assert editor.hints("kernel_gfx950.py") == {}


def test_lenses_have_the_figures_that_translate_prints(opened):
    """`matmul/fp16  gfx950  0.88x  0.91x ...` of the table; `-` where there are no two loops to compare."""
    name, editor, source, result, printed = opened
    kernel = next(n for n, row in enumerate(source.splitlines(), 1) if row == "@triton.jit" and n)
    rows = re.findall(rf"^({name}/\S+) +gfx950 +(\S+)x +(\S+) ", printed, re.M)
    assert len(rows) == 2

    def known(file: str) -> list[tuple[int, str]]:
        found = until(lambda: editor.lenses(file), lambda x: x and all(BEING_COMPUTED not in text for _, text in x))
        return found

    found = known("kernel_gfx950.py")
    assert len(found) == len(rows)
    for launch, all_of_it, loop in rows:
        line, said = next((n, text) for n, text in found if text.startswith(f"{launch} on gfx950: "))
        assert f"{all_of_it}x the instructions of Triton's compile" in said
        assert (f"{loop} in the hottest loop" in said) == (loop != "-")
        assert re.match(r"@gluon\.jit|def ", result.splitlines()[line - 1])
    (line, said), *more = known("kernel.py")
    assert not more and line >= kernel and said.startswith("gfx950: 2 launches: ") and rows[0][1] in said


def test_every_answer_is_quick_when_the_first_is_there(opened):
    _, editor, source, result, _ = opened
    until(lambda: editor.hover("kernel_gfx950.py", 30, 4), lambda said: BEING_COMPUTED not in said)
    del editor.seconds[:]
    for line in range(1, len(result.splitlines()) + 1, 7):
        editor.hover("kernel_gfx950.py", line, 8)
        editor.definition("kernel_gfx950.py", line)
    for line in range(1, len(source.splitlines()) + 1, 3):
        editor.hover("kernel.py", line, 8)
        editor.implementation("kernel.py", line)
    editor.hints("kernel.py")
    editor.lenses("kernel.py")
    assert max(editor.seconds) < QUICK_S
