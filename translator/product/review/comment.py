"""A comment on a pull request: how its generated files stand, and what their machine code costs beside Triton's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

MARK = "<!-- gluonize -->"  # by which a later run finds its comment again


@dataclass(frozen=True)
class Reviewed:
    """One generated file. state: as `gluonize check` calls it. level: how far it was validated. launches: id, status and reason of
    each that was run. parity: a heading and a row per launch, or empty."""

    file: str
    source: str
    target: str
    state: str
    level: str
    launches: Sequence[tuple[str, str, str]] = ()
    parity: Sequence[Sequence[str]] = field(default=())


def comment_text(files: Sequence[Reviewed]) -> str:
    """Markdown: a table of the files, what is wrong with each launch, parity."""
    out = [MARK, "## gluonize", ""]
    if not files:
        return "\n".join([*out, "No generated file has to do with this change."]) + "\n"
    out += table([["file", "made from", "target", "state", "validated"]] + [_row(file) for file in files])
    wrong = [
        f"- `{file.file}`, {id}: **{status}**{f', {reason}' if reason else ''}"
        for file in files
        for id, status, reason in file.launches
        if status != "validated"
    ]
    out += ["", "Not right:", "", *wrong] if wrong else []
    rows = [[f"`{file.file}`", *row] for file in files for row in file.parity[1:]]
    if rows:
        heading = next(["file", *file.parity[0]] for file in files if file.parity)
        out += ["", "Against Triton's own compile of the source (translation / Triton):", "", *table([heading, *rows])]
    return "\n".join(out) + "\n"


def _row(file: Reviewed) -> list[str]:
    state = file.state if file.state == "current" else f"**{file.state}**"
    wrong = any(status != "validated" for _, status, _ in file.launches)
    return [f"`{file.file}`", f"`{file.source}`", file.target, state, "**no**" if wrong else file.level]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; the first row is its heading."""
    head, *body = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body)]
