"""A translation that is given where its source is expected."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from gluonize.diagnostics import Diagnostic, TranslationError, shown
from gluonize.product.project.output.paths import located
from gluonize.product.project.output.provenance import read_generated
from gluonize.read.files.modules import parse_file


def check_not_swapped(source: str, out: str | None, command: str) -> None:
    """Refuse a source that says in its header that it is a translation: of `out`, or of any file where there is no `out`; and an `out` that
    is one of another source, and has no function of this one.

    command: what to type instead, up to the files. Raises: TranslationError `source-generated`.
    """
    if (found := read_generated(source)) is None:
        _check_pair(source, out, command)
        return
    origin = shown(located(found.provenance.source, source))
    if out is not None and os.path.realpath(origin) != os.path.realpath(out):
        return  # two translations may be compared
    what = "source and translation are swapped" if out is not None else "this is a translation, not a source"
    why = f"{shown(source)} was made from {origin} for {found.provenance.target}"
    files = f"{origin} {shown(source)}" if command != "gluonize translate" else f"{origin} -t {found.provenance.target}"
    raise TranslationError(Diagnostic("source-generated", what, source, why=why, help=f"{command} {files}"))


def other_target(out: str, targets: Iterable[str]) -> str:
    """A note where a translation was made for none of the targets; "" else."""
    made = read_generated(out)
    if made is None or made.provenance.target in (targets := list(targets)):
        return ""
    return f"note: {shown(out)} was made for {made.provenance.target}, and is looked at as one for {', '.join(targets)}"


def _check_pair(source: str, out: str | None, command: str) -> None:
    """Raises: TranslationError `usage` for the translation of another source, and for the source itself."""
    any_two = command in ("gluonize diff", "gluonize parity")  # compare any files
    if out is not None and not any_two and os.path.realpath(source) == os.path.realpath(out):
        why, help = "it is compared with itself", f"{command} {shown(source)} OUT, where OUT is its translation"
        raise TranslationError(Diagnostic("usage", "source and translation are one file", source, why=why, help=help))
    made = read_generated(out) if out is not None else None
    if made is None or not os.path.isfile(source):
        return
    origin = located(made.provenance.source, out or "")
    if os.path.realpath(origin) == os.path.realpath(source) or _functions(parse_file(source).text) & _functions(
        made.bare
    ):
        return
    why = f"{shown(made.path)} was made from {shown(origin)} for {made.provenance.target}"
    message = f"{shown(made.path)} is the translation of another source"
    help = f"{command} {shown(origin)} {shown(made.path)}"
    raise TranslationError(Diagnostic("usage", message, source, why=why, help=help))


def _functions(text: str) -> set[str]:
    return set(re.findall(r"^\s*def (\w+)", text, re.MULTILINE))
