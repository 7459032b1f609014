"""What launches a kernel whose programs have several tiles, or share the steps of tiles: as many programs as there is room for.

Programs that share steps are given memory for their sums, and marks. Marks are zero before each launch; sums need not be anything. Both
are freed when the launch has been queued: what is allocated next on the stream is used behind it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.gluon.trees.function import INDENT
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.launches.sites.persistent import ELEMENTS, PER_UNIT, STREAM_K, Shared, run_persistent_name
from gluonize.write.state.unit import Tiles

_DTYPES = {"fp32": "float32", "int32": "int32"}
# Products of two numbers of programs have 32 bits.
_MOST = 2**15


def persistent_run(kernel: str, jit: str, tiles: Tiles) -> str:
    """A function that stands around the `run` of a jit function, and the statement that puts it there: at most as many programs as there
    is room for share the tiles of a grid."""
    parameters = f"{PER_UNIT}={tiles.per_unit}"
    said = [
        f"`run` of {kernel} with at most so many programs for each compute unit, which share the tiles of the grid."
    ]
    lines = [
        *_asked(jit, tiles.count),
        f'room = properties["multiprocessor_count"] * {PER_UNIT}',
        "for extent in others:",
        "    room //= max(extent, 1)",
        f"return run(*args, grid=(min({tiles.count}, max(room, 1)), *others), {tiles.count}={tiles.count}, **kwargs)",
    ]
    return _around(run_persistent_name(kernel), jit, parameters, said, "persistent", lines)


def stream_k_run(kernel: str, jit: str, shared: Shared) -> str:
    """The same for programs that share the steps of all tiles."""
    parameters = f'{PER_UNIT}={shared.per_unit}, {ELEMENTS}={shared.elements}, dtype="{_DTYPES[shared.dtype]}"'
    said = [
        f"`run` of {kernel} with so many programs for each compute unit, which share the steps of all tiles;",
        f"each leaves at most `{ELEMENTS}` sums to another one.",
    ]
    lines = [
        "import torch",
        "",
        *_asked(jit, shared.count),
        f'programs = min(properties["multiprocessor_count"] * {PER_UNIT}, {_MOST})',
        "for extent in others:",
        "    programs //= max(extent, 1)",
        f"programs = max(programs, 1) if {shared.count} else 0",
        "slots = programs",
        "for extent in others:",
        "    slots *= extent",
        "device = driver.get_active_torch_device()",
        f"{shared.sums} = torch.empty(slots * {ELEMENTS}, dtype=getattr(torch, dtype), device=device)",
        f"{shared.marks} = torch.zeros(slots, dtype=torch.int32, device=device)",
        f"added = {{{_added(shared)}}}",
        "return run(*args, grid=(programs, *others), **added, **kwargs)",
    ]
    return _around(run_persistent_name(kernel, STREAM_K), jit, parameters, said, "stream_k", lines)


def _around(name: str, jit: str, parameters: str, said: Sequence[str], inner: str, lines: Sequence[str]) -> str:
    """The function called `name`. said: its documentation; lines: of what it puts in the place of `run`, which is called `inner`."""
    documented = textwrap.indent('"""' + "\n".join(said) + '"""', INDENT)
    body = textwrap.indent("\n".join(lines), 2 * INDENT)
    head = f"def {name}(run, {parameters}):\n{documented}\n\n    def {inner}(*args, grid, **kwargs):\n{body}"
    return f"{head}\n\n    return {inner}\n\n\n{jit}.run = {name}({jit}.run)"


def _asked(jit: str, count: str) -> list[str]:
    """What is launched, and where."""
    return [
        f"given = {{p.name: p.default for p in {jit}.params if p.has_default}}",
        f"given |= dict(zip({jit}.arg_names, args)) | kwargs",
        f"{count}, *others = grid(given) if callable(grid) else grid",
        "driver = triton.runtime.driver.active",
        "properties = driver.utils.get_device_properties(driver.get_current_device())",
    ]


def _added(shared: Shared) -> str:
    return ", ".join(f'"{name}": {name}' for name in (shared.count, shared.sums, shared.marks))


def together(every: Sequence[Shared | None], loaded: LoadedKernel) -> Shared | None:
    """What stands around the `run` of a kernel for all its configurations, None where programs have whole tiles.

    Raises: TranslationError `stream-k` where their sums are of several types.
    """
    known = [shared for shared in every if shared is not None]
    if len({(s.count, s.sums, s.marks, s.dtype) for s in known}) > 1:
        message = f"configurations of `{loaded.qualname}` have sums of several types"
        why, help = "memory for them is allocated in one place", "leave the choice of programs out"
        raise TranslationError(Diagnostic("stream-k", message, loaded.path, loaded.line, 1, why, help))
    return max(known, key=lambda s: s.elements, default=None)


__all__ = ["persistent_run", "stream_k_run", "together"]
