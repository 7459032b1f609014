"""What the reviewing commands work on: the source's text and a translation, read from a file or made on the spot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.editor.line_map import LineMap
from gluonize.product.project.cache.results import ContentCache
from gluonize.product.project.cache.translation import translate_cached
from gluonize.product.project.files.planned import from_provenance
from gluonize.product.project.output.provenance import read_generated
from gluonize.product.project.output.swapped import check_not_swapped
from gluonize.read.files.modules import find_module, full_search_path, parse_file
from gluonize.read.files.source_names import check_source, is_path, source_folders, source_name
from gluonize.read.spec.launch import LaunchSpec
from gluonize.read.spec.selected import select_launches
from gluonize.read.text.style import style_of
from gluonize.request import TranslateRequest, TranslateResult
from gluonize.rules.targets import parse_targets

TRANSLATE = "gluonize.translation:translate_kernel"


@dataclass(frozen=True)
class ReviewOptions:
    """What to review. out: the translation's file, None to look for NAME_TARGET.py beside the source or translate."""

    source: str
    out: str | None = None
    target: str | None = None
    launches: str | None = None
    kernels: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    import_hosts: bool = False
    timeout: float = 60.0


@dataclass(frozen=True)
class Review:
    """Both texts. launches: for which the translation is made; result: the answer when it was translated just now. origins: the lines of
    the source from which statements of the result came, by their first lines; of a file that is not made by the translator, none.
    """

    source_path: str
    source_text: str
    result_name: str
    result_text: str
    target: str
    launches: tuple[LaunchSpec, ...]
    result: TranslateResult | None
    origins: Mapping[int, int] = field(default_factory=dict)


def open_review(options: ReviewOptions, pool: WorkerPool) -> Review:
    """Read both sides, translating in memory where there is no output file.

    Raises: TranslationError for what cannot be read or translated.
    """
    check_source(options.source)
    if options.out is not None:
        check_source(options.out)
    check_not_swapped(options.source, options.out, "gluonize diff")
    target = one_target(options.target) if options.target else ""
    path = source_path(options.source)
    given = select_launches(options.launches, options.source, options.kernels) if options.launches else ()
    given = tuple(replace(spec, source=options.source) for spec in given)
    out = options.out or _beside(options.source, target)
    if out is not None:
        parsed = parse_file(out)
        known = _recorded_origins(out, options.source, parsed.text, pool)
        return Review(path, parse_file(path).text, out, parsed.text, target, given, None, known)
    result = translated(options, target, given, pool)
    name = f"{source_name(options.source)}_{target}.py"
    launches = tuple(o.spec for o in result.outcomes if o.status == "translated")
    return Review(path, parse_file(path).text, name, result.text or "", target, launches, result, dict(result.origins))


def _recorded_origins(out: str, source: str, text: str, pool: WorkerPool) -> dict[int, int]:
    """Where the statements of a generated file came from: those of its lines that are as the translator makes them."""
    generated = read_generated(out)
    if generated is None:
        return {}
    made = replace(from_provenance(generated), source=source)
    try:
        request = made.request()
        if request.import_hosts or request.optimize == "aggressive" or request.strategy == "ping-pong":
            return {}  # would run the user's code, or compile all candidates again
        result, _ = translate_cached(request, TRANSLATE, pool, ContentCache.of_user(True))
    except TranslationError:
        return {}  # refused today: the texts tell what they can
    moved = LineMap(result.text or "", text)
    return {now: origin for line, origin in result.origins if (now := moved.forth(line)) is not None}


def translated(
    options: ReviewOptions, target: str, launches: tuple[LaunchSpec, ...], pool: WorkerPool
) -> TranslateResult:
    """The translation, in memory. Raises: TranslationError when it is refused."""
    if not target:
        why = "there is no translation to look at"
        raise TranslationError(
            Diagnostic("usage", "neither OUT nor a target is given", why=why, help="give OUT or -t TARGET")
        )
    result = pool.call(
        TRANSLATE, request_of(options, target, launches), what=f"translating {options.source} for {target}"
    )
    if result.text is None:
        found = [*result.diagnostics, *(d for o in result.outcomes for d in o.diagnostics)]
        if not found:
            message = "no launch could be derived from the source"
            found = [Diagnostic("spec-missing", message, options.source, help="give launch specs with -l FILE")]
        raise TranslationError(*found)
    return result


def request_of(options: ReviewOptions, target: str, launches: tuple[LaunchSpec, ...]) -> TranslateRequest:
    pairs = [text.partition("=") for text in options.assignments]
    return TranslateRequest(
        source=options.source,
        target=target,
        kernels=options.kernels,
        launches=launches,
        search_path=source_folders(options.source),
        assignments=tuple((name.strip(), value.strip()) for name, _, value in pairs),
        import_hosts=options.import_hosts,
        style=style_of(options.source),
    )


def one_target(given: str) -> str:
    """The one architecture that `-t` names."""
    rows = parse_targets(given)
    if len(rows) != 1:
        names = ", ".join(row.name for row in rows)
        raise TranslationError(Diagnostic("usage", f"-t names {len(rows)} targets ({names})", help="give one of them"))
    return rows[0].name


def source_path(source: str) -> str:
    """The file of a source that may be a module's name."""
    if is_path(source):
        return source
    found = find_module(source, full_search_path(source_folders(source)))
    if found is None or not found.path:
        raise TranslationError(Diagnostic("source-missing", f"no module {source} on the search path"))
    return found.path


def _beside(source: str, target: str) -> str | None:
    folder = os.path.dirname(source) if is_path(source) else ""
    path = os.path.join(folder, f"{source_name(source)}_{target}.py")
    return path if target and os.path.isfile(path) else None
