"""How long `gluonize lsp` takes to answer an editor: every kind of request on three fixtures, whole and half-typed files.

    python bench/editor_speed.py --markdown bench/results/editor_speed.md

A real client over pipes. First the time until everything that is asked in the background is there, then the requests, and the time from a save
until its findings are there (asked every tenth of a second), of what compiles nothing: a hand edit, a source that has changed, one that cannot be parsed, and all as it was.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/editor")]

from editor_client import BEING_COMPUTED, Editor, until  # noqa: E402

FIXTURES = ("matmul", "softmax", "flash_attention")
FILES = ("kernel_gfx950.py", "kernel.py")
PLACES = 200  # lines that are asked about, and prefixes that are sent, of each file
LIMIT_MS = 150.0
LIMIT_SAVED_MS, SAVES = 1000.0, 5
SAVED = "findings after saving "
Row = tuple[str, str, str, float, float]  # fixture, file, request, median and greatest milliseconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", metavar="FILE", help="write the table there")
    options = parser.parse_args()
    rows: list[Row] = []
    for fixture in FIXTURES:
        with tempfile.TemporaryDirectory(prefix="editor-speed-") as folder:
            rows += measure(fixture, Path(folder))
    text = table(rows)
    print(text)
    if options.markdown:
        load = f"{os.getloadavg()[0]:.1f}"
        Path(options.markdown).write_text(f"`python bench/editor_speed.py`, load of the machine {load}.\n\n{text}\n")
    saved = [row[3] for row in rows if row[2].startswith(SAVED)]  # the first save of a changed source translates it
    asked = [row[4] for row in rows if row[2] != "first answer" and not row[2].startswith(SAVED)]
    return int(max(asked) > LIMIT_MS or max(saved) > LIMIT_SAVED_MS)


def measure(fixture: str, folder: Path) -> list[Row]:
    """Every request on the fixture's translation and on its source."""
    for name in ("kernel.py", "launches.json"):
        shutil.copy(ROOT / "fixtures" / fixture / name, folder)
    command = [
        sys.executable,
        "-m",
        "gluonize.product.cli",
        "-q",
        "translate",
        "kernel.py",
        "-t",
        "gfx950",
        "-l",
        "launches.json",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GLUONIZE_CACHE_DIR": str(folder / "cache")}
    subprocess.run([*command, "--no-validate"], cwd=folder, env=environment, check=True)
    os.environ["GLUONIZE_CACHE_DIR"] = str(folder / "first")  # nothing is there yet
    editor, rows = Editor(folder, "--no-validate"), []
    for name in FILES:
        started = time.monotonic()
        text = editor.open(name)
        until(lambda: editor.hover(name, 30, 4), lambda said: BEING_COMPUTED not in said)
        first = 1000 * (time.monotonic() - started)
        rows.append((fixture, name, "first answer", first, first))
        until(lambda: editor.lenses(name), lambda found: found and all(BEING_COMPUTED not in x for _, x in found))
        lines = len(text.splitlines())
        rows += requests(editor, fixture, name, "", [1 + i * lines // PLACES for i in range(PLACES)])
        ends = [len(text) * i // PLACES for i in range(PLACES)]
        typed = (text[:end] for end in ends)
        rows += requests(
            editor, fixture, name, ", half typed", [text.count("\n", 0, end) + 1 for end in ends],
            lambda: editor.change(name, next(typed)),
        )  # fmt: skip
        editor.change(name, text)
        rows += saves(editor, fixture, name, text)
    editor.close()
    return rows


def saves(editor: Editor, fixture: str, name: str, text: str) -> list[Row]:
    """Milliseconds until what a save brings up is shown, and until it is gone."""
    line = next(row for row in text.splitlines() if "program_id" in row)
    changed = {"generated-edited": f"{line}  # edited"}
    if name == "kernel.py":
        changed = {"generated-outdated": f"{line}  # changed", "source-syntax": f"{line} +"}
    taken: dict[str, list[float]] = {}
    for _ in range(SAVES):
        for code, instead in changed.items():
            for what, saved, shown in ((code, text.replace(line, instead, 1), True), (f"{code}, mended", text, False)):
                started = time.monotonic()
                editor.save(name, saved)
                until(
                    lambda: [d.code for d in editor.findings.get(editor.uri(name), [])],
                    lambda found: (code in found) == shown,
                )
                taken.setdefault(what, []).append(1000 * (time.monotonic() - started))
    return [(fixture, name, SAVED + what, statistics.median(ms), max(ms)) for what, ms in taken.items()]


def requests(
    editor: Editor, fixture: str, name: str, how: str, lines: list[int], before: Callable[[], None] = lambda: None
) -> list[Row]:
    """Each request at each line; `before` is done ahead of each line."""
    asked = {
        "hover": lambda line: editor.hover(name, line, 8),
        "definition": lambda line: editor.definition(name, line),
        "implementation": lambda line: editor.implementation(name, line),
        "hints": lambda line: editor.hints(name),
        "lenses": lambda line: editor.lenses(name),
    }
    seconds: dict[str, list[float]] = {kind: [] for kind in asked}
    for line in lines:
        before()
        for kind, ask in asked.items():
            ask(line)
            seconds[kind].append(1000 * editor.seconds[-1])
    return [(fixture, name, kind + how, statistics.median(x), max(x)) for kind, x in seconds.items()]


def table(rows: list[Row]) -> str:
    head = ["| fixture | file | request | median ms | greatest ms |", "| --- | --- | --- | ---: | ---: |"]
    return "\n".join([*head, *(f"| {f} | {n} | {k} | {m:.1f} | {g:.1f} |" for f, n, k, m, g in rows)])


if __name__ == "__main__":
    sys.exit(main())
