"""A source kernel, a correct Gluon kernel, and the same with one thing broken."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from gluonize.judge.machine.stages import Stage, source_stage, translated_stage
from gluonize.judge.verdict.result import ValidationResult
from gluonize.judge.verdict.run import validate_pair
from gluonize.read.spec.launch import LaunchSpec

KERNELS = Path(__file__).resolve().parent / "kernels"


def matmul_launch(m: int = 272, n: int = 208, k: int = 144, buffers: int | None = None) -> LaunchSpec:
    """C[m, n] = A[m, k] @ B[k, n], fp16, tiles of 128 x 128 x 64."""
    tensor = {
        name: {"tensor": {"dtype": "float16", "shape": list(shape), "stride": [shape[1], 1], "storage": max(shape[0] * shape[1], 1), "offset": 0}}
        for name, shape in {"a_ptr": (m, k), "b_ptr": (k, n), "c_ptr": (m, n)}.items()
    }  # fmt: skip
    scalars = {"M": m, "N": n, "K": k, "stride_am": k, "stride_bk": n, "stride_cm": n}
    constexprs = {
        "stride_ak": 1,
        "stride_bn": 1,
        "stride_cn": 1,
        "BLOCK_M": 128,
        "BLOCK_N": 128,
        "BLOCK_K": 64,
        "GROUP_M": 8,
    }
    signature = {name: "*fp16" for name in tensor} | {name: "i32" for name in scalars}
    constexprs |= {} if buffers is None else {"NUM_BUFFERS": buffers}
    order = "a_ptr b_ptr c_ptr M N K stride_am stride_ak stride_bk stride_bn stride_cm stride_cn".split()
    signature = {name: signature.get(name, "constexpr") for name in (*order, *constexprs)}
    attrs = {name: "DS" for name in tensor} | {name: "D" for name in scalars}
    options = {"num_warps": 4, "num_stages": 2}
    grid = (-(-m // 128) * -(-n // 128),)
    return LaunchSpec(
        "planted/matmul", "matmul_kernel", "", signature, constexprs, attrs, options, grid, {}, tensor | scalars
    )


@functools.lru_cache(maxsize=None)
def source(path: Path, target: str, m: int, n: int, k: int) -> Stage:
    return source_stage(str(path), matmul_launch(m, n, k), target)


@dataclass(frozen=True)
class Planted:
    """`before` occurs `times` times in the good kernel and becomes `after`; `kinds` are what may be found, at `at`."""

    before: str
    after: str
    kinds: tuple[str, ...]
    at: str = ""
    times: int = 1


def run_matmul(
    text: str, target: str, folder: Path, size=(272, 208, 272), buffers: int | None = None
) -> ValidationResult:
    """Validate the Gluon text against kernels/matmul.py."""
    file = folder / "translated.py"
    file.write_text(text)
    spec = matmul_launch(*size, buffers)
    left = source(KERNELS / "matmul.py", target, *size)
    right = translated_stage(str(file), spec, target)
    return validate_pair(
        left.text, right.text, spec, source_names=left.names, translated_names=right.names, translated_file=right.file
    )
