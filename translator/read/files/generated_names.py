"""What generated files call what has their launches checked."""

from __future__ import annotations


def check_name(kernel: str) -> str:
    """The function that refuses launches of a kernel."""
    return f"_check_{kernel}"


def checked_name(kernel: str) -> str:
    """The decorator of a kernel."""
    return f"_checked_{kernel.lstrip('_')}"
