"""Kernels that are Gluon already: what they are, and what can be done with them."""

from __future__ import annotations

from translator.diagnostics import Diagnostic, TranslationError
from translator.source.load import LoadedKernel


def refuse_gluon(loaded: LoadedKernel) -> None:
    """Raises: TranslationError `source-gluon` for a kernel under `@gluon.jit`."""
    if loaded.fn.is_gluon():
        raise TranslationError(
            Diagnostic(
                "source-gluon",
                f"{loaded.qualname} is a Gluon kernel already",
                loaded.path,
                loaded.line,
                1,
                "its layouts, copies and waits are written out; what is translated are kernels under @triton.jit",
                "compile it as it is (gluonize compile), compare it with the Triton kernel that it came from (gluonize validate"
                " SOURCE FILE), or translate that kernel",
            )
        )
