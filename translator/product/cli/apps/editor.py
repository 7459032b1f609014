"""The command for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from gluonize.product.cli.apps.cache import CacheUrl, NoCache, use_cache
from gluonize.product.cli.apps.project import SearchPath
from gluonize.product.cli.options import Jobs, OneTargetOrNone, Timeout, Validate


def lsp(
    target: OneTargetOrNone = None,
    path: SearchPath = None,
    jobs: Jobs = 1,
    timeout: Timeout = 60.0,
    validate: Validate = True,
    cache: CacheUrl = None,
    no_cache: NoCache = False,
    stdio: Annotated[bool, typer.Option("--stdio", help="Standard input and output, the only way there is.")] = True,
) -> int:
    """Serve an editor: hovers, hints, places, findings and parity of sources and their translations."""
    from gluonize.product.cli.lsp_command import run_lsp
    from gluonize.product.editor.settings import Settings
    from gluonize.judge.lower.children.worker import job_count

    return run_lsp(
        Settings(target or "", tuple(path or ()), job_count(jobs), timeout, validate, use_cache(cache, no_cache))
    )
