"""Validating a generated file as it lies there, hand edits included, on the launches that it was made for."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gluonize.diagnostics import InternalError, TranslationError
from gluonize.product.project.cache.recorded import Reads, recorded
from gluonize.product.project.cache.results import ContentCache, content_key
from gluonize.product.project.cache.translation import translate_cached
from gluonize.product.project.files.planned import ProjectFile
from gluonize.read.spec.launch import LaunchSpec

if TYPE_CHECKING:
    from concurrent.futures import Future

    from gluonize.judge.lower.children.worker import WorkerPool

TRANSLATE = "gluonize.translation:translate_kernel"
VALIDATE = "gluonize.product.project.checks.validation:validate_recorded"
log = logging.getLogger("gluonize")


@dataclass(frozen=True)
class ValidatedLaunch:
    """What the reference machine says of one launch. found: as `validate_launch` answers."""

    spec: LaunchSpec
    found: dict = field(hash=False)


def validate_recorded(*arguments) -> tuple[dict, Reads]:
    """`validate_launch` with a proof, and the files that both sides were read from; runs in a child."""
    from gluonize.judge.verdict import validate_launch

    return recorded(lambda: validate_launch(*arguments, prove=True))


def validate_file(file: ProjectFile, pool: WorkerPool, cache: ContentCache) -> tuple[ValidatedLaunch, ...]:
    """Run source and generated file on every launch that the translation has, from the cache where nothing changed.

    Raises: TranslationError when the source can no longer be translated: nobody knows its launches then.
    """
    request = file.request()
    result, _ = translate_cached(request, TRANSLATE, pool, cache)
    if result.text is None:
        found = (*result.diagnostics, *(d for outcome in result.outcomes for d in outcome.diagnostics))
        raise TranslationError(*found)
    done: dict[int, dict] = {}
    pending: dict[int, tuple[str, Future]] = {}
    specs = [outcome.spec for outcome in result.outcomes if outcome.status == "translated"]
    for index, spec in enumerate(specs):
        arguments = (file.source, file.output, spec, file.target, request.search_path, request.import_hosts)
        key = content_key("validation", VALIDATE, "proved first", *arguments)
        if not request.import_hosts and (known := cache.get(key)) is not None:
            log.info("%s for %s: validation found in the cache", file.output, spec.id)
            done[index] = known
        else:
            what = f"validating {spec.kernel} of {file.output}"
            pending[index] = key, pool.submit(VALIDATE, *arguments, what=what)
    for index, (key, future) in pending.items():
        done[index] = _answer(future, key, cache, keep=not request.import_hosts)
    return tuple(ValidatedLaunch(spec, done[index]) for index, spec in enumerate(specs))


def _answer(future: Future, key: str, cache: ContentCache, keep: bool) -> dict:
    try:
        found, reads = future.result()
    except TranslationError as error:
        return {"status": "not_runnable", "reason": str(error)}
    except InternalError as error:
        return {"status": "not_runnable", "reason": "a bug in gluonize", "bug": str(error)}
    if keep and found["status"] in ("validated", "mismatch"):
        cache.put(key, found, reads)
    return found
