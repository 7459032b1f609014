"""`gluonize check --comment`: one text for a pull request, with the state, validation and parity of each file."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from gluonize.diagnostics import TranslationError
from gluonize.product.cluster.open_pool import open_pool
from gluonize.product.project.cache.kept_jobs import Pool
from gluonize.product.project.cache.results import ContentCache
from gluonize.product.project.cache.translation import translate_cached
from gluonize.product.project.checks.checked_file import CheckedFile
from gluonize.product.project.checks.validation import TRANSLATE
from gluonize.product.report.checks import Sources, check, summary_rows
from gluonize.product.review.comment import Reviewed, comment_text
from gluonize.read.files.source_names import source_folders


def comment_of(
    checked: Sequence[CheckedFile], jobs: int, timeout: float, cache: ContentCache, cluster: str | None = None
) -> str:
    """The comment; both sides of every launch of the files that are there are compiled for it."""
    pool = open_pool(jobs, timeout, cache.shelf is not None, cluster)
    with pool, ThreadPoolExecutor(pool.jobs) as threads:
        rows = list(threads.map(lambda one: _parity_rows(one, pool, cache), checked))
    return comment_text([_reviewed(one, table) for one, table in zip(checked, rows)])


def _reviewed(one: CheckedFile, parity_rows: list[list[str]]) -> Reviewed:
    file = one.state.file
    launches = tuple((x.spec.id, x.found["status"], x.found.get("reason", "")) for x in one.launches or ())
    return Reviewed(file.output, file.source, file.target, one.state.state, one.level, launches, parity_rows)


def _parity_rows(one: CheckedFile, pool: Pool, cache: ContentCache) -> list[list[str]]:
    """Figures of the launches of a file beside Triton's; none for a file that is missing or whose source is refused."""
    file = one.state.file
    if one.state.state in ("missing", "conflicts", "refused") or one.refused:
        return []
    try:
        request = file.request()
        result, _ = translate_cached(request, TRANSLATE, pool, cache)
    except TranslationError:
        return []  # `check` has said why
    with open(file.output, encoding="utf-8") as opened:
        given = Sources(
            file.source, opened.read(), file.output, file.target, source_folders(file.source), request.import_hosts
        )
    specs = tuple(outcome.spec for outcome in result.outcomes if outcome.status == "translated")
    return summary_rows(check(pool, given, specs, validate=False, stages=False))
