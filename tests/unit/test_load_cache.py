"""What loads say to the caches (`--choose load-cache=streamed`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but
from translation_of import dedent, launch, tensor, validated

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.lower.jobs import lower_file

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def doubled(x_ptr, y_ptr, n, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y_ptr + o, tl.load(x_ptr + o) * 2)
    """)
LOOP = SOURCE.replace(
    "    tl.store(y_ptr + o, tl.load(x_ptr + o) * 2)",
    "    for i in range(n):\n        tl.store(y_ptr + o + i * B, tl.load(x_ptr + o + i * B) * 2)",
)
MOVED = SOURCE.replace(
    "    tl.store(y_ptr + o, tl.load(x_ptr + o) * 2)",
    "    x_ptrs = x_ptr + o\n    total = tl.zeros([B], tl.float32)\n    for i in range(n):\n"
    "        total += tl.load(x_ptrs)\n        x_ptrs += B\n    tl.store(y_ptr + o, total)",
)
PRODUCT = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, w_ptr, y_ptr, n, B: tl.constexpr):
        r = tl.arange(0, B)
        a_ptrs = x_ptr + tl.program_id(0) * B * B * n + r[:, None] * B + r[None, :]
        w_ptrs = w_ptr + r[:, None] * B + r[None, :]
        acc = tl.zeros([B, B], tl.float32)
        for k in range(n):
            acc += tl.dot(tl.load(a_ptrs), tl.load(w_ptrs))
            a_ptrs += B * B
            w_ptrs += B * B
        tl.store(y_ptr + tl.program_id(0) * B * B + r[:, None] * B + r[None, :], acc)
    """)
STREAMED = choices_of(load_cache="streamed")
SIZE = 256


def written(
    folder: Path, text: str = SOURCE, choices: Choices = STREAMED, attrs: str = "DS", target: str = "gfx950"
) -> str:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    values = {"x_ptr": tensor(4 * SIZE), "y_ptr": tensor(4 * SIZE), "n": 3}
    given = dict.fromkeys(("x_ptr", "y_ptr"), attrs)
    spec = launch("doubled", signature, {"B": SIZE}, attrs=given, values=values)
    made = validated(folder, text, spec, target, chosen=(("doubled", choices),))
    lower_file(str(folder / "output.py"), spec, target)
    return made


@pytest.mark.compile
@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx942", "gfx1250", "gfx1100", "gfx1201"]))
def test_a_load_says_that_nothing_reads_it_again(target: str, tmp_path: Path):
    assert 'x_ptr, o, cache=".cs")' in written(tmp_path, target=target)


@pytest.mark.compile
def test_a_load_by_pointers_too(tmp_path: Path):
    assert '(x_ptr + o, cache_modifier=".cs")' in written(tmp_path, attrs="D")


@pytest.mark.compile
@pytest.mark.parametrize("text", [LOOP, MOVED], ids=["by its index", "by a pointer that it moves"])
def test_a_load_of_a_loop_that_moves_it(text: str, tmp_path: Path):
    assert written(tmp_path, text).count('".cs"') == 1


@pytest.mark.compile
@pytest.mark.parametrize(
    "text",
    [
        LOOP.replace("tl.load(x_ptr + o + i * B)", "tl.load(x_ptr + o)"),
        SOURCE.replace("tl.load(x_ptr + o)", "tl.load(x_ptr + tl.arange(0, B))"),
        SOURCE.replace("tl.load(x_ptr + o)", "tl.load(x_ptr + tl.program_id(0) // 2 * B + tl.arange(0, B))"),
        SOURCE.replace("tl.load(x_ptr + o)", "tl.load(x_ptr + o + tl.program_id(1) % 2)"),
        SOURCE.replace("tl.load(x_ptr + o)", "(tl.load(x_ptr + o) + tl.load(x_ptr + o + 1))"),
    ],
    ids=["every iteration", "every program", "two programs", "programs of another axis", "another load"],
)
def test_what_is_read_more_than_once_is_left(text: str, tmp_path: Path):
    assert '".cs"' not in written(tmp_path, text)


@pytest.mark.compile
@pytest.mark.parametrize(
    "choices, more",
    [
        (Choices(), ""),
        (STREAMED, ', cache_modifier=".cg"'),
        (STREAMED, ', eviction_policy="evict_last"'),
        (STREAMED, ", volatile=True"),
    ],
    ids=["not asked for", "a modifier of the source", "a policy of the source", "a volatile load"],
)
def test_what_the_source_says_is_kept(choices: Choices, more: str, tmp_path: Path):
    text = written(tmp_path, SOURCE.replace("tl.load(x_ptr + o)", f"tl.load(x_ptr + o{more})"), choices)
    assert '".cs"' not in text and ('".cg"' in text) == (".cg" in more)


@pytest.mark.compile
@pytest.mark.parametrize(
    "target, marked",
    slow_but([("gfx950", "nt lds"), ("gfx942", "offen sc0 nt"), ("gfx1250", "th:TH_LOAD_NT")]),
)
def test_copies_of_a_pipelined_loop(target: str, marked: str, tmp_path: Path):
    signature = {"x_ptr": "*fp16", "w_ptr": "*fp16", "y_ptr": "*fp32", "n": "i32"}
    values = {"x_ptr": tensor(4 * 64 * 64), "w_ptr": tensor(4 * 64 * 64), "y_ptr": tensor(64 * 64), "n": 4}
    spec = launch("product", signature, {"B": 64}, values=values)
    text = validated(tmp_path, PRODUCT, spec, target, chosen=(("product", STREAMED),))
    assert marked in lower_file(str(tmp_path / "output.py"), spec, target, keep_stages=True).stages["amdgcn"]
    said = [line for line in text.splitlines() if '".cs"' in line]
    assert said and not any("w_" in line for line in said)
