"""What `gluonize check` shows and writes: files that are not current with the difference, a summary, the JSON."""

from __future__ import annotations

import difflib
import json as json_module
import sys
from collections.abc import Sequence

from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.translate.result_lines import validation_line
from gluonize.product.project.checks.check import FileState, fails
from gluonize.product.project.checks.validation import ValidatedLaunch
from gluonize.product.project.output.file import STANDARD_OUTPUT, write_whole
from gluonize.product.project.output.verdict import united_coverage

JSON_VERSION = 1


def unified_diff(state: FileState) -> list[str]:
    """From the file to what its source and launches give."""
    label = f"what {state.file.source} gives for {state.file.target}"
    lines = difflib.unified_diff(
        state.found.splitlines(), state.expected.splitlines(), state.file.output, label, lineterm=""
    )
    return list(lines)


class CheckPrinter:
    """Text for people, on standard error when results for machines go to standard output."""

    def __init__(self, verbosity: Verbosity, to_stderr: bool, allow_edits: bool):
        self.verbosity, self.allow_edits = verbosity, allow_edits
        self.console = rich_console(verbosity, sys.stderr if to_stderr else sys.stdout)

    def file(self, state: FileState) -> None:
        """Name a file that is not current, say why, show the difference; all files with -v."""
        failed = fails(state, self.allow_edits)
        if not failed and not self.verbosity.verbose:
            return
        self.say(f"{state.file.output}: {state.state}", style="red" if failed else "green")
        for reason in state.reasons:
            self.say(f"  {reason}")
        if state.state == "outdated" and state.edited:
            self.say("  it was also edited by hand; gluonize update keeps the edits")
        if failed and not self.verbosity.quiet:
            for line in unified_diff(state):
                bold = line.startswith(("---", "+++"))
                self.say(line, style="bold" if bold else {"-": "red", "+": "green", "@": "cyan"}.get(line[:1]))
        sys.stdout.flush()
        print_diagnostics(state.diagnostics)

    def launches(self, state: FileState, launches: Sequence[ValidatedLaunch]) -> None:
        """How the validation of a file's launches went."""
        if self.verbosity.quiet:
            return
        together = united_coverage([launch.found for launch in launches])
        for launch in launches:
            style = {"validated": "green", "mismatch": "red"}.get(launch.found["status"], "yellow")
            said = validation_line(launch.found, together)
            self.say(f"{state.file.output}: {launch.spec.id}: {said}", style=style)
        sys.stdout.flush()

    def summary(self, states: Sequence[FileState]) -> None:
        """How many files are in which state, and what to do."""
        if self.verbosity.quiet:
            return
        counts = {name: sum(state.state == name for state in states) for name in dict.fromkeys(s.state for s in states)}
        self.say(
            f"{len(states)} generated file{'s' * (len(states) != 1)}: {', '.join(f'{n} {s}' for s, n in counts.items())}"
        )
        if any(fails(state, self.allow_edits) and state.state in ("outdated", "missing") for state in states):
            self.say("bring them up to date with: gluonize update")
        if any(fails(state, self.allow_edits) and state.state == "edited" for state in states):
            self.say('hand edits are fine with --allow-edits, or edits = "allow" in the configuration')

    def say(self, text: str, style: str | None = None) -> None:
        self.console.print(text, markup=False, style=style)


def write_states(destination: str, entries: Sequence[dict]) -> None:
    """Write the JSON of `check`, whole or not at all, or to standard output for `-`."""
    text = json_module.dumps({"version": JSON_VERSION, "files": list(entries)}, indent=1) + "\n"
    if destination == STANDARD_OUTPUT:
        sys.stdout.write(text)
    else:
        write_whole(destination, text)


def state_entry(state: FileState, level: str, launches: Sequence[ValidatedLaunch] | None) -> dict:
    """One file of the JSON. launches: with `--validate` what the reference machine said of each."""
    entry = {
        "file": state.file.output,
        "source": state.file.source,
        "target": state.file.target,
        "state": state.state,
        "edited": state.edited or state.state == "edited",
        "reasons": list(state.reasons),
        "validated": level,
        "diff": "".join(f"{line}\n" for line in unified_diff(state)),
        "diagnostics": [found.as_json() for found in state.diagnostics],
    }
    if launches is not None:
        entry["launches"] = [{"id": x.spec.id, "kernel": x.spec.kernel, "validation": x.found} for x in launches]
    return entry
