"""Recording what every Triton kernel of a running program is launched with.

The launches are intercepted where `kernel[grid](...)` ends up, in `JITFunction.run`, so decorators, wrappers and libraries
stay as they are. Without a GPU a launch is recorded and not run, and every configuration of an autotuned kernel counts;
with one, the program runs as ever, and the configuration that the autotuner chose counts.
"""

from __future__ import annotations

import json
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.evaluate.spec_values import encode_value
from gluonize.read.kernels.gluon_kernels import target_of_text
from gluonize.read.launches.capture.devices import USUAL, Device, device_of
from gluonize.read.launches.capture.tensors import TensorArgument, tensor_argument
from gluonize.read.spec.launch import LaunchSpec, compiled_as
from gluonize.triton_api.backend import GPUTarget, driver, make_backend
from gluonize.triton_api.differences import with_numerics
from gluonize.triton_api.host_tensors import TensorDescriptor, cdna5, hopper
from gluonize.triton_api.jit_functions import (
    Autotuner,
    InterpretedFunction,
    JITFunction,
    create_function_from_signature,
)
from gluonize.triton_api.language import core
from gluonize.triton_api.package import triton

# Where the aggregates of a program come from: `{"$class": "file.py:Name"}`, or `{"$call": "file.py:Maker", "args": [8]}`.
#
#     def Grouped(size):          Scheduler = Grouped(8)   ->   {"$call": "tiles.py:Grouped", "args": [8]}
#         @aggregate
#         class Tiles: ...
#         return Tiles
#
# A class says neither what made it nor from what, so it is seen when it is made.


@dataclass(frozen=True)
class Origin:
    """file: of its text. name: of the class, or of the function that made it. arguments: of that function, None for a class."""

    file: str
    name: str
    arguments: tuple | None = None


class MadeClasses:
    """The aggregates that have been made while `seen` is active, and where."""

    def __init__(self) -> None:
        self._known: dict[type, Origin] = {}

    def origin(self, value: Any) -> Origin | None:
        """None for what is no aggregate, or was made in a way that a launch cannot tell."""
        return self._known.get(value) if isinstance(value, type) else None

    @contextmanager
    def seen(self) -> Iterator[None]:
        """While active, what `aggregate` makes is remembered."""
        plain = core._aggregate

        def aggregate(cls: type) -> Any:
            made = plain(cls)
            if (found := _origin(sys._getframe(1), cls.__name__)) is not None:
                self._known[made] = found
            return made

        owners = [(core, "_aggregate"), (triton, "aggregate")]
        owners = [(owner, name) for owner, name in owners if getattr(owner, name, None) is plain]
        for owner, name in owners:
            setattr(owner, name, aggregate)
        try:
            yield
        finally:
            for owner, name in owners:
                setattr(owner, name, plain)


def _origin(frame: FrameType, name: str) -> Origin | None:
    code = frame.f_code
    if code.co_name == "<module>":
        return Origin(code.co_filename, name)
    # A function inside another one has no name that a launch could give; one that takes any number of arguments, no list of them.
    if not _is_plain(code):
        return None
    given = [frame.f_locals.get(parameter, _GONE) for parameter in code.co_varnames[: code.co_argcount]]
    return None if _GONE in given else Origin(code.co_filename, code.co_name, tuple(given))


_GONE: Callable = lambda: None  # a parameter that was deleted
_VARIADIC = 0x04 | 0x08  # inspect.CO_VARARGS, CO_VARKEYWORDS


def _is_plain(code: CodeType) -> bool:
    return code.co_qualname == code.co_name and not code.co_kwonlyargcount and not code.co_flags & _VARIADIC


# What Triton's driver says on a machine without a GPU.


class NoDevice:
    """Answers what programs ask the driver while they set up, on a machine without a GPU."""

    def __init__(self, device: Device):
        self._device = device

    @property
    def utils(self) -> Any:
        """What asks how much of everything the device has."""
        return self

    def get_device_properties(self, device: int = 0) -> dict[str, Any]:
        return self._device.driver_properties()

    def get_current_target(self) -> GPUTarget:
        return self._device.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        """Where `torch.rand(..., device=...)` shall put its tensors: there is only the CPU."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        import torch

        return torch.cpu


# What host code makes for a kernel to take: Triton's own, and those of Gluon, which have layouts.
_DESCRIPTORS = (TensorDescriptor, hopper.TensorDescriptor, hopper.TensorDescriptorIm2Col, cdna5.TensorDescriptor)


class Recorder:
    """Collects launch specs. folder: where they will be written, which relative source paths start from.

    kernels: only these, all when empty. runs: whether launches really happen. told: is given each spec as it is found. device: what
    host code is told of. written_for: what Gluon kernels are written for, "" where each file says it.
    """

    def __init__(
        self, folder: str, kernels: tuple[str, ...] = (), main: str = "", runs: bool = False,
        told: Callable[[LaunchSpec], None] = lambda spec: None, device: Device = USUAL, written_for: str = "",
    ):  # fmt: skip
        self.folder, self.kernels, self.main, self.runs = os.path.realpath(folder), kernels, main, runs
        self.device, self.written_for = device, written_for
        self.classes = MadeClasses()
        self.told = told
        self.specs: list[LaunchSpec] = []
        self.notes: list[str] = []
        self.launches = 0
        self._known: set[str] = set()
        self._binders: dict[int, tuple[Any, Any]] = {}
        self._backends: dict[str, Any] = {}
        self._paused = 0
        self._given: dict[int, weakref.ref] = {}  # tensors of launches

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While the autotuner measures."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    def record(self, fn: JITFunction, args: tuple, grid: Any, kwargs: dict[str, Any]) -> None:
        """Add one launch, unless one with the same specialization is there already."""
        if self._paused or (self.kernels and fn.fn.__name__ not in self.kernels):
            return
        self.launches += 1
        self._given |= {id(x): weakref.ref(x) for x in (*args, *kwargs.values()) if hasattr(x, "untyped_storage")}
        try:
            spec = self._spec(fn, args, grid, kwargs)
        except TranslationError as error:
            self.note(f"{fn.fn.__qualname__}: {error.diagnostics[0].message}")
            return
        if 0 in spec.grid:
            self.note(f"{fn.fn.__qualname__}: a launch with a grid of {list(spec.grid)}, which runs nothing: left out")
            return
        data = spec.as_json()
        key = compiled_as(data)
        if key not in self._known:
            self._known.add(key)
            self.specs.append(spec)
            self.told(spec)

    def was_given(self, tensor: Any) -> bool:
        """Whether a launch had this tensor, which is alive, for an argument."""
        found = self._given.get(id(tensor))
        return found is not None and found() is tensor

    def _spec(self, fn: JITFunction, args: tuple, grid: Any, kwargs: dict[str, Any]) -> LaunchSpec:
        target = self._written_for(fn)
        if id(fn) not in self._binders:
            backend = self._backend(target)
            self._binders[id(fn)] = create_function_from_signature(fn.signature, fn.params, backend), backend
        binder, backend = self._binders[id(fn)]
        plain = [_stand_in(value) for value in args]
        named = {name: _stand_in(value) for name, value in kwargs.items() if name not in _INTERNAL}
        bound, specialization, options = binder(*plain, **named)
        options |= {name: value for name, value in kwargs.items() if name in bound and name in _OPTIONS}
        signature, constexprs, attrs = {}, {}, {}
        for (name, value), found in zip(bound.items(), specialization):
            kind, flags = found[0], found[1]
            signature[name] = _listed(kind)
            if kind == "constexpr":
                constexprs[name] = self._encoded(value)
            elif isinstance(kind, tuple):
                if "constexpr" in _leaves(kind):
                    constexprs[name] = self._constants(value, kind)
                if any(_leaves(flags)):
                    attrs[name] = _flags(flags)
            elif isinstance(flags, str) and flags:
                attrs[name] = flags
        originals = {name: _original(value) for name, value in bound.items()}
        sizes = grid(originals) if callable(grid) else grid
        values = {
            name: value
            for name, kind in signature.items()
            if kind != "constexpr" and (value := self._value(bound[name], fn.is_gluon())) is not None
        }
        return LaunchSpec(
            id="",
            kernel=fn.fn.__qualname__,
            source=self._source(fn),
            signature=signature,
            constexprs=constexprs,
            attrs=attrs,
            options=self._options(fn, options, backend),
            grid=tuple(int(size) for size in sizes),
            values=values,
            target=target,
        )

    def _written_for(self, fn: JITFunction) -> str:
        """The target that a Gluon kernel's launch gives, "" for a Triton kernel. Raises: TranslationError `source-gluon`."""
        if not fn.is_gluon():
            return ""
        found = self.written_for.replace("sm_", "cuda:")
        if found.startswith("gfx"):
            found = f"hip:{found}"
        if not found:
            found = target_of_text(Path(fn.fn.__code__.co_filename).read_text("utf-8", "replace"))
        if not found:
            message = "a Gluon kernel, and nothing says for what GPU: give --from (sm_90, gfx950, ...)"
            raise TranslationError(Diagnostic("source-gluon", message))
        return found

    def _backend(self, target: str) -> Any:
        """Specializes the arguments of a launch; for all AMD targets in the same way."""
        device = device_of(target) or USUAL
        return self._backends.setdefault(device.target.backend, make_backend(device.target))

    def _options(self, fn: JITFunction, given: dict[str, Any], backend: Any) -> dict[str, Any]:
        known = backend.parse_options(with_numerics({})).__dict__
        out = {}
        for name, value in given.items():
            if name not in known:
                whose = "AMD" if backend.target.backend == "hip" else "NVIDIA"
                self.note(
                    f"{fn.fn.__qualname__}: the launch option {name} is not one of Triton's {whose} backend: left out"
                )
            elif isinstance(value, (bool, int, float, str)):
                out[name] = value
        return out

    def _source(self, fn: JITFunction) -> str:
        """The module of an installed kernel, else the path of its file from the folder of the launch file."""
        path = os.path.realpath(fn.fn.__code__.co_filename)
        if any(part in ("site-packages", "dist-packages") for part in path.split(os.sep)) and fn.module != "__main__":
            return fn.module
        return self._path(path)

    def _path(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self.folder).replace(os.sep, "/")

    def _encoded(self, value: Any) -> Any:
        """A constexpr as JSON; a function of the script itself under the name that its file has as a module."""
        if isinstance(value, TensorArgument):
            value = value.original
        if (made := self.classes.origin(value)) is not None:
            reference = f"{self._path(made.file)}:{made.name}"
            if made.arguments is None:
                return {"$class": reference}
            return {"$call": reference, "args": [self._encoded(argument) for argument in made.arguments]}
        if isinstance(value, InterpretedFunction):  # with TRITON_INTERPRET=1 jit functions are of this kind
            value = JITFunction(value.fn)
        text = json.dumps(encode_value(value))
        return json.loads(text.replace('"__main__:', f'"{self.main}:'))

    def _constants(self, values: Any, kinds: Any) -> Any:
        return [
            self._constants(value, kind) if isinstance(kind, tuple) else
            self._encoded(value) if kind == "constexpr" else None
            for value, kind in zip(values, kinds)
        ]  # fmt: skip

    def _value(self, value: Any, whole: bool) -> Any:
        if isinstance(value, TensorArgument):
            return value.values(whole)
        if isinstance(value, _DESCRIPTORS):
            base = value.base.values(whole)
            inside = {"base": base, "shape": list(value.shape), "strides": list(value.strides)}
            return {"descriptor": {**inside, "block_shape": list(value.block_shape), **_more(value)}}
        if isinstance(value, tuple):
            return {"$tuple": [self._value(item, whole) for item in value]}
        return self._encoded(value) if isinstance(value, (bool, int, float, type(None))) else None


# Arguments that Triton itself adds to a launch.
_INTERNAL = ("debug", "instrumentation_mode", "fpsan_homomorphic_casts")
# Launch options that a kernel may have as parameters too: they are both.
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
# What else descriptors say, and what they say where nothing else is asked of them.
_PARTS = {"padding": "zero", "round_f32_to_tf32": False, "element_strides": None}
_PARTS |= {"pixel_box_lower_corner": None, "pixel_box_upper_corner": None}


def _more(descriptor: Any) -> dict[str, Any]:
    said = {name: getattr(descriptor, name, usual) for name, usual in _PARTS.items()}
    said = {name: value for name, value in said.items() if value != _PARTS[name]}
    return {name: list(value) if isinstance(value, (list, tuple)) else value for name, value in said.items()}


def _stand_in(value: Any) -> Any:
    if isinstance(value, _DESCRIPTORS):
        copy = object.__new__(type(value))  # without the checks of a new one, which the original has passed
        copy.__dict__.update(value.__dict__, base=tensor_argument(value.base) or value.base)
        return copy
    if isinstance(value, tuple):
        items = [_stand_in(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return tensor_argument(value) or value


def _original(value: Any) -> Any:
    return value.original if isinstance(value, TensorArgument) else value


def _listed(kind: Any) -> Any:
    return [_listed(item) for item in kind] if isinstance(kind, tuple) else kind


def _flags(flags: Any) -> Any:
    return [_flags(item) for item in flags] if isinstance(flags, (tuple, list)) else flags or ""


def _leaves(value: Any) -> list:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, (tuple, list)) else [value]


@contextmanager
def installed(recorder: Recorder) -> Iterator[Recorder]:
    """While active, every launch of the process goes to the recorder."""
    run, bench, interpret = JITFunction.run, Autotuner._bench, InterpretedFunction.run
    jit_functions: dict[int, JITFunction] = {}

    def recorded_run(self, *args, grid, warmup, **kwargs):
        if not warmup:
            recorder.record(self, args, grid, kwargs)
        return run(self, *args, grid=grid, warmup=warmup, **kwargs) if recorder.runs else None

    def recorded_interpret(self, *args, grid, warmup, **kwargs):
        if not warmup:
            fn = jit_functions.setdefault(id(self), JITFunction(self.fn, **self.kwargs))
            recorder.record(fn, args, grid, kwargs)
        return interpret(self, *args, grid=grid, warmup=warmup, **kwargs)

    def recorded_bench(self, *args, config, **meta):
        if recorder.runs:
            with recorder.paused():
                return bench(self, *args, config=config, **meta)
        self.fn.run(*args, **{**meta, **config.all_kwargs()})
        return [0.0, 0.0, 0.0]

    JITFunction.run, Autotuner._bench, InterpretedFunction.run = recorded_run, recorded_bench, recorded_interpret
    active = driver._active
    if not recorder.runs:
        driver._active = NoDevice(recorder.device)
    try:
        with recorder.classes.seen():
            yield recorder
    finally:
        JITFunction.run, Autotuner._bench, InterpretedFunction.run = run, bench, interpret
        driver._active = active


def has_device() -> bool:
    """Whether Triton finds a GPU to launch on."""
    try:
        driver.active.get_current_device()
    except (RuntimeError, ImportError, AttributeError, OSError):
        return False
    return True


def active_target() -> str:
    """The target of the GPU that Triton launches on: `cuda:90`, `hip:gfx950`."""
    target = driver.active.get_current_target()
    return f"{target.backend}:{str(target.arch).partition(':')[0]}"
