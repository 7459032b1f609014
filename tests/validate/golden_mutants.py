"""Mutants of the goldens: every one that changes behaviour has to be found by the reference machine, at the right line, and may not be proved.

    python tests/validate/golden_mutants.py                          # all of them: about half an hour on two cores
    python tests/validate/golden_mutants.py --fixtures matmul scan --targets gfx950 -j 2
    python tests/validate/golden_mutants.py --sample 10              # one in ten
    python tests/validate/golden_mutants.py --keep FOLDER            # goldens that are in FOLDER unchanged are not run again
    python tests/validate/golden_mutants.py --keep FOLDER --again    # but those of their mutants are that survived

`survivors.toml` lists those that are not found, with the reason. Mutants whose TTGIR is that of the original, conversions between
layouts apart where one was left out, change nothing and are not counted, nor are those that do not compile.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import re
import sys
import tempfile
import tomllib
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE, HERE.parent, HERE.parent.parent) if str(p) not in sys.path]

import fixture_set  # noqa: E402
from mutants import Mutant, mutants, reachable  # noqa: E402

from gluonize.diagnostics import TranslationError  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402
from gluonize.read.spec.launch import read_launches  # noqa: E402
from gluonize.judge.verdict.proof import BRIEFLY, proved  # noqa: E402
from gluonize.judge.verdict.result import ValidationResult  # noqa: E402
from gluonize.judge.verdict.run import validate_pair  # noqa: E402
from gluonize.judge.machine.stages import Stage, source_stage, translated_stage  # noqa: E402
from gluonize.trace.model.types import split_top  # noqa: E402

SURVIVORS = HERE / "survivors.toml"
SLICE = 12  # mutants per job of a worker
JOB_SECONDS = 600.0
# Findings that belong to the access itself; all others show at an access that a mutant elsewhere made wrong.
OWN_LINE = {"out-of-bounds", "buffer-offset", "wild-pointer", "misaligned"}
ACCESS = re.compile(
    r"load|store|copy|global_to_shared|shared_to_global|atomic|wait|arrive|index|convert_layout|sum|max|reduce|scan|init|barrier|async"
)


@dataclass(frozen=True)
class Outcome:
    """`status`: found, survives, same (TTGIR), refused (does not compile), misplaced (found, at a line that says nothing), proved (to compute
    the same, though it was found that it does not)."""

    fixture: str
    target: str
    what: str
    category: str
    line: int
    before: str
    status: str
    detail: str = ""
    function: str = ""
    nth: tuple[int, int] = (0, -1)


@dataclass(frozen=True)
class Survivor:
    """An entry of survivors.toml: which mutants it excuses and why. No targets: all; no function: any.

    `nth` are places among the mutants of the function with the same change and line, from the front or, below 0, from the back.
    """

    fixture: str
    what: str
    line: str
    reason: str
    targets: tuple[str, ...] = ()
    function: str = ""
    nth: tuple[int, ...] = ()

    def excuses(self, o: Outcome) -> bool:
        same = (self.fixture, self.what) == (o.fixture, o.what) and self.line in o.before
        if self.nth and not set(self.nth) & set(o.nth):
            return False
        return same and o.target in (self.targets or (o.target,)) and o.function == (self.function or o.function)


def listed() -> list[Survivor]:
    entries = tomllib.loads(SURVIVORS.read_text()).get("survivor", [])
    return [
        Survivor(**{key: tuple(value) if isinstance(value, list) else value for key, value in e.items()})
        for e in entries
    ]


def places(every: list[Mutant]) -> list[tuple[int, int]]:
    """The place of each mutant among those of its function with the same change and line, from both ends."""
    keys = [(m.function, m.what, m.before) for m in every]
    return [(keys[:i].count(key), keys[:i].count(key) - keys.count(key)) for i, key in enumerate(keys)]


@functools.lru_cache(maxsize=64)
def _source(fixture: str, index: int, target: str) -> tuple[Stage, object]:
    folder = fixture_set.Fixture(fixture_set.ROOT / fixture)
    spec = read_launches(str(folder.launches_file))[index]
    return source_stage(str(folder.kernel_file), spec, target), spec


VALUE = re.compile(r"%[\w#.\-]+")
LOCATION = re.compile(r" loc\((?:[^()]|\([^()]*\))*\)|^#loc.*$", re.M)


def _bare(text: str) -> str:
    return "\n".join(line for line in LOCATION.sub("", text).splitlines() if line)


def values_only(text: str) -> str:
    """A module without its layouts and the conversions between them, values numbered anew: what it computes."""
    names: dict[str, str] = {}
    numbers = itertools.count()

    def renamed(name: str) -> str:
        if name not in names:
            names[name] = f"%v{next(numbers)}"
        return names[name]

    out = []
    for line in text.splitlines():
        if line.startswith("#") or "module attributes" in line:
            continue
        conversion = re.match(r"\s*(%[\w#.\-]+) = ttg\.convert_layout (%[\w#.\-]+)", line)
        if conversion:
            names[conversion.group(1)] = renamed(conversion.group(2))
            continue
        line = re.sub(r"allocation\.\w+ = \d+ : i32(, )?", "", _without_layouts(line))
        out.append(VALUE.sub(lambda found: renamed(found.group()), line))
    return "\n".join(out)


def _without_layouts(line: str) -> str:
    """`tensor<64x64xf16, #blocked>` -> `tensor<64x64xf16>`."""
    out, i = [], 0
    while (start := line.find("tensor<", i)) >= 0:
        depth, end = 1, start + len("tensor<")
        while depth:
            depth += {"<": 1, ">": -1}.get(line[end], 0) if line[end - 1 : end + 1] != "->" else 0
            end += 1
        out.append(line[i:start] + split_top(line[start + len("tensor<") : end - 1])[0])
        i = end
    return "".join(out) + line[i:]


def run_slice(fixture: str, target: str, first: int, step: int, until: int) -> list[Outcome]:
    """Outcomes of the mutants first, first + step, ... below `until` of one golden; runs in a worker."""
    folder = fixture_set.Fixture(fixture_set.ROOT / fixture)
    golden = folder.golden_file(target)
    every = list(mutants(golden.read_text()))
    chosen = list(zip(every, places(every)))[first:until:step]
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / golden.name
        originals: dict[int, str] = {}
        return [replace(_run(m, fixture, target, file, golden.read_text(), originals), nth=nth) for m, nth in chosen]


def _run(mutant: Mutant, fixture: str, target: str, file: Path, good: str, originals: dict[int, str]) -> Outcome:
    folder = fixture_set.Fixture(fixture_set.ROOT / fixture)
    status, detail = "same", ""
    for index, launch in enumerate(folder.launches()):
        if mutant.function not in reachable(good, launch["kernel"]):
            continue
        left, spec = _source(fixture, index, target)
        if index not in originals:
            file.write_text(good)
            originals[index] = _bare(translated_stage(str(file), spec, target).text)
        file.write_text(mutant.text)
        try:
            right = translated_stage(str(file), spec, target)
        except TranslationError as error:
            status, detail = "refused", str(error).splitlines()[0]
            break
        bare = _bare(right.text)
        if bare == originals[index]:
            continue
        if mutant.category == "conversion" and values_only(bare) == values_only(originals[index]):
            continue
        result = validate_pair(
            left.text,
            right.text,
            spec,
            source_names=left.names,
            translated_names=right.names,
            translated_file=right.file,
        )
        status, detail = _judge(mutant, result, file)
        if status != "survives":
            if proved(left, right, spec, target, BRIEFLY).holds:
                status = "proved"
            break
    return Outcome(
        fixture, target, mutant.what, mutant.category, mutant.line, mutant.before, status, detail, mutant.function
    )


def _judge(mutant: Mutant, result: ValidationResult, file: Path) -> tuple[str, str]:
    if result.status not in ("hazard", "mismatch"):
        return "survives", f"{result.status} {result.reason}".strip()
    finding = result.hazards[0] if result.hazards else None
    place = finding or result
    return ("found" if right_line(mutant, finding, place.line, place.file == str(file)) else "misplaced"), result.reason


def right_line(mutant: Mutant, finding, line: int, in_file: bool) -> bool:
    """Is `line` the mutated one, or that of an access that the mutant makes wrong?

    An access that leaves its buffer must be the mutated statement itself where that is an access with a mask; what is missing
    altogether (a store, an arrival) has no line of its own.
    """
    if mutant.line <= line <= mutant.last:
        return True
    if finding is None and line == 0:
        return mutant.category in ("store", "copy", "mask", "loop")
    if not in_file:
        return False
    if finding is not None and finding.kind in OWN_LINE and mutant.category == "mask" and "mask=" in mutant.before:
        return False
    lines = mutant.text.splitlines()
    # The text of the statement that stands there may go on over several lines, or have begun above.
    return any(ACCESS.search(text) for text in lines[max(0, line - 3) : line + 2])


def plan(
    fixtures: list[str], targets: list[str], sample: int = 1, rotate: int = 0
) -> list[tuple[str, str, int, int, int]]:
    """Arguments of `run_slice`: all mutants, or one in `sample`. The first taken differs from golden to golden and with `rotate`."""
    jobs = []
    for name in fixtures:
        for target in targets:
            golden = fixture_set.Fixture(fixture_set.ROOT / name).golden_file(target)
            count = sum(1 for _ in mutants(golden.read_text()))
            start = (zlib.crc32(f"{name}/{target}".encode()) + rotate) % sample
            jobs += [
                (name, target, i, sample, min(i + SLICE * sample, count)) for i in range(start, count, SLICE * sample)
            ]
    return jobs


def run(jobs: list[tuple], workers: int, progress=None) -> list[Outcome]:
    """All outcomes. A worker that dies takes its slice with it: its mutants are run one by one."""
    out: list[Outcome] = []
    with WorkerPool(workers, timeout=JOB_SECONDS) as pool:
        futures = [(job, pool.submit("golden_mutants:run_slice", *job)) for job in jobs]
        for job, future in futures:
            try:
                out += future.result()
            except TranslationError:
                out += _one_by_one(pool, job)
            if progress:
                progress(job, out)
    return out


def _one_by_one(pool: WorkerPool, job: tuple) -> list[Outcome]:
    name, target, first, step, until = job
    every = list(mutants(fixture_set.Fixture(fixture_set.ROOT / name).golden_file(target).read_text()))
    out = []
    for i in range(first, until, step):
        try:
            out += pool.call("golden_mutants:run_slice", name, target, i, 1, i + 1)
        except TranslationError as error:
            m = every[i]
            out.append(
                Outcome(
                    name,
                    target,
                    m.what,
                    m.category,
                    m.line,
                    m.before,
                    "refused",
                    str(error).splitlines()[0],
                    m.function,
                )
            )
    return out


@dataclass(frozen=True)
class Score:
    """What a run says. `share` is found / (found + surviving without excuse). proved: those that are wrong and that the prover holds to be right."""

    found: int
    share: float
    unexcused: tuple[Outcome, ...]
    misplaced: tuple[Outcome, ...]
    stale: tuple[Survivor, ...]
    excused: int
    proved: tuple[Outcome, ...] = ()


def score(outcomes: list[Outcome], survivors: list[Survivor], complete: bool) -> Score:
    """`complete`: every mutant of the fixtures that the entries name was run, so an entry that excuses none is stale."""
    lost = [o for o in outcomes if o.status == "survives"]
    unexcused = tuple(o for o in lost if not any(s.excuses(o) for s in survivors))
    found = [o for o in outcomes if o.status in ("found", "misplaced")]
    stale = [s for s in survivors if complete and not any(s.excuses(o) for o in lost)]
    misplaced = tuple(o for o in found if o.status == "misplaced")
    share = len(found) / max(1, len(found) + len(unexcused))
    proved = tuple(o for o in outcomes if o.status == "proved")
    return Score(len(found), share, unexcused, misplaced, tuple(stale), len(lost) - len(unexcused), proved)


def fingerprint(fixture: str, target: str) -> str:
    """Of what the mutants of one golden are made from and compared with; the machine is not part of it."""
    folder = fixture_set.Fixture(fixture_set.ROOT / fixture)
    files = (folder.golden_file(target), folder.kernel_file, folder.launches_file, HERE / "mutants.py")
    return hashlib.sha256(b"\0".join(Path(file).read_bytes() for file in files)).hexdigest()


@dataclass(frozen=True)
class Kept:
    """Outcomes of whole goldens in files of `folder`, so that a run that was stopped goes on where it was."""

    folder: Path

    def _file(self, fixture: str, target: str) -> Path:
        return self.folder / f"{fixture}-{target}.json"

    def write(self, fixture: str, target: str, outcomes: list[Outcome]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        mine = [vars(o) for o in outcomes if (o.fixture, o.target) == (fixture, target)]
        text = json.dumps({"fingerprint": fingerprint(fixture, target), "outcomes": mine}, indent=1)
        self._file(fixture, target).write_text(text + "\n")

    def read(self, fixture: str, target: str) -> list[Outcome] | None:
        """None where nothing is kept, or something that has changed since."""
        file = self._file(fixture, target)
        kept = json.loads(file.read_text()) if file.exists() else {}
        if kept.get("fingerprint") != fingerprint(fixture, target):
            return None
        return [Outcome(**o | {"nth": tuple(o["nth"])}) for o in kept["outcomes"]]


def run_again(known: dict[tuple[str, str], list[Outcome]], workers: int) -> list[tuple[str, str]]:
    """Run the survivors among whole goldens' outcomes once more, in place; -> the goldens that have some."""
    lost = [(key, i) for key, outcomes in known.items() for i, o in enumerate(outcomes) if o.status == "survives"]
    for (key, i), outcome in zip(lost, run([(*key, i, 1, i + 1) for key, i in lost], workers)):
        assert (outcome.line, outcome.what, outcome.nth) == (known[key][i].line, known[key][i].what, known[key][i].nth)
        known[key][i] = outcome
    return list(dict.fromkeys(key for key, _ in lost))


def table(outcomes: list[Outcome]) -> str:
    """Counts per category and status."""
    count = Counter((o.category, o.status) for o in outcomes)
    statuses = ("found", "misplaced", "survives", "same", "refused", "proved")
    lines = [f"{'':12s}" + "".join(f"{s:>11s}" for s in statuses)]
    for category in sorted({c for c, _ in count}):
        lines.append(f"{category:12s}" + "".join(f"{count[category, s]:11d}" for s in statuses))
    lines.append(f"{'all':12s}" + "".join(f"{sum(count[c, s] for c in {c for c, _ in count}):11d}" for s in statuses))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [f.name for f in fixture_set.fixtures()]
    parser.add_argument("--fixtures", nargs="+", default=names, choices=names)
    parser.add_argument("--targets", nargs="+", default=list(fixture_set.TARGETS), choices=fixture_set.TARGETS)
    parser.add_argument("--sample", type=int, default=1, help="run one mutant in N")
    parser.add_argument("--rotate", type=int, default=0, help="which one in N")
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--json", help="write all outcomes here")
    parser.add_argument("--keep", type=Path, help="keep the outcomes of each golden here; not with --sample")
    parser.add_argument("--again", action="store_true", help="run what survived in the kept outcomes again")
    options = parser.parse_args()
    jobs = plan(options.fixtures, options.targets, options.sample, options.rotate)
    kept = Kept(options.keep) if options.keep and options.sample == 1 else None
    known: dict[tuple[str, str], list[Outcome]] = {}
    if kept:
        found = {key: kept.read(*key) for key in dict.fromkeys(job[:2] for job in jobs)}
        known = {key: outcomes for key, outcomes in found.items() if outcomes is not None}
        jobs = [job for job in jobs if job[:2] not in known]
        for key in run_again(known, options.j) if options.again else ():
            kept.write(*key, known[key])
    last = {job[:2]: job for job in jobs}

    def progress(job, out):
        print(f"\r{job[0]}/{job[1]}: {len(out)} mutants", end="   ", file=sys.stderr, flush=True)
        if kept and last[job[:2]] == job:
            kept.write(*job[:2], out)

    outcomes = [*itertools.chain(*known.values()), *run(jobs, options.j, progress)]
    if options.json:
        Path(options.json).write_text(json.dumps([vars(o) for o in outcomes], indent=1) + "\n")
    survivors = [s for s in listed() if s.fixture in options.fixtures]
    whole = options.sample == 1 and set(options.targets) == set(fixture_set.TARGETS)
    result = score(outcomes, survivors, whole)
    print("\n" + table(outcomes))
    for o in result.unexcused:
        print(f"survives: {o.fixture}/{o.target}:{o.line}: {o.what}: {o.before}\n    {o.detail}")
    for o in (*result.misplaced, *result.proved):
        print(
            f"{'wrong, but proved' if o.status == 'proved' else 'at the wrong line'}: {o.fixture}/{o.target}:{o.line}: {o.what}: {o.before}\n    {o.detail}"
        )
    for entry in result.stale:
        print(f"stale entry of survivors.toml: {entry}")
    print(f"{result.found} found, {result.excused} excused, {len(result.unexcused)} not: {100 * result.share:.2f} %")
    return int(result.share < 0.98 or bool(result.stale or result.proved))


if __name__ == "__main__":
    sys.exit(main())
