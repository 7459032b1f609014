"""Warp-specialized loops as they are emitted: right in every order of the partitions; each wait, arrival and count matters."""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from planted import KERNELS, matmul_launch, run_matmul
from slow_rows import slow_but_crossed

import fixture_set

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "pipeline"))

from test_generated import run  # noqa: E402
from gluonize.product.report.explain.job import explain_launch  # noqa: E402
from gluonize.request import TranslateRequest, TranslateResult  # noqa: E402
from gluonize.read.spec.launch import read_launches  # noqa: E402
from gluonize.translation import translate_kernel  # noqa: E402
from gluonize.judge.verdict.run import validate_pair  # noqa: E402
from gluonize.judge.machine.stages import source_stage, translated_stage  # noqa: E402

TARGET, STRATEGY = "gfx1250", "warp-specialized"
MATMUL = (KERNELS / "matmul.py").read_text()
LOOP = "range(0, tl.cdiv(K, BLOCK_K))"
FOUND = ("hazard", "mismatch")


def translated(path: Path, strategy: str | None = STRATEGY, target: str = TARGET) -> TranslateResult:
    return translate_kernel(TranslateRequest(str(path), target, launches=(matmul_launch(),), strategy=strategy))


@functools.lru_cache(maxsize=None)
def matmul() -> str:
    result = translated(KERNELS / "matmul_pointers.py")
    assert result.text is not None
    return result.text


def edited(text: str, before: str, after: str) -> str:
    assert text.count(before) == 1, f"{before!r} is there {text.count(before)} times"
    return text.replace(before, after)


# Each wait, arrival and count of the emitted matmul: what it becomes.
PLANTED = {
    "producer does not wait": ("mbarrier.wait(empty.index(slot), phase ^ 1)", "pass"),
    "producer waits for this phase": ("mbarrier.wait(empty.index(slot), phase ^ 1)", "mbarrier.wait(empty.index(slot), phase)"),
    "consumer does not wait": ("mbarrier.wait(ready.index(slot), phase)", "pass"),
    "consumer waits for the phase before": ("mbarrier.wait(ready.index(slot), phase)", "mbarrier.wait(ready.index(slot), phase ^ 1)"),
    "copies do not arrive": ("async_copy.mbarrier_arrive(ready.index(slot))", "pass"),
    "reads do not arrive": ("mbarrier.arrive(empty.index(slot))", "pass"),
    "reads arrive twice": ("mbarrier.arrive(empty.index(slot))", "mbarrier.arrive(empty.index(slot), count=2)"),
    "ready counts warps": ("mbarrier.init(ready.index(t), 4 * 32)", "mbarrier.init(ready.index(t), 4)"),
    "ready counts one more": ("mbarrier.init(ready.index(t), 4 * 32)", "mbarrier.init(ready.index(t), 4 * 32 + 1)"),
    "empty counts warps": ("mbarrier.init(empty.index(t), 4 * 32)", "mbarrier.init(empty.index(t), 4)"),
    "empty counts one more": ("mbarrier.init(empty.index(t), 4 * 32)", "mbarrier.init(empty.index(t), 4 * 32 + 1)"),
    "no barrier after initialisation": ("    gl.barrier()\n", ""),
    "reads arrive before they are done": (
        "        a = a_smem.index(slot).load(a_operand)\n        b = b_smem.index(slot).load(b_operand)\n"
        "        mbarrier.arrive(empty.index(slot))\n",
        "        mbarrier.arrive(empty.index(slot))\n"
        "        a = a_smem.index(slot).load(a_operand)\n        b = b_smem.index(slot).load(b_operand)\n",
    ),
    "one copy arrives with the next": (
        "        async_copy.mbarrier_arrive(ready.index(slot))\n        a_offs",
        "        async_copy.mbarrier_arrive(ready.index(phase))\n        a_offs",
    ),
}  # fmt: skip


@pytest.mark.compile
@pytest.mark.parametrize("buffers", [2, 3])
def test_all_trip_counts_are_right(buffers: int, tmp_path: Path):
    assert set(run(matmul(), TARGET, buffers, tmp_path).values()) == {"validated"}


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("before, after", PLANTED.values(), ids=PLANTED)
def test_planted_bug_is_found(before: str, after: str, tmp_path: Path):
    result = run_matmul(edited(matmul(), before, after), TARGET, tmp_path)
    assert result.status in FOUND, result.reason


# Attention ----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def attention() -> str:
    return (fixture_set.ROOT / "flash_attention" / "golden" / "gfx1250_warp_specialized.py").read_text()


def validate_attention(text: str, folder: Path, launch: str = "flash_attention/causal"):
    file = folder / "attention.py"
    file.write_text(text)
    fixture = fixture_set.ROOT / "flash_attention"
    (spec,) = [s for s in read_launches(str(fixture / "launches.json")) if s.id == launch]
    left = source_stage(str(fixture / "kernel.py"), spec, TARGET)
    right = translated_stage(str(file), spec, TARGET)
    return validate_pair(
        left.text, right.text, spec, source_names=left.names, translated_names=right.names, with_variants=False
    )


@pytest.mark.compile
@pytest.mark.parametrize("launch", ["flash_attention/causal", "flash_attention/full"])
def test_attention_validates(launch: str, tmp_path: Path):
    result = validate_attention(attention(), tmp_path, launch)
    assert (result.status, result.reason) == ("validated", "")


COUNTED = [
    ("mbarrier.wait({}_empty.index(slot), phase ^ 1)", "pass"),
    ("mbarrier.wait({}_ready.index(slot), phase)", "pass"),
    (", mbarrier={}_ready.index(slot)", ""),
    ("mbarrier.arrive({}_empty.index(slot))", "pass"),
    ("mbarrier.init({}_ready.index(t), 1)", "mbarrier.init({}_ready.index(t), 2)"),
    ("mbarrier.init({}_empty.index(t), 4 * 32)", "mbarrier.init({}_empty.index(t), 4 * 32 - 1)"),
    ("mbarrier.init({}_empty.index(t), 4 * 32)", "mbarrier.init({}_empty.index(t), 4 * 32 + 1)"),
]


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("line, tile", slow_but_crossed(COUNTED, ["k", "v"], 2), ids=str)
def test_each_wait_arrival_and_count_of_attention_matters(line: tuple[str, str], tile: str, tmp_path: Path):
    """K and V have barriers of their own; the launch has enough tiles to use a slot again."""
    text, (before, after) = attention(), (part.format(tile) for part in line)
    assert before in text
    result = validate_attention(text.replace(before, after), tmp_path, "flash_attention/full")
    assert result.status in FOUND, result.reason


# What the source asks for -------------------------------------------------------------------------------------------


def hinted(folder: Path, text: str = MATMUL) -> Path:
    path = folder / "matmul.py"
    path.write_text(edited(text, LOOP, "tl.range(0, tl.cdiv(K, BLOCK_K), warp_specialize=True)"))
    return path


def test_the_sources_hint_is_followed(tmp_path: Path):
    text = translated(hinted(tmp_path), None).text
    assert text is not None and "gl.warp_specialize(" in text
    assert "gl.warp_specialize(" not in translated(hinted(tmp_path), "pipelined").text


def test_a_hint_that_the_target_cannot_follow_is_noted(tmp_path: Path):
    result = translated(hinted(tmp_path), None, "gfx950")
    assert result.text is not None and "warp_specialize" not in result.text and "wait_group" in result.text
    assert any(
        "`for k` is not warp-specialized: gfx950 has no barriers in LDS" in c for c in result.outcomes[0].choices
    )


INDIRECT = edited(
    MATMUL.replace("offs_am = ", "offs_am = tl.load(c_ptr + tl.arange(0, BLOCK_M)).to(tl.int32) + "),
    LOOP,
    "tl.range(0, tl.cdiv(K, BLOCK_K), warp_specialize=True)",
)


def test_addresses_from_memory_stay_in_the_warps_that_load_them(tmp_path: Path):
    path = tmp_path / "matmul.py"
    path.write_text(INDIRECT)
    result = translated(path, None)
    assert result.text is not None and "gl.warp_specialize" not in result.text and "wait_group" in result.text
    (choice,) = [c for c in result.outcomes[0].choices if "not warp-specialized" in c]
    assert "comes from memory or a function" in choice
    refused = translated(path)
    assert refused.text is None
    (diagnostic,) = refused.outcomes[0].diagnostics
    assert diagnostic.code == "strategy" and "tl.range" in INDIRECT.splitlines()[diagnostic.line - 1]


def test_a_kernel_without_such_a_loop_is_refused(tmp_path: Path):
    path = tmp_path / "copy.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef copy_kernel(a_ptr, N: tl.constexpr):\n"
        "    offs = tl.arange(0, N)\n    tl.store(a_ptr + offs, tl.load(a_ptr + offs))\n"
    )
    launch = replace(
        matmul_launch(), kernel="copy_kernel", signature={"a_ptr": "*fp16", "N": "constexpr"}, constexprs={"N": 256},
        attrs={"a_ptr": "DS"}, values={},
    )  # fmt: skip
    result = translate_kernel(TranslateRequest(str(path), TARGET, launches=(launch,), strategy=STRATEGY))
    (diagnostic,) = result.outcomes[0].diagnostics
    assert "has no loop to warp-specialize" in diagnostic.message


def test_explain_says_how_and_why(tmp_path: Path):
    def loop(target: str) -> str:
        request = TranslateRequest(str(hinted(tmp_path)), target, launches=(matmul_launch(),))
        (choice,) = [c for c in explain_launch(request, matmul_launch(), "rewrite").choices if c.kind == "loop"]
        return f"{choice.choice}; {choice.cost}"

    assert loop("gfx1250") == "warp-specialized, 2 buffers; 1 more warp, which copy; waits at mbarriers"
    assert "not warp-specialized: gfx950 has no barriers in LDS that copies arrive at" in loop("gfx950")


def test_comments_and_names_of_the_author_stay(tmp_path: Path):
    text = matmul()
    for line in MATMUL.splitlines():
        if line.strip().startswith("#"):
            assert text.count(line.strip()) == 1, line
    assert "def matmul_kernel_producer(" in text and "def matmul_kernel_consumer(" in text
