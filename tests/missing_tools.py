"""Tests that were skipped because a tool is missing, in one line with what would bring it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_MISSING = (
    (re.compile(r"could not import '([^']+)'"), r"pip install -e '.[dev]' (\1)"),
    (re.compile(r"the module (\w+) is not installed"), r"pip install -e '.[dev]' (\1)"),
    (re.compile(r"needs git\b"), "apt-get install git"),
    (re.compile(r"(apt-get install [\w.+-]+)"), r"\1"),
    (re.compile(r"(\w+) names no checkout of the emulator"), r"set \1"),
)


def remedy(reason: str) -> str:
    """What has the test run that was skipped with this reason; "" where it is for another reason."""
    for pattern, text in _MISSING:
        if found := pattern.search(reason):
            return found.expand(text)
    return ""


def line(reasons: Iterable[str]) -> str:
    """`28 tests were skipped for want of a tool: 25 apt-get install chromium, 3 ...`; "" where none was."""
    found = Counter(filter(None, map(remedy, reasons)))
    said = ", ".join(f"{n} {what}" for what, n in found.most_common())
    return f"{found.total()} tests were skipped for want of a tool: {said}" if found else ""
