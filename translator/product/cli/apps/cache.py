"""The options that say which cache is used, and the command that looks after it."""

from __future__ import annotations

import os
from typing import Annotated, Optional

import typer

from gluonize.product.cli.options import complete_word

CacheUrl = Annotated[
    Optional[str],
    typer.Option(
        "--cache",
        metavar="URL",
        help="A cache shared with other machines: file:///FOLDER, s3://BUCKET/PREFIX; else GLUONIZE_CACHE, else the user's own.",
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Use no results of earlier runs.")]


def use_cache(url: str | None, disabled: bool = False) -> bool:
    """Make the cache that was asked for that of this process and its children; whether there is one.

    Raises: TranslationError `cache-address`, `cache-limit`.
    """
    from gluonize.store.chosen_store import URL, share

    if disabled:
        os.environ[URL] = ""
        return False
    share(url)
    return True


def cache(
    context: typer.Context,
    action: Annotated[
        str,
        typer.Argument(
            metavar="show|prune|clear",
            help="Print what it holds, evict what is beyond the limit, or remove everything.",
            autocompletion=complete_word("show", "prune", "clear"),
        ),
    ] = "show",
    url: CacheUrl = None,
    limit: Annotated[
        Optional[str],
        typer.Option("--limit", metavar="SIZE", help="For prune: what may stay, such as 500MB; else the limit."),
    ] = None,
) -> int:
    """Show, prune or clear the cache of translations, compiles and validations."""
    from gluonize.product.cli.cache_command import run_cache

    if action not in ("show", "prune", "clear"):
        raise typer.BadParameter(f"{action!r} is none of show, prune, clear", param_hint="show|prune|clear")
    use_cache(url)
    return run_cache(action, limit, context.obj)
