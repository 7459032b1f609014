"""The lines of a generated file that say how far it was validated, below the lines that say what it was made from.

    # Validated: every statement, branch and loop of the source ran on the reference machine.
    # Validated except lines 31-38 (mode == 2 is not in any launch).
    # Not validated: tt.some_op: the reference machine has no such op.

They are no part of the generated text: its digest and a comparison with a new translation leave them out.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence

from gluonize.judge.machine.coverage import Coverage, united
from gluonize.product.project.output.provenance import MARK

LEVELS = ("none", "partly", "fully")  # of validation, each more than the one before
FULLY, PARTLY, NOT = "# Validated: ", "# Validated except ", "# Not validated: "
EVERYTHING = "every statement, branch and loop of the source ran on the reference machine."
WIDTH = 120
CONTINUED = "#     "


def united_coverage(validations: Sequence[dict]) -> Coverage | None:
    """What all launches of a file ran together; None where one of them was not validated, or none was."""
    found = [validation.get("coverage") for validation in validations]
    if not found or not all(found) or any(v["status"] != "validated" for v in validations):
        return None
    return united(map(Coverage.of_json, found))


def verdict(validations: Sequence[dict]) -> str:
    """The words for the launches of a file; "" where nobody asked."""
    if (coverage := united_coverage(validations)) is not None:
        return coverage.verdict()
    open_ones = [v for v in validations if v["status"] not in ("validated", "skipped")]
    if open_ones:
        return f"not validated: {open_ones[0].get('reason') or open_ones[0]['status']}"
    return ""


def verdict_lines(validations: Sequence[dict]) -> list[str]:
    """The header lines for the launches of a file, none where nobody asked."""
    words = " ".join(verdict(validations).split())
    if not words:
        return []
    text = FULLY + EVERYTHING if words == "validated" else f"# {words[0].upper()}{words[1:]}".rstrip(".") + "."
    return textwrap.wrap(text, WIDTH, subsequent_indent=CONTINUED, break_long_words=False, break_on_hyphens=False)


def with_verdict(text: str, validations: Sequence[dict]) -> str:
    """`text` with its verdict below the line of its origin; a text without that line stays as it is."""
    lines = text.splitlines(keepends=True)
    at = _last_origin(lines)
    if at is None:
        return text
    end = "\r\n" if lines[at].endswith("\r\n") else "\n"
    added = [line + end for line in verdict_lines(validations)]
    return "".join([*lines[: at + 1], *added, *lines[at + 1 :]])


def without_verdict(text: str) -> str:
    """`text` without the lines of its verdict."""
    lines = text.splitlines(keepends=True)
    at = _last_origin(lines)
    if at is None or at + 1 == len(lines) or not lines[at + 1].startswith((FULLY, PARTLY, NOT)):
        return text
    rest = itertools.dropwhile(lambda line: line.startswith(CONTINUED), lines[at + 2 :])
    return "".join([*lines[: at + 1], *rest])


def _last_origin(lines: Sequence[str]) -> int | None:
    """The last of the lines that say what the file was made from."""
    return max((i for i, line in enumerate(lines) if line.startswith(MARK)), default=None)


def level_of(text: str) -> str:
    """How far the file with this text was validated, one of LEVELS."""
    lines = text.splitlines()
    at = _last_origin(lines)
    below = lines[at + 1] if at is not None and at + 1 < len(lines) else ""
    return "fully" if below.startswith(FULLY) else "partly" if below.startswith(PARTLY) else "none"
