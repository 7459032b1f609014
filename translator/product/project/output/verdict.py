"""The lines of a generated file that say how far it was validated and proved, and what it costs, below the lines that say what it was made from.

    # Validated: every statement, branch and loop of the source ran on the reference machine.
    # Validated: every statement, branch and loop of the source ran on the reference machine, or is proved.
    # Validated except lines 31-38 (mode == 2 is not in any launch).
    # Not validated: tt.some_op: the reference machine has no such op.
    # Proved: every launch that this header admits stores what the source stores; two sets of inputs of each ran, too.
    # Proved up to the order of sums, if the tensor described by a_ptr lies within its storage: every launch ...
    # Proved of add_kernel alone: every launch ...
    # Predicted: 0.87 to 1.02 of the clocks of Triton's compile in the hottest loop.

They are no part of the generated text: its digest and a comparison with a new translation leave them out.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Sequence

from gluonize.judge.cycles.clocks import Clocks
from gluonize.judge.machine.coverage import Coverage, united
from gluonize.product.project.output.provenance import MARK

LEVELS = ("none", "partly", "fully", "proved")  # each more than the one before
FULLY, PARTLY, NOT = "# Validated: ", "# Validated except ", "# Not validated: "
PROVED, ALONE = "# Proved", "# Proved of "
PREDICTED = "# Predicted: "
WORDS = ("proved", "proved up to the order of sums")  # of proofs that hold, the stronger one first
SAME = "every launch that this header admits stores what the source stores"
RAN = "; {} sets of inputs of each ran, too"  # of launches of which no more was to run
EVERYTHING = "every statement, branch and loop of the source ran on the reference machine"
_PLACE = re.compile(
    r"(?:[^\s:]*/)?([^\s:/]+\.py):\d+(?::\d+)?\b"
)  # lines that these words move, in a folder of this machine
_CLOCKS = re.compile(rf"{PREDICTED}(?:[\d.]+ to )?(?P<most>[\d.]+) of the clocks ")
WIDTH = 120
CONTINUED = "#     "


def united_coverage(validations: Sequence[dict]) -> Coverage | None:
    """What all launches of a file ran together; None where one of them was not validated, or none was."""
    found = [validation.get("coverage") for validation in validations]
    if not found or not all(found) or any(v["status"] != "validated" for v in validations):
        return None
    return united(map(Coverage.of_json, found))


def is_settled(validation: dict) -> bool:
    """Whether a launch is proved and ran only as a check of that: nothing is said of what else would have run."""
    return bool((validation.get("coverage") or {}).get("proved"))


def verdict(validations: Sequence[dict]) -> str:
    """The words for the launches of a file; "" where nobody asked."""
    if (coverage := united_coverage(validations)) is not None:
        return coverage.verdict()
    open_ones = [v for v in validations if v["status"] not in ("validated", "skipped")]
    if open_ones:
        return f"not validated: {open_ones[0].get('reason') or open_ones[0]['status']}"
    return ""


def proof_word(validations: Sequence[dict]) -> str:
    """One of WORDS where the proofs of all launches hold, "" else, and where the machine finds one wrong."""
    if any(validation.get("status") == "mismatch" for validation in validations):
        return ""
    words = {validation.get("proof", {}).get("status") for validation in validations}
    return max(words, key=WORDS.index) if words and words <= set(WORDS) else ""


def proof_line(validations: Sequence[dict]) -> str:
    """What the proofs of all launches of a file say, and what they rest on; "" where they say nothing of any kernel."""
    by_kernel: dict[str, list[dict]] = {}
    for validation in validations:
        by_kernel.setdefault(validation.get("proof", {}).get("kernel", ""), []).append(validation)
    proved = {kernel: own for kernel, own in by_kernel.items() if proof_word(own)}
    if not proved:
        return ""
    own = [validation for found in proved.values() for validation in found]
    word, assumed = proof_word(own), dict.fromkeys(line for x in own for line in x["proof"]["assumed"])
    said = word.replace(
        "proved", f"proved of {' and '.join(proved)} alone" if len(proved) < len(by_kernel) else "proved"
    )
    ran = {1 + len(validation.get("variants", ())) for validation in own}
    more = RAN.format("two" if ran == {2} else "one or two") if all(map(is_settled, own)) else ""
    return f"{said}{', if ' if assumed else ''}{' and '.join(assumed)}: {SAME}{more}"


def verdict_lines(validations: Sequence[dict]) -> list[str]:
    """The header lines for the launches of a file, none where nobody asked."""
    words = _PLACE.sub(r"\1", " ".join(verdict(validations).split()))
    lines = []
    if words == "validated":
        words = f"validated: {EVERYTHING}{', or is proved' if any(map(is_settled, validations)) else ''}"
    for said in ("" if words == "proved" else words, proof_line(validations)):
        if said:
            text = f"# {said[0].upper()}{said[1:]}".rstrip(".") + "."
            lines += textwrap.wrap(
                text, WIDTH, subsequent_indent=CONTINUED, break_long_words=False, break_on_hyphens=False
            )
    return lines


def clocks_line(clocks: Sequence[Clocks]) -> list[str]:
    """The header line for the predicted clocks of a file's launches beside Triton's; none where no launch has a loop of products."""
    if not clocks:
        return []
    least, most = (f"{each(x.ratio for x in clocks):.2f}" for each in (min, max))
    span = most if least == most else f"{least} to {most}"
    return [f"{PREDICTED}{span} of the clocks of Triton's compile in the hottest loop."]


def with_verdict(text: str, validations: Sequence[dict], clocks: Sequence[Clocks] = ()) -> str:
    """`text` with its verdict below the line of its origin; a text without that line stays as it is."""
    lines = text.splitlines(keepends=True)
    at = _last_origin(lines)
    if at is None:
        return text
    end = "\r\n" if lines[at].endswith("\r\n") else "\n"
    added = [line + end for line in (*verdict_lines(validations), *clocks_line(clocks))]
    return "".join([*lines[: at + 1], *added, *lines[at + 1 :]])


def without_verdict(text: str) -> str:
    """`text` without the lines of its verdict."""
    lines = text.splitlines(keepends=True)
    at = _last_origin(lines)
    if at is None:
        return text
    rest = lines[at + 1 :]
    for begins in ((FULLY, PARTLY, NOT), PROVED, PREDICTED):
        if rest and rest[0].startswith(begins):
            rest = list(itertools.dropwhile(lambda line: line.startswith(CONTINUED), rest[1:]))
    return "".join([*lines[: at + 1], *rest])


def _last_origin(lines: Sequence[str]) -> int | None:
    """The last of the lines that say what the file was made from."""
    return max((i for i, line in enumerate(lines) if line.startswith(MARK)), default=None)


def level_of(text: str) -> str:
    """How far the file with this text was validated or proved, one of LEVELS."""
    lines = text.splitlines()
    at = _last_origin(lines)
    below = [] if at is None else [line for line in lines[at + 1 : at + 40] if not line.startswith(CONTINUED)]
    if any(line.startswith(PROVED) and not line.startswith(ALONE) for line in below[:2]):
        return "proved"
    begin = below[0] if below else ""
    return "fully" if begin.startswith(FULLY) else "partly" if begin.startswith(PARTLY) else "none"


def clocks_said(text: str) -> float | None:
    """The greatest predicted clocks of a launch beside Triton's, as the header of a file says; None where it says nothing."""
    lines = text.splitlines()
    at = _last_origin(lines)
    below = [] if at is None else itertools.takewhile(lambda line: line.startswith("#"), lines[at + 1 :])
    found = next((_CLOCKS.match(line) for line in below if line.startswith(PREDICTED)), None)
    return float(found["most"]) if found else None
