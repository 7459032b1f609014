"""Products of fp32 in the precision that the source asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent

from translator.lowering.jobs import lower_file
from translator.lowering.worker import WorkerPool
from translator.request import TranslateRequest
from translator.source.launch_spec import LaunchSpec

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, K):
        om = tl.arange(0, 64)
        on = tl.arange(0, 64)
        ok = tl.arange(0, 32)
        acc = tl.zeros((64, 64), tl.float32)
        for k in range(0, K, 32):
            a = tl.load(a_ptr + om[:, None] * K + (k + ok)[None, :])
            b = tl.load(b_ptr + on[None, :] * K + (k + ok)[:, None])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + om[:, None] * 64 + on[None, :], acc)
""")


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as found:
        yield found


def both(pool: WorkerPool, folder: Path, argument: str, target: str):
    """-> (the translation, its metrics, Triton's)."""
    source, output = folder / "source.py", folder / "output.py"
    source.write_text(SOURCE.replace("acc)\n    tl.store", f"acc{argument})\n    tl.store"))
    pointers = {name: "*fp32" for name in ("a_ptr", "b_ptr", "c_ptr")}
    signature = {**pointers, "K": "i32"}
    tensor = {"tensor": {"dtype": "float32", "shape": [8192], "stride": [1], "storage": 8192, "offset": 0}}
    spec = LaunchSpec(
        "t", "kernel", str(source), signature, {}, dict.fromkeys(pointers, "DS") | {"K": "D"},
        {"num_warps": 4, "num_stages": 2}, (1,), values=dict.fromkeys(pointers, tensor) | {"K": 128},
    )  # fmt: skip
    result = pool.call(
        "translator.translation:translate_kernel", TranslateRequest(str(source), target, launches=(spec,))
    )
    assert result.text is not None, result
    output.write_text(result.text)
    answer = pool.call("translator.validate:validate_launch", str(source), str(output), spec, target)
    assert answer["status"] == "validated", answer
    return result.text, *(lower_file(str(path), spec, target).metrics for path in (output, source))


@pytest.mark.parametrize("argument", ["", ", input_precision='tf32'"])
def test_tf32_of_cdna3_has_its_own_instructions(argument: str, pool, tmp_path: Path):
    text, ours, theirs = both(pool, tmp_path, argument, "gfx942")
    assert ours.loop.matrix == theirs.loop.matrix and ours.loop.insns <= theirs.loop.insns, (ours, theirs)
    assert "mfma_tf32(" in text and "cdna3.mfma(" not in text, text


@pytest.mark.parametrize("argument, target", [(", input_precision='ieee'", "gfx942"), ("", "gfx950")])
def test_other_products_are_exact(argument: str, target: str, pool, tmp_path: Path):
    text, ours, theirs = both(pool, tmp_path, argument, target)
    assert ours.loop.matrix == theirs.loop.matrix, (ours, theirs)
    assert ".mfma(" in text and "tf32" not in text, text
