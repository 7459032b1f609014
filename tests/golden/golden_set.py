"""Which goldens there must be, and how each is produced."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import fixture_set
from child_process import run_child

REPOSITORY = fixture_set.ROOT.parent
REFUSED = fixture_set.ROOT / "refused"
# A refusal reads the same for every target; the target is in the text only where it is the reason.
REFUSAL_TARGET = "gfx942"
# Lines of a difference that a failing test shows.
SHOWN = 80
# Fixtures that have goldens for a strategy too: (target, strategy).
STRATEGIES = {
    "matmul": (("gfx1250", "warp-specialized"),),
    "descriptor_matmul": (("gfx1250", "warp-specialized"),),
    "flash_attention": (("gfx1250", "warp-specialized"),),
}


# Fixtures that have goldens for programs of several workgroups too: (target, workgroups).
CLUSTERS = {
    "matmul": (("gfx1250", 2), ("gfx1250", 4)),
    "descriptor_matmul": (("gfx1250", 2),),
    "flash_attention": (("gfx1250", 2), ("gfx1250", 4)),
    "softmax": (("gfx1250", 2), ("gfx1250", 4)),
}


# Fixtures that have goldens for programs with several tiles, or parts of them, too: (target, what programs do).
PROGRAMS = {"matmul": (("gfx950", "persistent"), ("gfx950", "stream-k"))}


@dataclass(frozen=True)
class Golden:
    """A file with the expected translation of `source`, or, for a case that must be refused, the expected message.

    strategy: what `--strategy` is given, if anything; ctas: what `--num-ctas` is given, 0 for nothing; kept: with `--keep-structure`;
    programs: what `--choose programs=` is given, if anything.
    """

    path: Path
    source: Path
    target: str
    refused: bool = False
    strategy: str = ""
    ctas: int = 0
    kept: bool = False
    programs: str = ""

    @property
    def id(self) -> str:
        if self.refused:
            return f"refused/{self.source.stem}"
        words = [word for word in (self.strategy, self.programs) if word]
        words += [f"{self.ctas}-ctas"] * bool(self.ctas) + ["kept"] * self.kept
        return "-".join([self.source.parent.name, self.target, *words])

    @property
    def refresh(self) -> str:
        """The command that rewrites this golden."""
        return f"make golden FIXTURES={'refused' if self.refused else self.source.parent.name}"


class Unexpected(Exception):
    """The translator did not do what is expected of this file at all, so there is nothing to compare."""


def translations() -> list[Golden]:
    """Every fixture for every target, and some with a strategy or as clusters."""
    plain = [Golden(f.golden_file(t), f.kernel_file, t) for f in fixture_set.fixtures() for t in fixture_set.TARGETS]
    return [*plain, *with_options(), *of_gluon()]


def of_gluon() -> list[Golden]:
    """Kernels that are Gluon already, for AMD GPUs."""
    folders = [fixture_set.ROOT / name for name in fixture_set.GLUON_SOURCES]
    every = [Golden(f / "golden" / f"{t}.py", f / "source.py", t) for f in folders for t in fixture_set.TARGETS]
    hopper = fixture_set.ROOT / "hopper"
    return [*every, Golden(hopper / "golden" / "gfx1250_kept.py", hopper / "source.py", "gfx1250", kept=True)]


def with_options() -> list[Golden]:
    """Those with a strategy, those of several workgroups, and those that go from tile to tile."""
    strategies = [
        Golden(f.golden_file(f"{target}_{strategy.replace('-', '_')}"), f.kernel_file, target, strategy=strategy)
        for f in fixture_set.fixtures()
        for target, strategy in STRATEGIES.get(f.name, ())
    ]
    clusters = [
        Golden(f.golden_file(f"{target}_{ctas}_ctas"), f.kernel_file, target, ctas=ctas)
        for f in fixture_set.fixtures()
        for target, ctas in CLUSTERS.get(f.name, ())
    ]
    staying = [
        Golden(f.golden_file(f"{target}_{programs.replace('-', '_')}"), f.kernel_file, target, programs=programs)
        for f in fixture_set.fixtures()
        for target, programs in PROGRAMS.get(f.name, ())
    ]
    return strategies + clusters + staying


def refusals() -> list[Golden]:
    """Every case of fixtures/refused."""
    return [Golden(c.with_suffix(".expected.txt"), c, REFUSAL_TARGET, True) for c in sorted(REFUSED.glob("*.py"))]


def orphans() -> list[Path]:
    """Golden files that belong to no fixture, target or case any more."""
    known = {golden.path for golden in (*translations(), *refusals())}
    there = [*fixture_set.ROOT.glob("*/golden/*"), *REFUSED.glob("*.expected.txt")]
    return sorted(path for path in there if path not in known and path.suffix in (".py", ".txt"))


def translate(golden: Golden, **environment: str) -> dict:
    """What translate_fixture.py prints for the golden's source and target. Raises: ChildFailed."""
    source = golden.source.relative_to(REPOSITORY).as_posix()
    ids = [golden.id] if golden.refused else []
    options = [f"--strategy={golden.strategy}"] if golden.strategy else []
    options += [f"--num-ctas={golden.ctas}"] if golden.ctas else []
    options += [f"--programs={golden.programs}"] if golden.programs else []
    options += ["--keep-structure"] if golden.kept else []
    return run_child("golden/translate_fixture.py", source, golden.target, *ids, *options, **environment)


def produce(golden: Golden) -> str:
    """The text that belongs into the golden now. Raises: Unexpected, ChildFailed."""
    answer = translate(golden)
    rendered = "\n".join(answer["diagnostics"])
    if golden.refused:
        if answer["status"] != "refused" or answer["text"] is not None:
            raise Unexpected(f"{golden.id} must be refused, but is {answer['status']}\n{answer['text'] or rendered}")
        marked = [i for i, line in enumerate(golden.source.read_text().splitlines(), 1) if line.endswith("# refused")]
        if answer["lines"] != marked:
            raise Unexpected(f"{golden.id} must be refused at line {marked}, not {answer['lines']}\n{rendered}")
        return rendered + "\n"
    if answer["status"] != "translated":
        raise Unexpected(f"{golden.id} is {answer['status']}\n{rendered}")
    return answer["text"]


def difference(golden: Golden, found: str) -> str:
    """A unified diff from the golden to `found`; empty when they are equal."""
    expected = golden.path.read_text() if golden.path.exists() else ""
    name = golden.path.relative_to(REPOSITORY).as_posix()
    lines = difflib.unified_diff(expected.splitlines(True), found.splitlines(True), name, "now")
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)
