"""Version numbers, without importing what they are of."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
from pathlib import Path

NOT_INSTALLED = "not installed"


@functools.cache
def triton_version() -> str:
    """The version of the Triton that `import triton` finds, `not installed` when there is none.

    A copy of a package has the version that it says itself, whatever else is installed.
    """
    try:
        found = importlib.util.find_spec("triton")
    except (ImportError, ValueError):
        found = None
    if found is None:
        return NOT_INSTALLED
    if found.origin:
        said = re.search(r"""^__version__ = ["']([^"']+)["']""", Path(found.origin).read_text(), re.MULTILINE)
        if said:
            return said[1]
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED


TRIED = ("3.8", "3.9")  # the releases of Triton with which the suite passes
ANNOUNCED = {
    "3.10": "products and sums are no longer fused by default; translations are launched with what they were validated with"
}


def release_of(version: str) -> str:
    """`3.9` of `3.9.0+git12`."""
    return ".".join(version.partition("+")[0].split(".")[:2])


def same_release(one: str, other: str) -> bool:
    return release_of(one) == release_of(other)
