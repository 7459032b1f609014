"""`gluonize cache`: what the cache holds, and making it smaller."""

from __future__ import annotations

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.cache_folder import MAX_ENTRIES, prune_cache_folder, use_cache_folder
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, progress, rich_console
from gluonize.product.project.cache.results import ContentCache
from gluonize.store.address import parse_bytes, shown_bytes
from gluonize.store.chosen_store import COMPILED, is_shared
from gluonize.store.entries import Entry
from gluonize.store.shelf import Shelf


def run_cache(action: str, limit: str | None, verbosity: Verbosity) -> int:
    """Show, prune or clear. Raises: TranslationError `cache-limit`, and `cache-unreadable` when the store cannot be listed."""
    console = rich_console(verbosity)
    shelf = ContentCache.of_user().shelf
    assert shelf is not None, "a cache that is switched on has a shelf"
    if action == "show":
        for line in shown(shelf):
            console.print(line, markup=False)
        return exit_status.DONE
    most, kernels = (0, 0) if action == "clear" else (_bytes(limit, shelf), MAX_ENTRIES)
    before, compiled = _listed(shelf), 0
    # Removing ten thousand files from a busy disk takes minutes.
    with progress("removing results", len(before) if action == "clear" else 1, verbosity) as advance:
        shelf.prune(most, advance)
    if not is_shared():
        with progress("removing compiled kernels", 1, verbosity) as advance:
            compiled = prune_cache_folder(use_cache_folder(), kernels, advance)
    after = _listed(shelf)
    gone = sum(entry.size for entry in before) - sum(entry.size for entry in after)
    if not verbosity.quiet:
        beside = f"; {compiled} compiled kernels of this machine too" if compiled else ""
        console.print(f"{len(before) - len(after)} entries removed, {shown_bytes(max(0, gone))}{beside}", markup=False)
    return exit_status.DONE


def shown(shelf: Shelf) -> list[str]:
    """Where the cache is, how many entries of which kind it has, and its limit."""
    found = _listed(shelf)
    compiled = [entry for entry in found if entry.name.startswith(COMPILED)]
    results = [entry for entry in found if not entry.name.startswith(COMPILED)]
    total = shown_bytes(sum(entry.size for entry in found))
    lines = [shelf.store.url, f"  {_line(results)}: translations, checks and validations"]
    if is_shared():
        lines.append(f"  {_line(compiled)}: compiled kernels")
    lines.append(f"  {total} of at most {shown_bytes(shelf.limit)}")
    return lines + [f"compiled kernels of this machine: {use_cache_folder()}"]


def _line(entries: list[Entry]) -> str:
    return f"{len(entries):6d} entries, {shown_bytes(sum(entry.size for entry in entries))}"


def _listed(shelf: Shelf) -> list[Entry]:
    try:
        return list(shelf.store.entries())
    except OSError as error:
        raise TranslationError(
            Diagnostic("cache-unreadable", f"cannot list the cache {shelf.store.url}", why=str(error))
        ) from None


def _bytes(limit: str | None, shelf: Shelf) -> int:
    try:
        return shelf.limit if limit is None else parse_bytes(limit)
    except ValueError:
        raise TranslationError(Diagnostic("cache-limit", f"{limit} is no size", help="for example 500MB")) from None
