"""What generated files call what has their launches checked."""

from __future__ import annotations

CHECKS = "_assume"  # the function


def checked_name(kernel: str) -> str:
    """The decorator of a kernel."""
    return f"_checked_{kernel.lstrip('_')}"
