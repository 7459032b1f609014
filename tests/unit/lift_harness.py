"""Gluon kernels written in a test, lifted: `lifted` gives the body of the Triton kernel."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from gluonize.lift.kernel import lift_kernel
from gluonize.read.kernels.load import load_kernel
from gluonize.read.spec.launch import parse_launches

GLUON = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
"""


def tensor(dtype: str, *shape: int) -> dict:
    """What a launch gives for a contiguous tensor."""
    strides = [1]
    for extent in shape[:0:-1]:
        strides.insert(0, strides[0] * extent)
    return {
        "tensor": {"dtype": dtype, "shape": [*shape], "stride": strides, "storage": strides[0] * shape[0], "offset": 0}
    }


def lifted(
    folder: Path, source: str, target: str, arguments: dict[str, tuple[str, object]], constexprs: dict[str, int],
    grid: list[int], options: dict[str, int] | None = None, whole: bool = False,
) -> str:  # fmt: skip
    """The lines of the lifted kernel behind its assertions; whole: its file. arguments: type and value by name.

    Raises: TranslationError.
    """
    path = folder / "source.py"
    path.write_text(GLUON + dedent(source))
    signature = {name: kind for name, (kind, _) in arguments.items()} | dict.fromkeys(constexprs, "constexpr")
    launch = {
        "kernel": "kernel", "source": str(path), "target": target, "signature": signature, "constexprs": constexprs,
        "values": {name: value for name, (_, value) in arguments.items()}, "grid": grid,
        "options": options or {"num_warps": 4},
    }  # fmt: skip
    (spec,) = parse_launches(launch)
    text = lift_kernel(load_kernel(str(path), "kernel"), spec).text
    if whole:
        return text
    body = text.partition("def kernel")[2].splitlines()[1:]
    return "\n".join(line[4:] for line in body if "static_assert" not in line)
