"""Translating through the cache, and what the written file says of where it comes from."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from gluonize import __version__
from gluonize.decide.choices.chosen import parse_choices
from gluonize.product.project.cache.recorded import Reads
from gluonize.product.project.cache.results import ContentCache, content_key, folder_digest
from gluonize.product.project.digests import file_digest, launches_digest, text_digest
from gluonize.product.project.output.paths import located, named
from gluonize.product.project.output.provenance import DERIVED, Provenance, stamped, without_line
from gluonize.read.files.modules import find_module, full_search_path, module_of_path
from gluonize.read.files.source_names import is_path
from gluonize.request import BUDGET, TranslateRequest, TranslateResult
from gluonize.search.confirm import with_confirmed
from gluonize.versions import triton_version

if TYPE_CHECKING:
    from gluonize.judge.lower.children.worker import WorkerPool

RECORDED = "gluonize.product.project.cache.recorded:translate_recorded"
FOUND = "--found"  # in a provenance line only: what a search found for a kernel, or a compile confirmed
GENERATED = "generated"  # cache key of the text that a provenance line's `output` names
log = logging.getLogger("gluonize")


def translate_cached(
    request: TranslateRequest, function: str, pool: WorkerPool, cache: ContentCache
) -> tuple[TranslateResult, Reads]:
    """The translation of one file, from the cache or by `function` (`module:function`) in a child of the pool.

    Only what was translated is kept, and nothing of a run with `--import`, whose reads are not seen.
    """
    key = content_key("translation", function, request, folder_digest(request.rules))
    if not request.import_hosts and (found := cache.find(key)) is not None:
        log.info("%s for %s: translation found in the cache", request.source, request.target)
        return found
    what = f"translating {request.source} for {request.target}"
    if request.optimize == "search":
        from gluonize.search.search import search_choices  # with the model of cycles, as the next

        request = request if request.chosen else search_choices(request, pool)
    elif request.optimize == "aggressive" or request.strategy == "ping-pong":
        from gluonize.search.choose import make_choices

        request = make_choices(request, pool)
    seen: list[Reads] = []

    def translated(asked: TranslateRequest) -> TranslateResult:
        result, reads = pool.call(RECORDED, asked, function, what=what, timeout=pool.timeout * _kernels(asked))
        seen.append(reads)
        return result

    answer = with_confirmed(request, pool, translated), seen[0]
    if request.optimize == "search":
        answer = replace(answer[0], chosen=request.chosen), answer[1]
    log.info("%s for %s: translated in %.2f s", request.source, request.target, answer[0].seconds)
    if answer[0].status == "translated" and not request.import_hosts:
        cache.put(key, *answer)
    return answer


def _kernels(request: TranslateRequest) -> int:
    """How many kernels a translation has to do with, each of which may take as long as one job: those named, else at most as many
    as the source mentions jit."""
    named = {*request.kernels, *(spec.kernel for spec in request.launches)}
    path = source_file(request.source, request.search_path)
    if named or path is None or not os.path.isfile(path):
        return max(1, len(named))
    with open(path, "rb") as file:
        return max(1, file.read().count(b"jit"))


def stamped_text(
    text: str, request: TranslateRequest, output: str, launches: str | None, reads: Reads, cache: ContentCache
) -> str:
    """`text` with the line that says what it was made from; the cache keeps it as the base for later merges."""
    provenance = provenance_of(request, output, launches, reads)
    written = stamped(text, provenance, request.style.line_length)
    if written != text:
        bare = without_line(written).replace("\r\n", "\n")
        cache.put(base_key(text_digest(bare)), bare)
    return written


def base_key(output_digest: str) -> str:
    """Where the generated text with this digest is kept; the same for all versions, the digest says it all."""
    return f"{GENERATED}-{output_digest}"


def provenance_of(request: TranslateRequest, output: str, launches: str | None, reads: Reads) -> Provenance:
    """What a file made by `request` says of itself. launches: path of the launch file, None when they were derived."""
    main = source_file(request.source, request.search_path)
    digests = dict(reads.files)
    source = named(request.source, output) if is_path(request.source) else request.source
    own = os.path.realpath(main) if main else ""
    roots = project_roots(request.source, output)
    mine = [item for item in reads.files if is_users(item[0], roots) and os.path.realpath(item[0]) != own]
    uses = tuple((named(path, output), digest) for path, digest in mine)
    return Provenance(
        source=source,
        source_digest=digests.get(main or "") or (file_digest(main) if main else None) or "unknown",
        launches=named(launches, output) if launches else DERIVED,
        launches_digest=launches_digest(request.launches) if launches else "none",
        target=request.target,
        launch=request.launches[0].id if request.standalone else "",
        options=request_options(request, output),
        uses=tuple(sorted(uses)),
        version=__version__,
        triton=triton_version(),
    )


def source_file(source: str, search_path: tuple[str, ...]) -> str | None:
    """The absolute path of a source given as a path or a module name."""
    if is_path(source):
        return os.path.abspath(source)
    found = find_module(source, full_search_path(search_path))
    return found.path if found and found.path else None


def project_roots(source: str, output: str) -> tuple[str, ...]:
    """Folders whose files belong to the user: the repository of the output, and where a source file imports from."""
    folder = start = os.path.dirname(os.path.realpath(output))
    while not os.path.exists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            folder = start
            break
        folder = os.path.dirname(folder)
    return (folder, *([module_of_path(os.path.realpath(source))[1]] if is_path(source) else []))


def is_users(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a file that was read belongs to the project, and not to a package that is installed somewhere."""
    path = os.path.realpath(path)
    if any(part in ("site-packages", "dist-packages") for part in path.split(os.sep)):
        return False
    return any(path.startswith(os.path.join(root, "")) for root in roots)


def request_options(request: TranslateRequest, output: str) -> tuple[str, ...]:
    """The arguments of `gluonize translate` that make this request from its source, launches and target."""
    words: list[str] = []
    if not request.standalone:
        for name in request.kernels:
            words += ["-k", name]
    for name, value in request.assignments:
        words += ["--set", f"{name}={value}"]
    words += ["--import"] * request.import_hosts
    words += ["--fallback", request.fallback] if request.fallback else []
    words += ["--num-buffers", str(request.num_buffers)] if request.num_buffers is not None else []
    words += ["--strategy", request.strategy] if request.strategy else []
    for word in request.choices.words():
        words += ["--choose", word]
    words += ["--optimize", request.optimize] if request.optimize != "parity" else []
    words += ["--budget", str(request.budget)] if request.budget != BUDGET else []
    words += ["--grid", str(request.grid)] if request.grid else []
    if request.optimize in ("search", "parity"):
        for kernel, found in request.chosen:
            words += [FOUND, f"{kernel}:{','.join(found.words())}"]
    words += ["--from", request.written_for] if request.written_for else []
    words += ["--emit", request.emit] if request.emit else []
    words += ["--keep-structure"] * request.keep_structure + ["--keep-going"] * request.keep_going
    words += ["--strict"] * request.strict + ["--all-configs"] * request.all_configs + ["--general"] * request.general
    for folder in request.rules:
        words += ["--rules", named(folder, output)]
    return tuple(words)


def without_found(words: tuple[str, ...]) -> tuple[str, ...]:
    """The options that were asked for: without what a search found."""
    pairs = zip(("", *words), words)
    return tuple(word for before, word in pairs if FOUND not in (before, word))


_FLAGS = {
    "--import": "import_hosts", "--keep-going": "keep_going", "--strict": "strict", "--all-configs": "all_configs",
    "--general": "general", "--keep-structure": "keep_structure",
}  # fmt: skip


def with_options(
    request: TranslateRequest, words: tuple[str, ...], output: str, search: tuple[str, ...] = ()
) -> TranslateRequest:
    """The inverse of `request_options`. search: where to look first for the folders of rules.

    Raises: ValueError for words it does not know.
    """
    rest, fields, chosen = list(words), {"kernels": [], "assignments": [], "rules": [], "chosen": []}, []
    while rest:
        word = rest.pop(0)
        if word in _FLAGS:
            fields[_FLAGS[word]] = True
            continue
        if not rest:
            raise ValueError(f"{word} needs a value")
        value = rest.pop(0)
        if word == "-k":
            fields["kernels"].append(value)
        elif word == "--set":
            name, _, given = value.partition("=")
            fields["assignments"].append((name.strip(), given.strip()))
        elif word == "--rules":
            fields["rules"].append(located(value, output, search))
        elif word in ("--budget", "--grid"):
            fields[word.removeprefix("--")] = int(value)
        elif word == FOUND:
            kernel, _, found = value.partition(":")
            fields["chosen"].append((kernel, parse_choices(found.split(",") if found else ())))
        elif word == "--choose":
            chosen.append(value)
        elif word == "--num-buffers":
            fields["num_buffers"] = int(value)
        elif word == "--from":
            fields["written_for"] = value
        elif word in ("--emit", "--fallback", "--strategy", "--optimize"):
            fields[word.removeprefix("--")] = value
        else:
            raise ValueError(f"unknown option {word}")
    fields["choices"] = parse_choices(chosen)
    return replace(request, **{name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()})
