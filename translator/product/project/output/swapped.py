"""A translation that is given where its source is expected."""

from __future__ import annotations

import os

from gluonize.diagnostics import Diagnostic, TranslationError, shown
from gluonize.product.project.output.paths import located
from gluonize.product.project.output.provenance import read_generated


def check_not_swapped(source: str, out: str | None, command: str) -> None:
    """Refuse a source that says in its header that it is a translation: of `out`, or of any file where there is no `out`.

    command: what to type instead, up to the files. Raises: TranslationError `source-generated`.
    """
    if (found := read_generated(source)) is None:
        return
    origin = shown(located(found.provenance.source, source))
    if out is not None and os.path.realpath(origin) != os.path.realpath(out):
        return  # two translations may be compared
    what = "source and translation are swapped" if out is not None else "this is a translation, not a source"
    why = f"{shown(source)} was made from {origin} for {found.provenance.target}"
    files = f"{origin} {shown(source)}" if command != "gluonize translate" else f"{origin} -t {found.provenance.target}"
    raise TranslationError(Diagnostic("source-generated", what, source, why=why, help=f"{command} {files}"))
