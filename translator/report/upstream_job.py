"""What upstream's own translator (`triton.tools.triton_to_gluon_translator`) makes of a kernel, for comparison."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from translator.diagnostics import Diagnostic, TranslationError
from translator.source.launch_spec import LaunchSpec


def upstream_text(source: str, spec: LaunchSpec, target: str, search_path: tuple[str, ...] = ()) -> str:
    """Upstream's translation of one kernel. Imports the source's module for real, as upstream does: call it in a child.

    Raises: TranslationError `upstream-refuses` with upstream's own words.
    """
    from triton.tools.triton_to_gluon_translator.target import TranslatorTarget
    from triton.tools.triton_to_gluon_translator.translator import translate_paths

    from translator.frontend.offline import offline_target

    module = source
    if source.endswith(".py"):
        folder, module = os.path.dirname(os.path.abspath(source)), Path(source).stem
        search_path = (folder, *search_path)
    sys.path[:0] = search_path
    with offline_target(target):
        try:
            return translate_paths([f"{module}:{spec.kernel}"], TranslatorTarget(target))
        except Exception as error:  # whatever upstream raises is its answer
            words = str(error).strip().splitlines()
            why = f"{type(error).__name__}: {words[-1]}" if words else type(error).__name__
            raise TranslationError(
                Diagnostic("upstream-refuses", "upstream's translator fails", source, why=why)
            ) from error
