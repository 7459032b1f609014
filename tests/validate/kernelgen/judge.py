"""One kernel judged for one target, in a child process: translated once, then run beside its source on every launch.

Nothing is taken from what the product says about its own output: both sides run on the reference machine, over the whole grid, and
what they wrote is compared. A launch that the output's own check refuses is left out.
"""

from __future__ import annotations

import importlib.util
import math
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from kernelgen.draw import Launch, RandomKernel
from gluonize.diagnostics import TranslationError
from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.inputs import ELEMENTS, Inputs, Tensor, scalar
from gluonize.judge.machine.dtypes import FLOAT8, encode, held, rounded, stored
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.hazards import Hazard, NotRunnable, WaitsForever
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.machine.warp_specialize import SCHEDULES
from gluonize.judge.verdict.compare import compare
from gluonize.judge.verdict.pair import narrowest
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.trace.model.parse import parse_module
from gluonize.translation import translate_kernel

# What may become of a kernel. Those of `WRONG` are faults of the translation.
WRONG = ("mismatch", "hazard", "does not compile")
FAILED = (*WRONG, "refused")
SOUND = "right"
# The source does not compile for the target, or every launch of it leaves a buffer: nothing to judge.
IDLE = ("uncompiled", "undefined")


@dataclass(frozen=True)
class Verdict:
    """`ran`: launches that were compared; `refused`: those that the output's check keeps out; `undefined`: those on which the
    source itself is at fault. `written`: what the source wrote in each launch that ran, for a second opinion.
    """

    status: str
    reason: str = ""
    launch: int = -1
    ran: int = 0
    refused: int = 0
    undefined: int = 0
    output: str = ""
    written: tuple = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class SourceRun:
    """The source on one launch."""

    number: int
    inputs: Inputs
    memory: Memory
    machine: Machine


def inputs_of(kernel: RandomKernel, launch: Launch) -> Inputs:
    """All arguments: every tensor is filled from end to end, so that a wrong address gives a wrong number.

    What lies before a view of less than 2 GiB is not there: Triton's passes take it that nothing reads it.
    """
    rng = np.random.default_rng(zlib.crc32(kernel.text.encode()))
    arguments: dict = {}
    for name, kind in kernel.spec.signature.items():
        if kind == "constexpr":
            continue
        value = kernel.spec.values[name]
        if isinstance(value, dict):
            made = _tensor(name, value["tensor"], rng)
            within = "S" in kernel.spec.attrs.get(name, "")
            arguments[name] = replace(made, data=made.data[made.offset :], offset=0) if within else made
        else:
            arguments[name] = scalar(launch.scalars.get(name, value), kind)
    return Inputs(arguments)


def _tensor(name: str, described: dict, rng) -> Tensor:
    element = ELEMENTS[described["dtype"]]
    count = described["storage"]
    low, high = described.get("range") or (None, None)
    if element[0] == "i":
        low, high = (-100, 100) if low is None else (low, high)
        values = rng.integers(low, high, count, endpoint=True).astype(held(element))
    else:
        values = rng.standard_normal(count) if low is None else rng.uniform(low, high, count)
        values = rounded(
            np.asarray(values, np.float32 if element in FLOAT8 or element == "bf16" else held(element)), element
        )
    data = np.asarray(encode(np.asarray(values), element)).astype(stored(element), copy=False)
    return Tensor(name, element, data, described["offset"], tuple(described["shape"]), tuple(described["stride"]))


def judge(kernel: RandomKernel, target: str, folder: str, lowering: bool = False) -> Verdict:
    """Translate and compare. `folder` is where the files go. With `lowering` what Triton itself makes of the source is compared with it,
    which judges the reference machine.
    """
    source, output = Path(folder) / "source.py", Path(folder) / "output.py"
    source.write_text(kernel.text)
    try:
        stage = source_stage(str(source), kernel.spec, target if kernel.per_target else "gfx950")
    except TranslationError as error:
        return Verdict("uncompiled", _first(error))
    runs, undefined = _source_runs(kernel, stage)
    written = tuple((run.number, _written(run.memory)) for run in runs)
    common = Verdict("", undefined=len(undefined), written=written)
    if not runs:
        return replace(common, status="undefined", reason=undefined[0])
    if lowering:
        lowered = translated_stage(str(source), kernel.spec, target)
        return _compared(kernel, runs, stage, lowered, [], common)
    request = TranslateRequest(str(source), target, launches=(kernel.spec,))
    try:
        answer = translate_kernel(request)
    except TranslationError as error:
        return replace(common, status="refused", reason=_first(error))
    if answer.text is None:
        found = [d.render() for d in (*answer.diagnostics, *(d for o in answer.outcomes for d in o.diagnostics))]
        status = "uncompiled" if any("[triton-refuses]" in text for text in found) else "refused"
        return replace(common, status=status, reason="; ".join(found[:2]))
    output.write_text(answer.text)
    common = replace(common, output=answer.text)
    try:
        translated = translated_stage(str(output), kernel.spec, target)
    except TranslationError as error:
        return replace(common, status="does not compile", reason=_first(error))
    checks = _checks(output, kernel)
    found = _compared(kernel, runs, stage, translated, checks, common)
    if found.status == SOUND and kernel.specialized:
        return _compared_again(kernel, runs[-1], stage, target, checks, found, output)
    return found


def _first(error: TranslationError) -> str:
    return error.diagnostics[0].render() if error.diagnostics else str(error)


def _source_runs(kernel: RandomKernel, stage) -> tuple[list[SourceRun], list[str]]:
    """The launches on which the source is well defined, run; and what is wrong with the others."""
    module = parse_module(stage.text, stage.file)
    runs, undefined = [], []
    for number, launch in enumerate(kernel.launches):
        inputs = inputs_of(kernel, launch)
        memory = Memory(recording=True)
        addresses = place_tensors(memory, inputs)
        machine = Machine(module, memory, launch.grid)
        try:
            machine.run(bind(module, stage.names, inputs, addresses), range(machine.programs))
        except (Hazard, NotRunnable) as fault:
            undefined.append(str(fault))
        else:
            runs.append(SourceRun(number, inputs, memory, machine))
    return runs, undefined


def _written(memory: Memory) -> dict[str, tuple]:
    """The bytes that a run changed, by buffer: (granule, numbers of the granules, bytes)."""
    out = {}
    for buffer in memory.buffers:
        if buffer.changed is not None and buffer.changed.any():
            out[buffer.name] = (buffer.element, buffer.data.tobytes())
    return out


def _checks(output: Path, kernel: RandomKernel) -> list:
    """The hooks that the output runs before a launch; the output is our own text, so it may be imported."""
    spec = importlib.util.spec_from_file_location("random_output", output)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return list(getattr(module, kernel.spec.kernel).pre_run_hooks)


class GivenTensor:
    """What a check may ask of a tensor."""

    def __init__(self, tensor: Tensor):
        self._tensor = tensor
        self.shape = tensor.shape

    def untyped_storage(self):
        size = self._tensor.data.nbytes
        return SimpleNamespace(size=lambda: size, nbytes=lambda: size, data_ptr=lambda: 1 << 20)

    def data_ptr(self) -> int:
        return (1 << 20) + self._tensor.offset * self._tensor.data.itemsize

    def storage_offset(self) -> int:
        return self._tensor.offset

    def element_size(self) -> int:
        return self._tensor.data.itemsize

    def numel(self) -> int:
        return math.prod(self.shape)

    def stride(self, axis: int | None = None):
        return self._tensor.strides if axis is None else self._tensor.strides[axis]

    def size(self, axis: int | None = None):
        return self.shape if axis is None else self.shape[axis]


def _accepted(checks: list, kernel: RandomKernel, launch: Launch, inputs: Inputs) -> bool:
    given = {
        name: GivenTensor(value) if isinstance(value, Tensor) else value.item()
        for name, value in inputs.arguments.items()
        if name not in launch.omitted
    }
    given |= kernel.spec.constexprs
    try:
        for check in checks:
            check(**given, **kernel.spec.options)
    except (ValueError, TypeError, AssertionError):
        return False
    return True


def _compared(kernel: RandomKernel, runs: list[SourceRun], stage, translated, checks: list, common: Verdict) -> Verdict:
    module, source = parse_module(translated.text, translated.file), parse_module(stage.text, stage.file)
    schedules = SCHEDULES if "ttg.warp_specialize" in translated.text else SCHEDULES[:1]
    ran = refused = 0
    for run in runs:
        launch = kernel.launches[run.number]
        if not _accepted(checks, kernel, launch, run.inputs):
            refused += 1
            continue
        ran += 1
        for schedule in schedules:
            status, reason = _difference(run, module, translated.names, schedule, narrowest(source), launch)
            if status != SOUND:
                return replace(common, status=status, reason=reason, launch=run.number, ran=ran, refused=refused)
    return replace(common, status=SOUND, ran=ran, refused=refused)


def _as_launched(kernel: RandomKernel, launch: Launch) -> LaunchSpec:
    """The specialization that Triton makes of the numbers of a launch."""
    spec = kernel.spec
    numbers = {
        name: launch.scalars[name] for name, kind in spec.signature.items() if kind == "i32" and name in launch.scalars
    }
    ones = dict.fromkeys([name for name, value in numbers.items() if value == 1], 1)
    signature = {name: "constexpr" if name in ones else kind for name, kind in spec.signature.items()}
    attrs = {name: flags for name, flags in spec.attrs.items() if name not in numbers}
    attrs |= {name: "D" for name, value in numbers.items() if value % 16 == 0}
    return replace(
        spec, signature=signature, constexprs=spec.constexprs | ones, attrs=attrs, values={**spec.values, **numbers}
    )


def _compared_again(
    kernel: RandomKernel, run: SourceRun, stage, target: str, checks: list, found: Verdict, output: Path
) -> Verdict:
    """The output once more, compiled as Triton does for the values of the launch `run`."""
    launch = kernel.launches[run.number]
    spec = _as_launched(kernel, launch)
    fixed = [name for name in kernel.spec.signature if spec.signature[name] == "constexpr"]
    if not _accepted(checks, kernel, launch, run.inputs):
        return found
    try:
        again = translated_stage(str(output), spec, target)
    except TranslationError as error:
        return replace(found, status="does not compile", reason=f"for {launch}: {_first(error)}", launch=run.number)
    given = {name: value for name, value in run.inputs.arguments.items() if name not in fixed}
    run = replace(run, inputs=replace(run.inputs, arguments=given))
    module = parse_module(again.text, again.file)
    status, reason = _difference(run, module, again.names, SCHEDULES[0], narrowest(parse_module(stage.text)), launch)
    return (
        found
        if status == SOUND
        else replace(found, status=status, reason=f"as compiled for {launch}: {reason}", launch=run.number)
    )


def _difference(run: SourceRun, module, names, schedule: str, narrow: str, launch: Launch) -> tuple[str, str]:
    """What the translation does differently in one launch, under one schedule."""
    memory = Memory()
    addresses = place_tensors(memory, run.inputs, run.memory, tight=True)
    machine = Machine(module, memory, launch.grid)
    machine.schedule, machine.stale = schedule, math.nan
    try:
        machine.run(bind(module, names, run.inputs, addresses), range(machine.programs))
    except Hazard as hazard:
        return "hazard", str(hazard)
    except WaitsForever as endless:
        return "hazard", f"does not end: {endless}"
    except NotRunnable as error:
        return "not runnable", str(error)
    findings = [*machine.findings, *(machine.broken.values() if not run.machine.broken else ())]
    if findings:
        return "hazard", str(findings[0])
    reduction = max(run.machine.reduction, machine.reduction)
    wrong = [t for t in compare(run.memory, memory, reduction, narrow) if t.wrong]
    return ("mismatch", str(wrong[0])) if wrong else (SOUND, "")


def product_says(kernel: RandomKernel, target: str, folder: str, text: str) -> str:
    """What the product's own validation calls this output: `validated` would be a lie about a wrong one."""
    from gluonize.judge.verdict import validate_launch

    output = Path(folder) / "output.py"
    output.write_text(text)
    (Path(folder) / "source.py").write_text(kernel.text)
    return validate_launch(str(Path(folder) / "source.py"), str(output), kernel.spec, target)["status"]
