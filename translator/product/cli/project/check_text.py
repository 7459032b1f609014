"""What `gluonize check` shows and writes: files that are not current with the difference, a summary, the JSON."""

from __future__ import annotations

import difflib
import json as json_module
import re
import sys
from collections.abc import Sequence

from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.translate.result_lines import GOOD, OPEN, validation_line
from gluonize.product.project.checks.check import FileState, fails
from gluonize.product.project.checks.validation import ValidatedLaunch
from gluonize.product.project.output.file import STANDARD_OUTPUT, write_whole
from gluonize.product.project.output.verdict import united_coverage

JSON_VERSION = 1
_DIGEST = re.compile(r" \(sha256 \w+\)")  # in the first line of a header
_SHOWN = 12  # lines of differences that are shown of all files together without -v


def unified_diff(state: FileState) -> list[str]:
    """From the file to what its source and launches give."""
    return _unified(state, state.found, state.expected, 3)


def _unified(state: FileState, found: str, expected: str, context: int) -> list[str]:
    label = f"what {state.file.source} gives for {state.file.target}"
    name = state.file.output
    return [*difflib.unified_diff(found.splitlines(), expected.splitlines(), name, label, lineterm="", n=context)]


def _brief(state: FileState) -> list[str]:
    """The same with a line around each change, and without the digest of the source, which always differs."""
    return _unified(state, *(_DIGEST.sub("", text, count=1) for text in (state.found, state.expected)), 1)


class CheckPrinter:
    """Text for people, on standard error when results for machines go to standard output."""

    def __init__(self, verbosity: Verbosity, to_stderr: bool, allow_edits: bool):
        self.verbosity, self.allow_edits, self.left = verbosity, allow_edits, _SHOWN
        self.console = rich_console(verbosity, sys.stderr if to_stderr else sys.stdout)

    def file(self, state: FileState) -> None:
        """Name a file that is not current, say why, show the difference; all files with -v."""
        failed = fails(state, self.allow_edits)
        if not failed and not self.verbosity.verbose:
            return
        self.say(f"{state.file.output}: {state.state}", style="red" if failed else "green")
        for reason in state.reasons if state.state != "missing" else ():  # which the line says
            self.say(f"  {reason}")
        if state.state == "outdated" and state.edited:
            self.say("  it was also edited by hand; gluonize update keeps the edits")
        if failed and not self.verbosity.quiet:
            self._difference(unified_diff(state) if self.verbosity.verbose else _brief(state))
        sys.stdout.flush()
        print_diagnostics(state.diagnostics)

    def _difference(self, lines: Sequence[str]) -> None:
        """The lines, with -v all of them."""
        shown = len(lines) if self.verbosity.verbose else min(len(lines), max(0, self.left))
        self.left -= len(lines)
        for line in lines[:shown]:
            bold = line.startswith(("---", "+++"))
            self.say(line, style="bold" if bold else {"-": "red", "+": "green", "@": "cyan"}.get(line[:1]))
        if rest := len(lines) - shown:
            self.say(f"  {rest} {'more ' * bool(shown)}line{'s' * (rest != 1)} of differences: -v")

    def launches(self, state: FileState, launches: Sequence[ValidatedLaunch]) -> None:
        """How the validation of a file's launches went: a line per kernel, and the launches that are not simply validated; all with -v."""
        if self.verbosity.quiet:
            return
        together = united_coverage([launch.found for launch in launches])
        kernels: dict[str, list[tuple[ValidatedLaunch, str]]] = {}
        for launch in launches:
            kernels.setdefault(launch.spec.kernel, []).append((launch, validation_line(launch.found, together)))
        for kernel, own in kernels.items():
            good = [launch for launch, said in own if said.partition(",")[0] in ("validated", "proved")]
            mark = GOOD if len(good) == len(own) else OPEN
            count = f"{len(own)} launch{'es' * (len(own) != 1)}"
            some = all(said.startswith("validated except ") for launch, said in own if launch not in good)
            kinds = sorted(
                {said.partition(",")[0] for launch, said in own if launch in good}
            )  # "proved" before "validated"
            right = " or ".join(kinds) or "validated"
            words = right if mark == GOOD else f"{len(good)} of {len(own)} {right}"
            words = "validated in part" if some and mark != GOOD else words
            style = "green" if mark == GOOD else "yellow"
            self.say(f"{mark} {kernel}  {words}  {count}  {state.file.target}  {state.file.output}", style=style)
            for launch, said in own:
                if launch not in good or self.verbosity.verbose:
                    style = {"validated": "green", "mismatch": "red"}.get(launch.found["status"], "yellow")
                    self.say(f"    {launch.spec.id}: {said}", style=style)
        sys.stdout.flush()

    def summary(self, states: Sequence[FileState]) -> None:
        """How many files are in which state, which is said first."""
        if self.verbosity.quiet:
            return
        counts = {name: sum(state.state == name for state in states) for name in dict.fromkeys(s.state for s in states)}
        listed = ", ".join(f"{n} {state}" for state, n in counts.items())
        count = f"{len(states)} generated file{'s' * (len(states) != 1)}"
        self.say(f"{count}: {listed}" if listed else f"{count} have to do with what changed")

    def advice(self, states: Sequence[FileState]) -> None:
        """What to do, which is said last."""
        if self.verbosity.quiet:
            return
        if any(fails(state, self.allow_edits) and state.state in ("outdated", "missing") for state in states):
            self.say("bring them up to date with: gluonize update")
        if any(state.state == "conflicts" for state in states):
            self.say("resolve the conflicts, and take their marks out")
            self.say(
                "after a merge in git: git checkout --ours FILE, or --theirs, whichever has your edits; gluonize update"
            )
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


def state_entry(state: FileState, level: str, launches: Sequence[ValidatedLaunch] | None, clocks: float | None) -> dict:
    """One file of the JSON. launches: with `--validate` what the reference machine said of each. clocks: beside Triton's."""
    entry = {
        "file": state.file.output,
        "source": state.file.source,
        "target": state.file.target,
        "state": state.state,
        "edited": state.edited or state.state == "edited",
        "reasons": list(state.reasons),
        "validated": level,
        "clocks": clocks,
        "diff": "".join(f"{line}\n" for line in unified_diff(state)),
        "diagnostics": [found.as_json() for found in state.diagnostics],
    }
    if launches is not None:
        entry["launches"] = [{"id": x.spec.id, "kernel": x.spec.kernel, "validation": x.found} for x in launches]
    return entry
