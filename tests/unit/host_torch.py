"""As much of torch as host code of small tests needs: tensors that have a shape, strides and a type, and no numbers."""

from __future__ import annotations

import importlib.util
import math
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gluonize.read.launches.capture.recorder import Recorder, installed
from gluonize.read.spec.launch import LaunchSpec

_BYTES = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8, "bool": 1,
    "float8_e4m3fn": 1, "float8_e4m3fnuz": 1,
}  # fmt: skip


class Kind:
    def __init__(self, name: str):
        self.name, self.itemsize = name, _BYTES[name]
        self.is_floating_point = "float" in name

    def __str__(self) -> str:
        return f"torch.{self.name}"


KINDS = {name: Kind(name) for name in _BYTES}


class Tensor:
    def __init__(self, shape: tuple[int, ...], dtype: Kind, strides: tuple[int, ...] | None = None):
        self.shape, self.dtype, self.device, self.is_cuda = tuple(shape), dtype, "cuda", True
        self._strides = strides or tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        self.ndim = len(self.shape)

    def stride(self, axis: int | None = None) -> Any:
        return self._strides if axis is None else self._strides[axis]

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def numel(self) -> int:
        return math.prod(self.shape)

    def dim(self) -> int:
        return self.ndim

    def data_ptr(self) -> int:
        return 4096

    def element_size(self) -> int:
        return self.dtype.itemsize

    def is_contiguous(self) -> bool:
        return self._strides == Tensor(self.shape, self.dtype)._strides

    def contiguous(self) -> Tensor:
        return Tensor(self.shape, self.dtype)

    def t(self) -> Tensor:
        return Tensor(self.shape[::-1], self.dtype, self._strides[::-1])

    T = property(t)

    def to(self, dtype: Kind) -> Tensor:
        return Tensor(self.shape, dtype, self._strides)

    def half(self) -> Tensor:
        return self.to(KINDS["float16"])

    def float(self) -> Tensor:
        return self.to(KINDS["float32"])

    def view(self, *shape: int) -> Tensor:
        left = self.numel() // math.prod(size for size in shape if size != -1) if -1 in shape else 0
        return Tensor(tuple(left if size == -1 else size for size in shape), self.dtype)

    reshape = view

    def new_empty(self, *shape: Any, dtype: Kind | None = None) -> Tensor:
        return _made(*shape, dtype=dtype or self.dtype)


def _made(*shape: Any, dtype: Kind | None = None, device: Any = None) -> Tensor:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return Tensor(tuple(sizes), dtype or KINDS["float32"])


def _like(other: Tensor, dtype: Kind | None = None, device: Any = None) -> Tensor:
    return Tensor(other.shape, dtype or other.dtype)


def torch_module() -> types.ModuleType:
    module = types.ModuleType("torch")
    makers = dict.fromkeys(("empty", "zeros", "ones", "rand", "randn"), _made)
    likes = dict.fromkeys(("empty_like", "zeros_like", "ones_like", "randn_like"), _like)
    for name, value in {**KINDS, **makers, **likes, "Tensor": Tensor, "dtype": Kind}.items():
        setattr(module, name, value)
    module.full = lambda shape, value, **named: _made(shape, **named)
    module.arange = lambda n, dtype=None, device=None: _made(n, dtype=dtype or KINDS["int64"])
    module.randint = lambda low, high, shape, dtype=None, device=None: _made(shape, dtype=dtype or KINDS["int64"])
    wrap = lambda kernel: kernel  # noqa: E731
    operator = lambda name, mutates_args=(): lambda function: function  # noqa: E731
    module.library = types.SimpleNamespace(wrap_triton=wrap, triton_op=operator, custom_op=operator)
    module.float, module.half, module.long, module.int = (KINDS[n] for n in ("float32", "float16", "int64", "int32"))
    return module


def launched(
    path: Path, run: Callable[[Any], None] | None = None, modules: dict[str, Any] | None = None
) -> list[LaunchSpec]:
    """What the host code of a file launches, as Triton specializes it. run: what to call of the module; its `__main__` without it."""
    with _modules({"torch": torch_module(), **(modules or {})}), installed(Recorder(str(path.parent))) as recorder:
        name = "__main__" if run is None else path.stem
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        with _modules({name: module}):
            spec.loader.exec_module(module)
            if run is not None:
                run(module)
    assert not recorder.notes, recorder.notes
    return recorder.specs


@contextmanager
def _modules(modules: dict[str, Any]) -> Iterator[None]:
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            sys.modules.pop(name) if module is None else sys.modules.__setitem__(name, module)


def differences(derived: LaunchSpec, real: LaunchSpec) -> dict[str, tuple]:
    """(derived, real) of every argument and option in which a derived launch is not the real one."""

    def parts(spec: LaunchSpec) -> dict[str, Any]:
        arguments = {n: (k, spec.constexprs.get(n), spec.attrs.get(n, "")) for n, k in spec.signature.items()}
        options = {"num_warps": 4, "num_stages": 2, **spec.options}
        return arguments | {n: options[n] for n in ("num_warps", "num_stages")}

    mine, theirs = parts(derived), parts(real)
    return {n: (mine.get(n), theirs.get(n)) for n in {**mine, **theirs} if mine.get(n) != theirs.get(n)}
