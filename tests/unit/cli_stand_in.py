"""A stand-in for the translation stage: what the CLI does with its answers is tested without a translator.

The kernel name tells what to answer. Gluon text for `scale_kernel` is real and compiles on 64-lane targets.
"""

import os
import time

from translator.diagnostics import Diagnostic, TranslationError
from translator.request import LaunchOutcome, TranslateRequest, TranslateResult

GLUON = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3


@gluon.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    row: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, row)
    x = cdna3.buffer_load(x_ptr, offsets, mask=offsets < n)
    cdna3.buffer_store(x * 3, y_ptr, offsets, mask=offsets < n)
"""


def translate_kernel(request: TranslateRequest) -> TranslateResult:
    outcomes = [_one(spec, request) for spec in request.launches]
    kept = [o for o in outcomes if o.status == "translated"]
    ok = kept and (request.keep_going or len(kept) == len(outcomes))
    if not request.launches:
        found = Diagnostic("spec-missing", "BLOCK has no value", request.source, help="give --set BLOCK=...")
        return TranslateResult("refused", None, diagnostics=(found,))
    return TranslateResult("translated" if ok else "refused", GLUON if ok else None, tuple(outcomes), seconds=0.25)


def _one(spec, request):
    if spec.kernel == "abort_kernel":
        os.write(2, b"LLVM ERROR: Cannot select: wmma\n")
        os.abort()
    if spec.kernel == "buggy_kernel":
        raise KeyError("a bug")
    if spec.kernel == "slow_kernel":
        if marker := os.environ.get("SLOW_KERNEL_STARTED"):
            open(marker, "w").close()
        time.sleep(60)
    if spec.kernel == "refusing_kernel":
        raise TranslationError(Diagnostic("offset-range", "no bound", request.source, 9, 5, why="w", help="h"))
    if spec.kernel == "refused_kernel":
        found = Diagnostic("offset-range", "no bound", request.source, 9, 5, why="w", help="h")
        return LaunchOutcome(spec, "refused", (found,))
    return LaunchOutcome(spec, "translated", choices=("x: one row of four",), assumptions=("n * 4 < 2**31",))


def validate_mismatch(source, output, spec, target, search_path, import_hosts):
    return {"status": "mismatch", "first": [3]}
