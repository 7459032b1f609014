"""Whether a generated file is what its source and launches give: by digests first, by translating only when they differ."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from gluonize import __version__
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.project.cache.results import ContentCache
from gluonize.product.project.cache.translation import base_key, source_file, without_found
from gluonize.product.project.digests import file_digest, launches_digest
from gluonize.product.project.files.planned import ProjectFile
from gluonize.product.project.output.layout_free import same_code
from gluonize.product.project.output.paths import is_located, not_located
from gluonize.product.project.output.provenance import GeneratedFile, read_generated, without_line
from gluonize.read.files.modules import parse_file
from gluonize.versions import triton_version

STATES = ("current", "edited", "outdated", "conflicts", "missing", "refused")
# regenerate(request owner) -> the generated text without its provenance line
Regenerate = Callable[[ProjectFile], str]
_CONFLICT = re.compile(r"^<{7} .*\n(?:(?!>{7} ).*\n)*?={7}\n(?:.*\n)*?>{7} ", re.MULTILINE)


@dataclass(frozen=True)
class FileState:
    """What became of one generated file.

    state: `current`; `edited`: its inputs are unchanged, its text is not; `outdated`: its inputs changed and give
    another text; `missing`; `refused`: its source can no longer be translated. reasons: what changed, one line each.
    edited: whether it was edited by hand (also when outdated). found, expected: both texts when they differ.
    """

    file: ProjectFile
    state: str
    reasons: tuple[str, ...] = ()
    edited: bool = False
    found: str = ""
    expected: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()

    def __post_init__(self):
        assert self.state in STATES, f"unknown state {self.state!r}"


def file_state(file: ProjectFile, cache: ContentCache, regenerate: Regenerate) -> FileState:
    """The state of one file; `regenerate` is called only when the digests do not settle it."""
    if not os.path.exists(file.output):
        return FileState(file, "missing", ("it does not exist",))
    generated = read_generated(file.output)
    if generated is not None and without_found(generated.provenance.options) == file.options:
        file = replace(file, options=generated.provenance.options)  # what a search found is not searched for again
    if generated is not None and (lines := conflict_lines(generated.bare)):
        return FileState(file, "conflicts", (f"it has {len(lines)} unresolved conflict{'s' * (len(lines) > 1)}",), True)
    try:
        reasons = changes(file, generated)
        edited = generated is not None and generated.edited
        if edited and (broken := syntax_problems(file.output)):
            return FileState(file, "refused", ("its hand edits are no Python",), True, diagnostics=broken)
        if not reasons and not edited:
            return FileState(file, "current")
        expected = None
        if not reasons and generated:  # the text the edits started from says what is expected
            expected = cache.get(base_key(generated.provenance.output))
        if expected is None:
            expected = regenerate(file)
    except TranslationError as error:
        return FileState(file, "refused", ("its source is refused",), diagnostics=error.diagnostics)
    found = generated.bare if generated else without_line(_text(file.output))
    if same_code(found, expected):
        return FileState(file, "current", reasons)
    if generated is None:
        return FileState(file, "outdated", reasons, False, found, expected)
    if not reasons or (edited and _only_versions(reasons)):
        return FileState(file, "edited", ("it was edited by hand",), True, found, expected)
    return FileState(file, "outdated", reasons, edited, found, expected)


def syntax_problems(path: str) -> tuple[Diagnostic, ...]:
    """What keeps Python from reading a file that was edited by hand; () where nothing does."""
    try:
        parse_file(path)
    except TranslationError as error:
        return error.diagnostics
    return ()


def fails(state: FileState, allow_edits: bool) -> bool:
    """Whether a state is an error; hand edits of a file whose inputs did not change may be allowed."""
    allowed = state.state == "edited" and (allow_edits or state.file.edits == "allow")
    return state.state != "current" and not allowed


def changes(file: ProjectFile, generated: GeneratedFile | None) -> tuple[str, ...]:
    """What differs between how the file was made and how it would be made now, one line each; reads no more than needed.

    Raises: TranslationError when there is no source, or its launches cannot be read.
    """
    if generated is None:
        return ("it does not say what it was made from",)
    was, out = generated.provenance, []
    if not file.is_source(was):
        out.append(f"it was made from {was.source}, not {file.source_label()}")
    else:
        main = source_file(file.source, ())
        if main is None or (digest := file_digest(main)) is None:
            raise TranslationError(_missing(file))
        if digest != was.source_digest:
            out.append(f"{file.source} changed")
    for path, (_, digest) in zip(file.used(was), was.uses):
        if file_digest(path) != digest:
            out.append(f"{path} changed")
    if not file.is_launches(was) or was.launch != file.launch:
        out.append(f"it was made with launches {was.launches}, not {file.launches_label()}")
    elif file.launches is not None and launches_digest(file.specs()) != was.launches_digest:
        out.append(f"the launches in {file.launches} changed")
    if was.target != file.target:
        out.append(f"it was made for {was.target}, not {file.target}")
    if without_found(was.options) != without_found(file.options):
        out.append(
            f"it was made with options {' '.join(was.options) or 'none'}, not {' '.join(file.options) or 'none'}"
        )
    if was.version != __version__:
        out.append(f"it was made by gluonize {was.version}; this is {__version__}")
    if was.triton != triton_version():
        out.append(f"it was made with Triton {was.triton}; this is {triton_version()}")
    return tuple(out)


def _missing(file: ProjectFile) -> Diagnostic:
    if not is_located(file.source):
        return not_located(file.source, file.output)
    return Diagnostic("source-missing", f"no source {file.source}", file.output)


def _only_versions(reasons: tuple[str, ...]) -> bool:
    return all(reason.startswith(("it was made by gluonize", "it was made with Triton")) for reason in reasons)


def conflict_lines(text: str) -> tuple[int, ...]:
    """The lines on which conflicts start that a merge marked and nobody resolved."""
    found = _CONFLICT.finditer(text)
    return tuple(text.count("\n", 0, match.start()) + 1 for match in found)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return file.read().replace("\r\n", "\n")
