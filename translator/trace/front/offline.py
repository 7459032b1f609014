"""Triton's front end for a target: modules, and an active driver that reports the target, for tracing on machines without a GPU.

Kernel code may ask `tl.target_info.current_target()`; with no GPU there is no driver to answer. `offline_target`
installs one that answers and does nothing else. Uses Triton's private `runtime.driver` slot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gluonize.rules.targets import target as target_row
from gluonize.triton_api.backend import GPUTarget, driver, make_backend
from gluonize.triton_api.differences import with_numerics
from gluonize.triton_api.libtriton import ir


class _OfflineDriver:
    def __init__(self, gpu_target: GPUTarget):
        self._target = gpu_target

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0


def gpu_target(name: str) -> GPUTarget:
    """The Triton target for an architecture such as `gfx950`, `hip:gfx950`, `cuda:90` or `sm_90`; the last two are sources alone."""
    kind, _, capability = name.replace("sm_", "cuda:", 1).partition(":")
    if kind == "cuda":
        return GPUTarget("cuda", int(capability), 32)
    name = name.removeprefix("hip:")
    return GPUTarget("hip", name, target_row(name).warp_size)


@dataclass(frozen=True)
class FrontEnd:
    """What Triton makes modules of for one GPU: its backend, the options of a launch as that has them, and a context of dialects."""

    gpu: GPUTarget
    backend: Any
    options: Any
    context: Any

    @classmethod
    def of(cls, gpu: GPUTarget, options: Mapping[str, Any]) -> FrontEnd:
        backend, context = make_backend(gpu), ir.context()
        parsed = backend.parse_options(with_numerics(options))
        ir.load_dialects(context)
        backend.load_dialects(context)
        return cls(gpu, backend, parsed, context)

    def module(self, source: Any) -> Any:
        """The module of an `ASTSource`. Raises what Triton's front end raises."""
        codegen, modules = self.backend.get_codegen_implementation(self.options), self.backend.get_module_map()
        return source.make_ir(self.gpu, self.options, codegen, modules, self.context)


@contextlib.contextmanager
def offline_target(name: str) -> Iterator[GPUTarget]:
    """While active, Triton's front end believes that it runs on the architecture `name`."""
    gpu = gpu_target(name)
    saved = driver._active
    driver._active = _OfflineDriver(gpu)
    try:
        yield gpu
    finally:
        driver._active = saved
