"""The devices that host code may be told of: what a program is answered that asks which GPU there is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gluonize.read.kernels.gluon_kernels import target_of_text
from gluonize.rules.targets import TARGETS, Target
from gluonize.triton_api.backend import GPUTarget


@dataclass(frozen=True)
class Device:
    """capability: as torch tells it. units: compute units or multiprocessors. shared: bytes of shared memory that one of them gives."""

    target: GPUTarget
    name: str
    capability: tuple[int, int]
    units: int
    shared: int
    threads: int

    @property
    def word(self) -> str:
        """Its target as `--from` spells it."""
        return str(self.target.arch) if self.is_amd else f"sm_{self.target.arch}"

    @property
    def is_amd(self) -> bool:
        return self.target.backend == "hip"

    def driver_properties(self) -> dict[str, Any]:
        """What Triton's driver says of it: clocks in kHz, the bus in bits (`getDeviceProperties`, backends/*/driver.c)."""
        return {
            "max_shared_mem": self.shared, "max_num_regs": 65536, "multiprocessor_count": self.units,
            "sm_clock_rate": 2_100_000, "mem_clock_rate": 1_300_000, "mem_bus_width": 8192,
            "arch": self.target.arch, "warpSize": self.target.warp_size, "max_threads_per_sm": self.threads,
            "cooperativeLaunch": 1,
        }  # fmt: skip


def _amd(row: Target) -> Device:
    units = row.compute_units or _UNITS  # nobody has said how many the newest one has
    return Device(GPUTarget("hip", row.name, row.warp_size), "gluonize", row.capability, units, row.lds_bytes, 2048)


_UNITS = 256
# Of NVIDIA's, here A100, H100, B200 and B300, "CUDA C++
# Programming Guide", Technical Specifications per Compute Capability, says the bytes of a thread block.
_NVIDIA = {
    "80": Device(GPUTarget("cuda", 80, 32), "NVIDIA A100", (8, 0), 108, 163 << 10, 2048),
    "90": Device(GPUTarget("cuda", 90, 32), "NVIDIA H100", (9, 0), 132, 227 << 10, 2048),
    "100": Device(GPUTarget("cuda", 100, 32), "NVIDIA B200", (10, 0), 148, 227 << 10, 2048),
    "103": Device(GPUTarget("cuda", 103, 32), "NVIDIA B300", (10, 3), 148, 227 << 10, 2048),
}
USUAL = _amd(next(iter(TARGETS.values())))


def device_of(target: str) -> Device | None:
    """The device of a target, `sm_90`, `cuda:90`, `gfx950`, `hip:gfx950`; None for one that no program is told of."""
    for prefix in ("sm_", "cuda:", "hip:"):
        target = target.removeprefix(prefix)
    return _amd(TARGETS[target]) if target in TARGETS else _NVIDIA.get(target)


def known_devices() -> list[str]:
    """The targets that `device_of` knows, as `--from` spells them."""
    return [*TARGETS, *(device.word for device in _NVIDIA.values())]


def target_of_files(words: Iterable[str]) -> str:
    """What the Gluon kernels of the Python files among a command's words are written for, "" where they import nothing that says it.

    A word may name a test in a file (`test_x.py::test_y`). What a folder holds is not asked: its tests may be for several GPUs.
    """
    for word in words:
        path = word.partition("::")[0]
        if path.endswith((".py", ".ipynb")) and os.path.isfile(path):
            if found := target_of_text(Path(path).read_text("utf-8", "replace")):
                return found
    return ""
