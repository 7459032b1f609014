"""A kernel's TTIR as Triton has it further on: with layouts, with pipelined loops, or as the compiler's last TTGIR."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.trace.front.offline import FrontEnd, offline_target
from gluonize.trace.passes.cluster_rows import module_of
from gluonize.trace.passes.triton_passes import run_layout_passes, run_pipeline_passes

STAGES = {
    "layouts": "with layouts and matrix instructions; loops and memory accesses are as in the source",
    "loops": "loops are pipelined too: copies to LDS, slots, waits",
    "last": "all that Triton does, with buffer operations and the order of instructions",
}


def module_at(ttir: str, stage: str, target: str, options: Mapping[str, Any]) -> str:
    """The text of the module at a stage. options: of the launch. Runs MLIR passes: call it in a child process.

    Raises: TranslationError `raise-module` for text that Triton does not take.
    """
    from gluonize.triton_api.differences import with_numerics
    from gluonize.triton_api.package import triton

    with offline_target(target) as gpu:
        try:
            if stage == "last":
                with tempfile.TemporaryDirectory(prefix="gluonize-stage-") as folder:
                    path = Path(folder, "module.ttir")
                    path.write_text(ttir, encoding="utf-8")
                    return triton.compile(str(path), target=gpu, options=with_numerics(options)).asm["ttgir"]
            front_end = FrontEnd.of(gpu, options)
            module = run_layout_passes(module_of(ttir, front_end.context), front_end.options)
            if stage == "loops":
                run_pipeline_passes(module, front_end.options, loops_alone=True)
            return module.str()
        except (RuntimeError, ValueError) as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TranslationError(
                Diagnostic("raise-module", f"Triton takes no such TTIR for {target}", why=why)
            ) from error
