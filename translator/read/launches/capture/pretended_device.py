"""A GPU that is not there, as far as torch programs can tell: tensors "on" it are on the CPU, and checks of results hold.

Host code chooses its kernels by what device there is. Where there is none, launches are recorded and not run, so what they would
have computed is zeros, and comparisons of results would end the program before its next launch.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from gluonize.read.launches.capture.devices import USUAL, Device

_UNWRITTEN = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
_NUMBERS = frozenset({"item", "tolist", "__bool__", "__int__", "__float__", "__index__"})
_TRUE_ANSWERS = frozenset({"allclose", "equal"})


@contextlib.contextmanager
def pretended_device(
    told: Device = USUAL,
    was_given: Callable[[Any], bool] = lambda tensor: False,
    unwritten: Callable[[str], None] = lambda place: None,
) -> Iterator[None]:
    """While active, torch has one GPU, `told`. Does nothing where torch is not installed, or has a GPU.

    unwritten: is given the place of host code that computes with numbers out of a tensor that was made for a launch to write, as
    `was_given` knows them.
    """
    try:
        import torch
        from torch.overrides import TorchFunctionMode
    except ImportError:
        torch = None
    # Not in the `except`: what the program raises would be told as a consequence of this.
    if torch is None or torch.cuda.is_available():
        yield
        return

    results = _Results(was_given)

    class Pretending(TorchFunctionMode):
        """Puts tensors for the GPU on the CPU, and answers that they are on the GPU."""

        def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            name = getattr(function, "__name__", "")
            if name == "__get__" and args and isinstance(args[0], torch.Tensor):
                what = getattr(function.__self__, "__name__", "")
                if what == "is_cuda":
                    return True
                if what == "device":
                    found = function(*args, **(kwargs or {}))
                    return torch.device("cuda", 0) if found.type == "cpu" else found
            if name == "cuda":
                return args[0]
            if name in _TRUE_ANSWERS:
                return True
            if name in _NUMBERS and args and isinstance(args[0], torch.Tensor) and results.has(args[0]):
                unwritten(_host_place())
            args, kwargs = _on_cpu(args, torch), _on_cpu(kwargs or {}, torch)
            if name == "isclose":
                return torch.ones_like(args[0], dtype=torch.bool)
            made = function(*args, **kwargs)
            if name in _UNWRITTEN and isinstance(made, torch.Tensor) and made.device.type != "meta":
                made.zero_()  # nobody writes it: what is computed from it should be the same each time
            if (name in _UNWRITTEN or name in _ZEROS) and isinstance(made, torch.Tensor):
                results.made[id(made)] = weakref.ref(made)
            return made

    with _replaced(_answers(torch, told)), Pretending():
        yield


class _Results:
    """Tensors that were made without values, for launches to write. was_given: whether a launch had a tensor for an argument."""

    def __init__(self, was_given: Callable[[Any], bool]):
        self.was_given = was_given
        self.made: dict[int, weakref.ref] = {}

    def has(self, tensor: Any) -> bool:
        whole = tensor._base if tensor._is_view() else tensor
        found = self.made.get(id(whole))
        return found is not None and found() is whole and (self.was_given(whole) or self.was_given(tensor))


def _on_cpu(value: Any, torch: Any) -> Any:
    """An argument in which the GPU is the CPU."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_on_cpu(item, torch) for item in value)
    if isinstance(value, dict):
        return {key: _on_cpu(item, torch) for key, item in value.items()}
    return value


def _host_place() -> str:
    """Where host code is, `moe.py:37`: the innermost frame that is not of torch or of this file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename == __file__ or frame.f_globals.get("__name__", "").partition(".")[0] == "torch"
    ):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _properties(told: Device) -> SimpleNamespace:
    """What torch tells of a device."""
    return SimpleNamespace(
        name=told.name, major=told.capability[0], minor=told.capability[1], total_memory=192 << 30,
        multi_processor_count=told.units, warp_size=told.target.warp_size, max_threads_per_multi_processor=told.threads,
        regs_per_multiprocessor=65536, shared_memory_per_block=min(told.shared, 65536),
        shared_memory_per_block_optin=told.shared, shared_memory_per_multiprocessor=told.shared, L2_cache_size=4 << 20,
        **({"gcnArchName": told.target.arch} if told.is_amd else {}),
    )  # fmt: skip


def _answers(torch: Any, told: Device) -> list[tuple[Any, str, Any]]:
    """What torch says of its devices: (owner, name, replacement)."""
    properties = _properties(told)

    class Stream:
        """A stream of a device that does nothing."""

        cuda_stream = 0
        device = torch.device("cuda", 0)

        def __init__(self, *args: Any, **kwargs: Any):
            pass

        def nothing(self, *args: Any) -> None:
            pass

        synchronize = wait_stream = wait_event = record_event = nothing

    class Event:
        """An event of a device that does nothing."""

        def __init__(self, *args: Any, **kwargs: Any):
            pass

        def record(self, *args: Any) -> None:
            pass

        def synchronize(self) -> None:
            pass

        def elapsed_time(self, other: Any) -> float:
            return 1.0

    answers: dict[str, Any] = {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "is_initialized": lambda: True,
        "get_device_name": lambda device=None: properties.name, "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: told.capability, "current_stream": lambda device=None: Stream(),
        "default_stream": lambda device=None: Stream(), "synchronize": lambda device=None: None, "empty_cache": lambda: None,
        "set_device": lambda device: None, "manual_seed": lambda seed: None, "manual_seed_all": lambda seed: None,
        "memory_allocated": lambda device=None: 0, "max_memory_allocated": lambda device=None: 0,
        "reset_peak_memory_stats": lambda device=None: None, "mem_get_info": lambda device=None: (192 << 30, 192 << 30),
        "is_bf16_supported": lambda *args, **kwargs: True, "_lazy_init": lambda: None, "init": lambda: None,
        "get_rng_state": lambda device=None: torch.get_rng_state(), "set_rng_state": lambda state, device=None: None,
        "device": lambda device: contextlib.nullcontext(), "device_of": lambda tensor: contextlib.nullcontext(),
        "stream": lambda stream: contextlib.nullcontext(), "Stream": Stream, "Event": Event,
        "is_current_stream_capturing": lambda: False,
    }  # fmt: skip
    out = [(torch.cuda, name, value) for name, value in answers.items()]
    out.append((torch, "compile", _uncompiled))  # it would compile for the device
    out.append((torch.testing, "assert_close", lambda *args, **kwargs: None))
    out.append((torch.version, "hip", (torch.version.hip or "6.3") if told.is_amd else None))
    if not told.is_amd:
        out.append((torch.version, "cuda", torch.version.cuda or "12.8"))
    out.append((torch.accelerator, "current_accelerator", lambda *a, **k: torch.device("cuda")))
    out.append((torch.accelerator, "is_available", lambda: True))
    return [(owner, name, value) for owner, name, value in out if hasattr(owner, name)]


def _uncompiled(model: Any = None, **_: Any) -> Any:
    """`torch.compile(f)`, `@torch.compile` and `@torch.compile(dynamic=True)`: the function as it is."""
    return model if model is not None else lambda function: function


@contextlib.contextmanager
def _replaced(changes: list[tuple[Any, str, Any]]) -> Iterator[None]:
    saved = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in saved:
            setattr(owner, name, value)
