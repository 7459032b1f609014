"""An active driver that reports the target being compiled, for tracing on machines without a GPU.

Kernel code may ask `tl.target_info.current_target()`; with no GPU there is no driver to answer. `offline_target`
installs one that answers and does nothing else. Uses Triton's private `runtime.driver` slot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from rules.targets import target as target_row


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
