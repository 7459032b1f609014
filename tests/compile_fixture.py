"""Compile the launches of one folder of fixtures for one target, with no GPU.

    python compile_fixture.py FOLDER TARGET [FILE [WORKGROUPS]]

Without FILE the source kernels are compiled by plain Triton; FILE is a translation that holds the same kernels in Gluon, for
programs of so many workgroups.

A process of its own, because some compiler faults abort the process. Prints one JSON line
{launch id: {"language": "triton" or "gluon", "hsaco": bytes} or {"error": text}}.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import fixture_set
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.errors import TritonError
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime import JITFunction, driver

from gluonize.diagnostics import TranslationError
from gluonize.read.block_pointers.without_block_pointers import desugar_block_pointers

# Lanes per wave: CDNA has 64, RDNA and gfx1250 have 32.
WARP_SIZE = {"gfx942": 64, "gfx950": 64, "gfx1250": 32, "gfx1100": 32, "gfx1201": 32}
FLAGS = {"D": ["tt.divisibility", 16], "S": ["tt.pointer_range", 32]}


class OfflineDriver:
    """Names the target where kernel code asks for it."""

    def __init__(self, target: GPUTarget):
        self.target = target

    def get_current_target(self) -> GPUTarget:
        return self.target


def compile_launch(file: Path, launch: dict, target: GPUTarget) -> dict:
    """Compile the kernel of `file` for the launch; constexpr parameters that a translation added have their default."""
    kernel = getattr(fixture_set.load_module(file), launch["kernel"])
    while not isinstance(kernel, JITFunction):
        kernel = kernel.fn
    if not kernel.is_gluon():
        with contextlib.suppress(TranslationError):  # then it is Triton that refuses them
            desugar_block_pointers(kernel)
    if "_run_stream_k_" in file.read_text() and kernel.is_gluon():  # what stands around its `run` gives it these too
        launch["signature"] |= {"tiles": "i32", "sums": "*fp32", "marks": "*i32"}
        launch["attrs"] |= {"sums": "DS", "marks": "DS"}
    signature = {name: launch["signature"].get(name, "constexpr") for name in kernel.arg_names}
    source = (GluonASTSource if kernel.is_gluon() else ASTSource)(
        fn=kernel,
        signature=signature,
        constexprs={
            (i,): launch["constexprs"].get(parameter.name, parameter.default)
            for i, parameter in enumerate(kernel.params)
            if signature[parameter.name] == "constexpr"
        },
        attrs={
            (i,): [FLAGS[flag] for flag in launch["attrs"][name]]
            for i, name in enumerate(kernel.arg_names)
            if name in launch["attrs"]
        },
    )
    compiled = triton.compile(source, target=target, options=dict(launch["options"]))
    return {"language": "gluon" if kernel.is_gluon() else "triton", "hsaco": len(compiled.asm["hsaco"])}


def main(folder: str, target_name: str, translation: str = "", ctas: str = "") -> None:
    target = GPUTarget("hip", target_name, WARP_SIZE[target_name])
    driver.set_active(OfflineDriver(target))
    fixture = fixture_set.Fixture(Path(folder).resolve())
    results = {}
    for launch in fixture.launches():
        launch["options"] |= {"num_ctas": int(ctas)} if ctas else {}
        file = Path(translation) if translation else fixture.folder / launch["source"]
        try:
            results[launch["id"]] = compile_launch(file, launch, target)
        except TritonError as error:
            results[launch["id"]] = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
