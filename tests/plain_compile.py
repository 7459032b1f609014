"""Compile the launches of one folder of fixtures with plain Triton for one target, with no GPU.

    python plain_compile.py FOLDER TARGET

A process of its own, because some compiler faults abort the process. Prints one JSON line
{launch id: {"hsaco": bytes, "error": text}}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fixture_set
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.errors import TritonError
from triton.runtime import JITFunction, driver

# Lanes per wave: CDNA has 64, RDNA and gfx1250 have 32.
WARP_SIZE = {"gfx942": 64, "gfx950": 64, "gfx1250": 32, "gfx1100": 32, "gfx1201": 32}
FLAGS = {"D": ["tt.divisibility", 16], "S": ["tt.pointer_range", 32]}


class OfflineDriver:
    """Names the target where kernel code asks for it."""

    def __init__(self, target: GPUTarget):
        self.target = target

    def get_current_target(self) -> GPUTarget:
        return self.target


def compile_launch(fixture: fixture_set.Fixture, launch: dict, target: GPUTarget):
    """Triton's compiled kernel for the launch."""
    kernel = getattr(fixture_set.load_module(fixture.folder / launch["source"]), launch["kernel"])
    while not isinstance(kernel, JITFunction):
        kernel = kernel.fn
    position = {name: (i,) for i, name in enumerate(kernel.arg_names)}
    source = ASTSource(
        fn=kernel,
        signature={name: launch["signature"][name] for name in kernel.arg_names},
        constexprs={position[name]: value for name, value in launch["constexprs"].items()},
        attrs={position[name]: [FLAGS[flag] for flag in flags] for name, flags in launch["attrs"].items()},
    )
    return triton.compile(source, target=target, options=dict(launch["options"]))


def main(folder: str, target_name: str) -> None:
    target = GPUTarget("hip", target_name, WARP_SIZE[target_name])
    driver.set_active(OfflineDriver(target))
    fixture = fixture_set.Fixture(Path(folder).resolve())
    results = {}
    for launch in fixture.launches():
        try:
            results[launch["id"]] = {"hsaco": len(compile_launch(fixture, launch, target).asm["hsaco"])}
        except TritonError as error:
            results[launch["id"]] = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
