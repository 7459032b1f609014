"""What upstream's own translator (`triton.tools.triton_to_gluon_translator`) makes of a kernel, for comparison."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from pathlib import Path

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.spec.launch import LaunchSpec


def upstream_text(source: str, spec: LaunchSpec, target: str, search_path: tuple[str, ...] = ()) -> str:
    """Upstream's translation of one kernel. Imports the source's module for real, as upstream does: call it in a child.

    Autotuners and heuristics are taken off first: by name, upstream gives an empty file for such a kernel.
    Raises: TranslationError `upstream-refuses` with upstream's own words.
    """
    from gluonize.trace.front.offline import offline_target
    from gluonize.triton_api.jit_functions import JITFunction
    from gluonize.triton_api.upstream_tool import TranslatorTarget, convert_triton_to_gluon

    module = source
    if source.endswith(".py"):
        folder, module = os.path.dirname(os.path.abspath(source)), Path(source).stem
        search_path = (folder, *search_path)
        # Another file of the same name may have been imported before in this process.
        sys.modules.pop(module, None)
    sys.path[:0] = search_path
    with offline_target(target):
        try:
            kernel = functools.reduce(getattr, spec.kernel.split("."), importlib.import_module(module))
            while not isinstance(kernel, JITFunction):
                kernel = kernel.fn
            return convert_triton_to_gluon([kernel], TranslatorTarget(target))
        except Exception as error:  # whatever upstream raises is its answer
            words = str(error).strip().splitlines()
            why = f"{type(error).__name__}: {words[-1]}" if words else type(error).__name__
            raise TranslationError(
                Diagnostic("upstream-refuses", "upstream's translator fails", source, why=why)
            ) from error
