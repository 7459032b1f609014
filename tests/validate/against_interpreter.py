"""The reference machine against Triton's own interpreter (TRITON_INTERPRET=1), on the source kernels of launch specs.

    python tests/validate/against_interpreter.py LAUNCHES.json [--search-path FOLDER] [--only NAME ...] [--json FILE]

Both run the first programs of a launch on the same inputs, and every tensor is compared. The interpreter computes bf16 on its raw
bits and numpy has no fp8, so tensors of these types are fp32 on both sides. It runs in a process of its own, with a time limit:
the variable has to be set before Triton is imported, and a bad address ends the process. `interpreter_differences.toml` lists launches on
which the two differ for a known reason.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import os
import pickle
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE, HERE.parent.parent) if str(p) not in sys.path]

PROGRAMS = 2
SECONDS = 300
SMALL = 0.05
NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
WIDENED = ("bf16", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16")


def widened(spec):
    """The launch with fp32 in place of the types that the interpreter lacks."""
    signature = {name: _wide_type(kind) for name, kind in spec.signature.items()}
    return replace(spec, signature=signature, values={name: _wide_value(value) for name, value in spec.values.items()})


def _wide_type(kind):
    if isinstance(kind, (list, tuple)):
        return [_wide_type(k) for k in kind]
    for narrow in WIDENED:
        kind = kind.replace(f"*{narrow}", "*fp32").replace(f"*k{narrow}", "*kfp32")
    return kind


def _wide_value(value):
    if isinstance(value, dict) and "tensor" in value and value["tensor"]["dtype"] in NARROW:
        return {"tensor": value["tensor"] | {"dtype": "float32"}}
    return value


def machine_side(spec, folders: tuple[str, ...], scale: float = 1.0) -> dict:
    """Run on the machine with random floats times `scale`; -> inputs and results. Runs in a worker."""
    from gluonize.diagnostics import TranslationError
    from gluonize.judge.inputs.bind import bind, place_tensors
    from gluonize.judge.machine.engine import Machine
    from gluonize.judge.machine.hazards import Hazard, NotRunnable
    from gluonize.judge.inputs.inputs import DescriptorArgument, Tensor, make_inputs
    from gluonize.judge.machine.memory.guarded import Memory
    from gluonize.trace.model.parse import parse_module
    from gluonize.judge.verdict.pair import narrowest
    from gluonize.judge.machine.stages import source_stage

    try:
        stage = source_stage(spec.source, spec, "gfx950", folders)
        inputs = make_inputs(spec, scale)
        memory = Memory(recording=True)
        addresses = place_tensors(memory, inputs)
        module = parse_module(stage.text, stage.file)
        machine = Machine(module, memory, spec.grid)
        chosen = list(range(min(PROGRAMS, machine.programs)))
        machine.run(bind(module, stage.names, inputs, addresses), chosen)
    except (TranslationError, NotRunnable, Hazard) as error:
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    if any(isinstance(value, (list, DescriptorArgument)) for value in inputs.arguments.values()):
        return {"error": "a tuple or a descriptor among the arguments"}
    given = {
        name: (value.data, value.offset, value.shape, value.strides) if isinstance(value, Tensor) else value
        for name, value in inputs.arguments.items()
    }
    return {
        "given": given,
        "memory": memory,
        "chosen": chosen,
        "reduction": machine.reduction,
        "narrowest": narrowest(module),
    }


class HostTensor:
    """What the interpreter asks of a tensor, over numpy memory."""

    def __init__(self, data: np.ndarray, offset: int):
        self.memory = data.copy()
        self.dtype = np.dtype(data.dtype).name
        self.offset = offset

    def data_ptr(self) -> int:
        return self.memory.__array_interface__["data"][0] + self.offset * self.memory.itemsize


def _argument(value):
    """A launch's argument as the interpreter takes it, a float as the scalar that the compiler makes of it."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle, _implicit_cvt

    if isinstance(value, float):
        return tl.tensor(TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)
    return _implicit_cvt(value)


def _counted(*bounds):
    """`range` whose numbers are tensors, as those of a compiled loop are."""
    return map(_argument, range(*(int(bound) for bound in bounds)))


@functools.cache
def _round_to_nearest(builder) -> None:
    """Narrow f32 to bf16 as the compiler does; the interpreter cuts it."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    from gluonize.judge.machine.dtypes import encode, rounded

    cast = builder.cast_impl

    def cast_impl(source, target):
        if (source.dtype.scalar, target.scalar) == (tl.float32, tl.bfloat16):
            return TensorHandle(np.asarray(encode(rounded(source.data, "bf16"), "bf16")), tl.bfloat16)
        return cast(source, target)

    builder.cast_impl = cast_impl


def interpret(job: dict) -> dict:
    """Run the kernel in the interpreter; -> tensors by name. In a process with TRITON_INTERPRET=1.

    What a launch fixes is a `constexpr`, as for the compiler, or with `plain` the bare value, as the interpreter's own launcher has it;
    some kernels run only one way.
    """
    import triton.language  # its library functions become interpreted ones
    from triton import knobs
    from triton.language.core import constexpr
    from triton.runtime.interpreter import InterpretedFunction, _patch_lang, interpreter_builder

    from gluonize.read.kernels.load import load_kernel
    from gluonize.read.evaluate.spec_values import decode_value

    spec = job["spec"]
    # The user's stay jit functions while they are read, so that the same code finds them.
    knobs.runtime.interpret = False
    loaded = load_kernel(spec.source, spec.kernel, globals=spec.globals, search_path=job["folders"])
    knobs.runtime.interpret = True
    assert not isinstance(triton.language.sum, triton.JITFunction)
    made: dict[int, object] = {}
    seen: set[int] = set()

    def interpreted(fn):
        """An interpreted function in place of a jit function, and of those that it calls."""
        if id(fn) not in made:
            made[id(fn)] = InterpretedFunction(fn.fn)
            exchange(fn.fn.__globals__)
        return made[id(fn)]

    def exchange(names: dict) -> None:
        if id(names) in seen:
            return
        seen.add(id(names))
        names.setdefault("range", _counted)
        for name, value in list(names.items()):
            if isinstance(value, triton.JITFunction):
                names[name] = interpreted(value)
            elif isinstance(value, ModuleType) and not value.__name__.startswith("triton"):
                exchange(value.__dict__)

    _round_to_nearest(interpreter_builder)
    kernel = interpreted(loaded.fn)
    # `fn` of an InterpretedFunction is the plain function; its first call rewrites the source as the interpreter needs it.
    function = kernel.rewrite() if hasattr(kernel, "rewrite") else kernel.fn
    tensors = {name: HostTensor(v[0], v[1]) for name, v in job["given"].items() if isinstance(v, tuple)}
    arguments = {name: v for name, v in job["given"].items() if name not in tensors} | tensors
    fixed = {name: decode_value(v, loaded.load_jit) for name, v in spec.constexprs.items()}
    fixed = {name: interpreted(v) if isinstance(v, triton.JITFunction) else v for name, v in fixed.items()}
    arguments |= fixed
    patch = _patch_lang(function)
    try:
        values = {}
        for name in kernel.arg_names:
            if name not in arguments:
                continue
            value = arguments[name]
            if name in fixed or spec.signature.get(name) == "constexpr":
                values[name] = value if job["plain"] else constexpr(value)
            else:
                values[name] = _argument(value.item() if isinstance(value, np.generic) else value)
        grid = tuple((*spec.grid, 1, 1, 1)[:3])
        interpreter_builder.set_grid_dim(*grid)
        for number in job["chosen"]:
            interpreter_builder.set_grid_idx(
                number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])
            )
            function(**values)
    finally:
        patch.restore()
    return {name: tensor.memory for name, tensor in tensors.items()}


def interpreter_side(spec, folders: tuple[str, ...], machine: dict) -> dict:
    """`interpret` in a process of its own, with constexprs and, should that fail, bare values; -> tensors, or `error`."""
    answer = _child(spec, folders, machine, False)
    if "error" in answer and not answer["error"].startswith("more than"):
        other = _child(spec, folders, machine, True)
        return answer if "error" in other else other
    return answer


def _child(spec, folders: tuple[str, ...], machine: dict, plain: bool) -> dict:
    with tempfile.TemporaryDirectory() as temporary:
        job, result = Path(temporary) / "job", Path(temporary) / "result"
        what = {"spec": spec, "folders": folders, "plain": plain} | {key: machine[key] for key in ("given", "chosen")}
        job.write_bytes(pickle.dumps(what))
        environment = os.environ | {"TRITON_INTERPRET": "1"}
        command = [sys.executable, str(HERE / "against_interpreter.py"), "--child", str(job), str(result)]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return {"error": f"more than {SECONDS} s"}
        if not result.exists():
            lines = [
                line
                for line in done.stderr.splitlines()
                if line.strip() and "leaked" not in line and "nanobind" not in line
            ]
            return {"error": (lines[-1] if lines else f"exit status {done.returncode}")[:200]}
        return pickle.loads(result.read_bytes())


def differences(machine: dict, other: dict) -> tuple[list[str], bool]:
    """One line per tensor that differs by more than a validation allows, and whether overflow hides much."""
    from gluonize.judge.verdict.compare import compare

    memory = machine["memory"]
    theirs = copy.deepcopy(memory)
    for buffer in theirs.buffers:
        buffer.data = other[buffer.name].view(np.uint8)
    found = compare(memory, theirs, machine["reduction"], machine["narrowest"])
    return [str(t) for t in found if t.wrong], any(t.not_finite for t in found)


def judge(pool, spec, folders: tuple[str, ...]) -> tuple[str, str]:
    """Where numbers overflow the order of a sum decides between inf and NaN, so small ones are tried too."""
    from gluonize.diagnostics import InternalError, TranslationError

    for scale in (1.0, SMALL):
        try:
            machine = pool.call("against_interpreter:machine_side", spec, folders, scale)
        except (TranslationError, InternalError) as error:
            return "machine does not run it", str(error).splitlines()[-1]
        if "error" in machine:
            return "machine does not run it", machine["error"]
        other = interpreter_side(spec, folders, machine)
        if "error" in other:
            return "interpreter does not run it", other["error"]
        found, overflow = differences(machine, other)
        if not (found and overflow):
            break
    return ("differ", "; ".join(found)) if found else ("agree", "")


def known_differences() -> dict[str, str]:
    """Launch id -> why the interpreter computes something else."""
    entries = tomllib.loads((HERE / "interpreter_differences.toml").read_text()).get("difference", [])
    return {entry["launch"]: entry["reason"] for entry in entries}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("launches")
    parser.add_argument("--search-path", action="append", default=[])
    parser.add_argument("--only", nargs="+", default=[""], help="launches whose id has one of these in it")
    parser.add_argument("--json")
    options = parser.parse_args()
    from gluonize.judge.lower.children.worker import WorkerPool
    from gluonize.read.spec.launch import read_launches

    count: Counter = Counter()
    report, known = {}, known_differences()
    with WorkerPool(1, timeout=SECONDS) as pool:
        for spec in read_launches(options.launches):
            if not any(part in spec.id for part in options.only):
                continue
            beside = Path(options.launches).parent / (spec.source or "kernel.py")
            spec = widened(replace(spec, source=str(beside)) if beside.exists() else spec)
            folders = tuple(options.search_path)
            status, detail = judge(pool, spec, folders)
            if status == "differ" and spec.id in known:
                status, detail = "differ as listed", known[spec.id]
            count[status] += 1
            report[spec.id] = {"status": status, "detail": detail}
            print(f"{spec.id}: {status} {detail}", flush=True)
    print(", ".join(f"{number} {status}" for status, number in sorted(count.items())))
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    return int(count["differ"] > 0)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        answer = interpret(pickle.loads(Path(sys.argv[2]).read_bytes()))
        Path(sys.argv[3]).write_bytes(pickle.dumps(answer))
    else:
        sys.exit(main())
