"""A second opinion on what a source kernel means: Triton's own interpreter, in a child process for that alone."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from kernelgen.draw import RandomKernel  # noqa: E402

NARROW = ("bf16", "fp8")  # types that the interpreter or numpy lacks
RELATIVE = 2e-3  # of the largest value written; sums are made in another order there


def opinion(kernel: RandomKernel, folder: str, written: tuple) -> str:
    """How the interpreter's results differ from `written` (`Verdict.written`); "" where they do not, "?" where it has no opinion."""
    from against_interpreter import interpret
    from kernelgen.judge import inputs_of
    from gluonize.judge.inputs.inputs import Tensor

    if any(word in kernel.text or word in str(kernel.spec.signature) for word in NARROW) or not kernel.interpreted:
        return "?"
    source = Path(folder) / "interpreted.py"
    source.write_text(kernel.text)
    for number, buffers in written:
        launch = kernel.launches[number]
        inputs = inputs_of(kernel, launch)
        given = {
            name: (
                (_typed(value.data, kernel.spec.signature[name]), value.offset, value.shape, value.strides)
                if isinstance(value, Tensor)
                else value
            )
            for name, value in inputs.arguments.items()
        }
        spec = replace(kernel.spec, source=str(source), grid=launch.grid)
        chosen = range(int(np.prod(launch.grid)))
        with np.errstate(all="ignore"):
            found = interpret({"spec": spec, "folders": (), "plain": False, "given": given, "chosen": chosen})
        for name, (element, data) in buffers.items():
            theirs = found[name]
            ours = np.frombuffer(data, theirs.dtype)
            if reason := _differs(ours, theirs):
                return f"launch {number}: {name}: {reason}"
    return ""


def _typed(data: np.ndarray, type: str) -> np.ndarray:
    """Numbers as a kernel reads them: inputs hold those without a sign as bits of others, of which the interpreter takes the type."""
    return data.view(f"u{data.dtype}") if type.startswith("*u") and data.dtype.kind == "i" else data


def _differs(ours: np.ndarray, theirs: np.ndarray) -> str:
    if ours.dtype.kind != "f":
        bad = np.flatnonzero(ours != theirs)
    else:
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        scale = np.abs(a[np.isfinite(a)]).max(initial=1.0)
        with np.errstate(all="ignore"):
            bad = np.flatnonzero(~((np.abs(a - b) <= RELATIVE * scale) | (a == b) | (np.isnan(a) & np.isnan(b))))
    if not bad.size:
        return ""
    return f"{bad.size} of {ours.size} elements differ, first at {bad[0]}: machine {ours[bad[0]]}, interpreter {theirs[bad[0]]}"
