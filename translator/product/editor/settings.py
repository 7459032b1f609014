"""What a server is asked for, on its command line or by the editor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """target: whose layouts stand in a source, "" for the first there is. search: see `ProjectFile`. jobs: children that check and
    compile; timeout: of one job, in seconds of CPU time. validate: run files when they are saved. cache: keep results.
    """

    target: str = ""
    search: tuple[str, ...] = ()
    jobs: int = 1
    timeout: float = 60.0
    validate: bool = True
    cache: bool = True
