"""Texts that did not pass their checks: kept as `NAME_TARGET.rejected.py`, never under the name of a result.

A text that computes something else than its source says so in its first lines, with the finding; what was said about lines of
the text is moved by as many lines.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import Any

WIDTH = 118  # columns of the header behind `# `


def rejected_path(output: str) -> str:
    """`softmax_gfx950.py` -> `softmax_gfx950.rejected.py`."""
    return os.path.splitext(output)[0] + ".rejected.py"


def with_findings(text: str, findings: Sequence[str]) -> tuple[str, int]:
    """The text under a header that says why it is rejected; -> (text, lines of that header).

    Before: the text of a translation. After: `# Rejected by gluonize: ...`, each finding as a comment, the text.
    """
    said = ["Rejected by gluonize: this translation is wrong. It is kept for whoever looks into it; do not use it."]
    said += [" ".join(finding.split()) for finding in findings]
    lines = [f"# {line}" for finding in said for line in textwrap.wrap(finding, WIDTH, subsequent_indent="  ")]
    return "\n".join([*lines, text]), len(lines)


def moved(value: Any, old: str, new: str, by: int) -> Any:
    """Findings about file `old` as findings about `new`, `by` lines further down: places in texts, and `file` with `line`."""
    if isinstance(value, str):
        return _moved_text(value, old, new, by)
    if isinstance(value, (list, tuple)):
        return [moved(item, old, new, by) for item in value]
    if not isinstance(value, dict):
        return value
    out = {key: moved(item, old, new, by) for key, item in value.items()}
    if value.get("file") == old and value.get("line"):
        out["line"] = value["line"] + by
    return out


def _moved_text(text: str, old: str, new: str, by: int) -> str:
    """`old:12:4` -> `new:15:4`; the path alone is replaced too."""
    head, *rest = text.split(old)
    for part in rest:
        digits = len(part) - len(part[1:].lstrip("0123456789")) if part.startswith(":") else 1
        if digits > 1:
            part = f":{int(part[1:digits]) + by}{part[digits:]}"
        head += new + part
    return head
