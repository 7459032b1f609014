"""What people see of a translation first: a line per kernel, what needs attention, and last whether launches in host code are served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gluonize.judge.lower.parity import ratio
from gluonize.judge.machine.coverage import Coverage
from gluonize.judge.verdict.result import RACE
from gluonize.product.cli.translate.guess_table import correction_lines, missing_lines
from gluonize.product.project.launches.judge import HostLaunch
from gluonize.product.project.output.verdict import is_settled, proof_word, united_coverage
from gluonize.product.project.translate.run import CheckedLaunch, FileReport, mismatch_text

HOW_TO_CORRECT = "-v shows all, --write-launches FILE writes them down"
GOOD, OPEN, WRONG = "✓", "!", "✗"
_NOTES, _WORSE = 4, 3  # lines of notes and of comparisons that are shown
# What is served comes first, what is not last.
_ORDER = ("served", "served-in-part", "unread", "not-served", "refused")


def kernel_lines(report: FileReport) -> Iterator[tuple[str, str]]:
    """(mark, line) for each kernel of a file: is it right, how fast is it, and what was it made from."""
    rows = [_row(report, kernel, own) for kernel, own in launches_by_kernel(report).items()]
    widths = [max(len(row[1][column]) for row in rows) for column in range(5)] if rows else []
    for mark, cells in rows:
        parts = [cell.ljust(width) for cell, width in zip(cells, widths) if width]
        yield mark, f"{mark} {'  '.join(parts)}".rstrip()


def launches_by_kernel(report: FileReport) -> dict[str, list[CheckedLaunch]]:
    out: dict[str, list[CheckedLaunch]] = {}
    for checked in report.launches:
        out.setdefault(checked.outcome.spec.kernel, []).append(checked)
    return out


def _row(report: FileReport, kernel: str, launches: list[CheckedLaunch]) -> tuple[str, tuple[str, ...]]:
    mark, words = verdict_of(launches)
    own = [x for x in launches if x.status != "passed-over"]
    count = f"{len(own)} launch{'es' * (len(own) != 1)}" if own else ""
    guesses = sum(len(d.guesses) for d in report.derivations if d.kernel == kernel)
    guessed = f"{guesses} value{'s' * (guesses != 1)} guessed" if guesses else ""
    if not all(x.kernel != kernel or x.status in _ORDER[:3] for x in report.host_launches):
        mark, words = OPEN if mark == GOOD else mark, f"{words}, a launch is not served"
    return mark, (kernel, words, speed_of(launches), count, guessed)


def verdict_of(launches: Sequence[CheckedLaunch]) -> tuple[str, str]:
    """Whether the translation of a kernel is right, of all its launches."""
    own = [x for x in launches if x.status != "passed-over"]
    statuses = {x.status for x in own}
    found = [x.validation for x in own if x.status == "translated"]
    kinds = {x["status"] for x in found}
    if not own:
        return OPEN, "stays Triton"
    for status, words in (("failed", "does not compile"), ("refused", "refused")):
        if status in statuses:
            return WRONG, words
    if "mismatch" in kinds:
        return WRONG, "wrong"
    if kinds == {"skipped"}:
        return GOOD, "translated"
    coverage, proved = united_coverage(found), proof_word(found)
    if kinds != {"validated"}:
        return OPEN, f"{proved}, not run" if proved and kinds <= {"validated", "not_runnable"} else "not validated"
    word = "validated in part" if coverage is not None and coverage.gaps() else "validated"
    if any(x.get("proof", {}).get("status") == "refuted" for x in found):
        return OPEN, f"{word}, but refuted"
    if any(map(is_settled, found)):
        return (GOOD if proved or word == "validated" else OPEN), proved or f"proved or {word}"
    return (GOOD if proved or word == "validated" else OPEN), f"{word}{', ' if proved else ''}{proved}"


def speed_of(launches: Iterable[CheckedLaunch]) -> str:
    """`0.91x clocks of Triton`, predicted for its hottest loop with products, else `0.91x instructions of Triton`; or from which to which
    ratio."""
    launches = list(launches)
    clocks = sorted(x.clocks.ratio for x in launches if x.clocks is not None)
    compared = [x.parity for x in launches if x.parity is not None]
    counted = sorted(r for p in compared if (r := ratio(p.translated.mix.insns, p.triton.mix.insns)) is not None)
    ratios, what = (clocks, "clocks") if clocks else (counted, "instructions")
    if not ratios:
        return ""
    ends = list(dict.fromkeys(f"{value:.2f}x" for value in (ratios[0], ratios[-1])))
    return f"{' to '.join(ends)} {what} of Triton"


def attention_lines(report: FileReport, one_of_many: bool = False) -> Iterator[str]:
    """What somebody should look at before using the output. one_of_many: what is the same for all files is said after them."""
    together = united_coverage(report.validations)
    for kernel, own in launches_by_kernel(report).items():
        said = [validation_line(x.validation, together) for x in own if x.status == "translated"]
        said = [line.partition(", with made-up values")[0] for line in said]
        for line in dict.fromkeys(
            line for line in said if line.partition(", proved")[0] not in ("validated", "proved", "skipped")
        ):
            yield f"{kernel}: {line}"
    yield from missing_lines(checked.outcome for checked in report.launches)
    worse = {}
    for checked in report.launches:
        for regression in checked.worse:
            worse.setdefault((checked.outcome.spec.kernel, regression), checked.outcome.spec.id)
    for (kernel, regression), launch in list(worse.items())[:_WORSE]:
        yield f"{kernel} is worse than Triton's: {regression} ({launch})"
    if len(worse) > _WORSE:
        yield f"and worse in {len(worse) - _WORSE} more: -v shows them"
    if lines := correction_lines(report.derivations):
        if len(lines) == 1 or not one_of_many:
            yield f"to correct a guess: {lines[0] if len(lines) == 1 else HOW_TO_CORRECT}"
    for kernel, own in launches_by_kernel(report).items():
        races = (note for x in own for note in x.validation.get("notes", ()) if note.startswith(RACE))
        for note in dict.fromkeys(races):
            yield f"note: {kernel}: {note}"
    for note in report.notes[:_NOTES]:
        yield f"note: {note}"
    if len(report.notes) > _NOTES:
        yield f"{len(report.notes) - _NOTES} more notes: -v"


def launch_lines(reports: Sequence[FileReport], several: bool) -> Iterator[tuple[str, str]]:
    """(status, line) of the launches in host code, alike ones together, those that are not served last. several: there may be many files:
    each is named, and what is served is counted."""
    told: dict[tuple[str, HostLaunch], list[str]] = {}
    targets: dict[str, list[str]] = {}
    for report in reports:
        source, target = report.planned.request.source, report.planned.request.target
        targets.setdefault(source, []).append(target)
        for launch in report.host_launches:
            told.setdefault((source, launch), []).append(target)
    kernels = {(source, launch.kernel) for source, launch in told}
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for (source, launch), on in told.items():
        where = "" if len(on) == len(targets[source]) else f" ({', '.join(on)})"
        name = f"{launch.kernel}, " if sum(own == source for own, _ in kernels) > 1 else ""
        place = f"{source}: " if several else ""
        groups.setdefault((launch.status, place + name, launch.words, where), []).append(launch.place)
    served = sum(len(places) for key, places in groups.items() if several and key[0] == "served")
    if served:
        yield "served", f"{served} launch{'es' * (served != 1)} in host code served; -v names them"
    for status in _ORDER[bool(several) :]:
        for (kind, name, words, where), places in groups.items():
            if kind == status:
                yield status, f"{name}{_at(places)}: {words}{where}"


def _at(places: Sequence[str]) -> str:
    """`launch at line 42`, `launches at lines 12, 42 and test_x.py:9`."""
    if len(places) == 1:
        return f"launch at {places[0]}"
    lines = [place.removeprefix("line ") for place in places]
    word = "lines " if places[0].startswith("line ") else ""
    return f"launches at {word}{', '.join(lines[:-1])} and {lines[-1]}"


def validation_line(found: dict, together: Coverage | None = None) -> str:
    """`validated` or `proved`, and what a reader should know of how. together: what all launches of the file ran."""
    if found["status"] == "not_runnable":
        return f"not validated: {found.get('reason', '')}".rstrip(": ")
    if found["status"] == "mismatch":
        return f"mismatch: {mismatch_text(found)}"
    word = found["status"]
    if is_settled(found):
        return proof_words(found["proof"]).removeprefix(", ")
    if found.get("coverage"):
        own = Coverage.of_json(found["coverage"])
        word = (own.with_others(together) if together is not None else own).verdict()
    made_up = ", ".join(f"{name} = {value}" for name, value in found.get("made_up", {}).items())
    word = f"{word}, with made-up values: {made_up}" if made_up else word
    return f"{word}{proof_words(found.get('proof', {}))}"


def proof_words(proof: dict) -> str:
    """What a proof adds to a validation: `, proved if the tensor described by a_ptr lies within its storage`; "" where it found nothing."""
    if proof.get("status") == "refuted":
        return f", but refuted: {proof['reason']}"
    if not proof_word([{"proof": proof}]):
        return ""
    assumed = proof["assumed"]
    return f", {proof['status']}{' if ' if assumed else ''}{' and '.join(assumed)}"
