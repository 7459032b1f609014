"""Version numbers, without importing what they are of."""

from __future__ import annotations

import importlib.metadata


def triton_version() -> str:
    """The installed Triton's version, `not installed` when there is none."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
