"""What a launch has to write: the source kernel on the reference machine, over the whole grid.

Outputs are poisoned before a device runs: elements that the kernel writes start as NaN (floats) or 0xA5 bytes (others), so that
stale numbers cannot pass for results. Where the source's result depends on what was there (atomics, in-place updates) the
tensor keeps its contents; that is found out by running the source from poisoned memory too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gluonize.judge.device.refusal import Refused
from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.inputs import Inputs, Tensor, make_inputs, with_tensors
from gluonize.judge.machine.dtypes import PRECISION, decode, encode, held, stored
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.verdict.compare import FLIPPED, WALK
from gluonize.judge.verdict.pair import narrowest
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.parse import parse_module

# Ops that a GPU computes by an approximation of its own; sources: CUDA C++ Programming Guide, table of intrinsic errors
# (ex2.approx, lg2.approx, sin.approx, div.full and rsqrt.approx: 2 units in the last place, but relative to the argument
# after range reduction), and `llvm/docs/AMDGPUUsage.rst` (1 to 2.5 units).
APPROXIMATE = (
    *(f"math.{name}" for name in "exp exp2 log log2 sin cos rsqrt sqrt erf tanh pow powf".split()),
    "arith.divf",
    "tt.extern_elementwise",
)
APPROXIMATION = 2.0**-16  # relative: 2 units of f32 amplified by an exponent's argument of up to 2^6


@dataclass(frozen=True)
class ExpectedTensor:
    """One tensor argument. `initial` is what to upload, `expected` what a right kernel leaves (both as stored).

    `written` marks elements that the kernel writes, `racing` those whose value the program does not define. A found value b
    agrees with an expected a when |a - b| <= rtol * |a| + atol, or, for a share `flips` of the elements, with the flip_ ones.
    """

    name: str
    element: str
    initial: np.ndarray
    expected: np.ndarray
    written: np.ndarray
    racing: np.ndarray
    rtol: float
    atol: float
    flips: float
    flip_rtol: float
    flip_atol: float


_NONE = "launch {} has no expected outputs"


def expected_tensors(ttir: str, spec: LaunchSpec, names: list[str]) -> tuple[Inputs, list[ExpectedTensor], int]:
    """Run the source over the whole grid; -> inputs, outputs, and the floating-point operations of its matrix products.

    Raises: Refused when it cannot be run, or itself does what no correct kernel does."""
    try:
        inputs = make_inputs(spec, paged=False)
        memory, machine = _run(ttir, spec, names, inputs)
        poisoned = _poisonable(ttir, spec, names, inputs, memory)
    except NotRunnable as error:
        why = f"the reference machine cannot run the source: {error}"
        help = "gluonize capture records a launch with its values" if error.op == "launch" else ""
        raise Refused(_NONE.format(spec.id), why, "no-reference", help) from None
    except Hazard as error:
        raise Refused(
            _NONE.format(spec.id), f"the source is at fault on these inputs: {error}", "no-reference"
        ) from None
    source = parse_module(ttir)
    slack = APPROXIMATION if source.has(*APPROXIMATE) else 0.0
    out = []
    for tensor, buffer in zip(inputs.tensors(), memory.buffers):
        written, racing = buffer.per_element(buffer.changed), buffer.per_element(buffer.racing)
        expected = buffer.data.view(stored(buffer.element))
        initial = _poison(tensor, written) if tensor.name in poisoned else tensor.data
        limits = _limits(expected[written & ~racing], buffer.element, machine.reduction, narrowest(source), slack)
        out.append(ExpectedTensor(tensor.name, buffer.element, initial, expected, written, racing, **limits))
    return inputs, out, 2 * machine.multiply_adds


def _run(ttir: str, spec: LaunchSpec, names: list[str], inputs: Inputs) -> tuple[Memory, Machine]:
    memory = Memory()
    addresses = place_tensors(memory, inputs)
    module = parse_module(ttir)
    machine = Machine(module, memory, tuple(spec.grid) or (1,))
    machine.in_program_order = bool(module.target)  # of a source that is Gluon
    machine.run(bind(module, names, inputs, addresses), list(range(machine.programs)))
    return memory, machine


def _poisonable(ttir: str, spec: LaunchSpec, names: list[str], inputs: Inputs, memory: Memory) -> set[str]:
    """Tensors whose written elements may start as poison without changing any result."""
    chosen = {t.name for t, b in zip(inputs.tensors(), memory.buffers) if b.changed is not None}
    while chosen:
        changed = {
            id(t): replace(t, data=_poison(t, b.per_element(b.changed)))
            for t, b in zip(inputs.tensors(), memory.buffers)
            if t.name in chosen
        }
        try:
            again, _ = _run(ttir, spec, names, with_tensors(inputs, changed))
            wrong = {b.name for a, b in zip(memory.buffers, again.buffers) if not _same(a, b)}
        except (Hazard, NotRunnable):
            wrong = chosen
        if not wrong:
            return chosen
        chosen = chosen - wrong if chosen & wrong else set()
    return chosen


def _same(a, b) -> bool:
    return bool((a.data == b.data).all())


def _poison(tensor: Tensor, written: np.ndarray) -> np.ndarray:
    data = tensor.data.copy()
    if held(tensor.element).kind == "f":
        data[written] = encode(np.full(int(written.sum()), np.nan, held(tensor.element)), tensor.element)
    else:
        data.view(np.uint8).reshape(data.size, -1)[written] = 0xA5
    return data


def _limits(expected: np.ndarray, element: str, reduction: int, narrowest: str, slack: float) -> dict[str, float]:
    """Tolerances as `gluonize.judge.verdict.compare` has them, plus `slack` for approximations of the device."""
    if element not in PRECISION:
        return dict(rtol=0.0, atol=0.0, flips=0.0, flip_rtol=0.0, flip_atol=0.0)
    values = np.asarray(decode(expected, element), np.float64)
    finite = np.abs(values[np.isfinite(values)])
    scale = float(finite.max()) if finite.size else 0.0
    accumulate = 2.0 ** -PRECISION["f64" if element == "f64" else "f32"]
    rtol = 2 * 2.0 ** (1 - PRECISION[element]) + slack
    atol = WALK * math.sqrt(max(reduction, 1)) * accumulate * scale + slack * scale / 8
    step = 2.0 ** (1 - PRECISION[narrowest]) if narrowest in ("f16", "bf16") else 0.0
    return dict(
        rtol=rtol, atol=atol, flips=FLIPPED if step else 0.0, flip_rtol=rtol + step, flip_atol=atol + step * scale / 8
    )
