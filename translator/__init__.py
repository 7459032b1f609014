"""gluonize: Triton kernels to explicit Gluon for AMD GPUs.

`translate` is the whole tool as a function; everything heavy is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gluonize.read.spec.launch import LaunchSpec
    from gluonize.request import TranslateResult

__version__ = "0.1.0"
__all__ = ["__version__", "translate"]


def translate(
    source: str,
    target: str,
    *,
    launches: str | dict | list | Iterable["LaunchSpec"] | None = None,
    kernels: Iterable[str] = (),
    search_path: Iterable[str] = (),
    settings: dict[str, str] | None = None,
    import_hosts: bool = False,
    fallback: str | None = None,
    num_buffers: int | None = None,
    optimize: str = "parity",
    keep_going: bool = False,
    standalone: bool = False,
    timeout: float = 60.0,
) -> "TranslateResult":
    """Translate the kernels of one source for one target; nothing is written.

    source: a path or an importable module name, which is read and never executed. target: `gfx950` and so on. launches:
    a launch file's path, its parsed JSON, or `LaunchSpec`s; None derives them from the source. kernels: names to
    translate, all that the launches name when empty. settings: values for derived launches, as `--set NAME=VALUE`.
    standalone: only the kernels and what they need, without the source's host code. The rest is as in `TranslateRequest`.
    timeout: seconds for the child process that does the work, because Triton's compiler can abort.

    The result holds the text of the output file, one outcome per launch, and diagnostics; a refusal is a result, with
    `text` None. Raises: TranslationError for launches or a target that cannot be read; InternalError for a bug.
    """
    from gluonize.judge.lower.children.worker import WorkerPool
    from gluonize.read.text.style import style_of
    from gluonize.request import TranslateRequest
    from gluonize.rules.targets import target as target_row
    from gluonize.search.choose import make_choices
    from gluonize.search.confirm import with_confirmed
    from gluonize.search.search import search_choices

    specs = _specs(launches)
    wanted = tuple(kernels)
    request = TranslateRequest(
        source=source,
        target=target_row(target).name,
        kernels=wanted,
        launches=tuple(s for s in specs if not wanted or s.kernel in wanted),
        search_path=tuple(search_path),
        assignments=tuple((settings or {}).items()),
        import_hosts=import_hosts,
        fallback=fallback,
        num_buffers=num_buffers,
        optimize=optimize,
        keep_going=keep_going,
        standalone=standalone,
        style=style_of(source),
    )
    pool = WorkerPool(1, timeout=timeout)
    try:
        if optimize == "aggressive":
            request = make_choices(request, pool)
        elif optimize == "search":
            request = search_choices(request, pool)
        return with_confirmed(request, pool, lambda asked: pool.call("gluonize.translation:translate_kernel", asked))
    finally:
        pool.close()


def _specs(launches: str | dict | list | Iterable[LaunchSpec] | None) -> tuple[LaunchSpec, ...]:
    """The launches that are given, none where they shall be derived. Raises: TranslationError."""
    from pathlib import Path

    from gluonize.read.spec.launch import parse_launches, read_launches

    if launches is None:
        return ()
    if isinstance(launches, (str, Path)):
        return tuple(read_launches(str(launches)))
    if isinstance(launches, dict) or (isinstance(launches, list) and all(isinstance(x, dict) for x in launches)):
        return tuple(parse_launches(launches))
    return tuple(launches)
