"""Faults in goldens' modules by the thousand: none that changes what is stored may be proved.

    python tests/prove/bulk_faults.py                                # every fault of every golden that is proved: hours
    python tests/prove/bulk_faults.py --random 10000 --seed 1        # random ones, two at once in one of five
    python tests/prove/bulk_faults.py --random 10000 --seconds 600   # as many of them as fit into so many seconds of processor time
    python tests/prove/bulk_faults.py -t gfx950 --fixtures matmul softmax
    python tests/prove/bulk_faults.py -t gfx950 --kernels 0:500      # 20 of each of these random kernels that is proved

A number and a seed are the same faults for ever. A faulty module that is proved is run by the reference machine beside its source: only where that
finds no difference is the fault one that changes nothing. The exit status is 1 where it finds one, or where the prover breaks.
"""

from __future__ import annotations

import argparse
import functools
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [
    str(p) for p in (HERE, HERE.parent, HERE.parent / "validate", HERE.parent.parent) if str(p) not in sys.path
]

import fixture_set  # noqa: E402
from gluonize.diagnostics import Diagnostic, TranslationError  # noqa: E402
from gluonize.judge.machine.stages import Stage, source_stage, translated_stage  # noqa: E402
from gluonize.judge.prove.both_sides import Verdict, prove  # noqa: E402
from gluonize.judge.prove.stated_bounds import Contract, read_contract  # noqa: E402
from gluonize.judge.verdict.launch_check import launch_check, other_kernel  # noqa: E402
from gluonize.judge.verdict.proof import BRIEFLY  # noqa: E402
from gluonize.judge.verdict.run import Refusal, validate_pair  # noqa: E402
from gluonize.read.files.modules import parse_file  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec, read_launches  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.rules.targets import target as target_row  # noqa: E402
from gluonize.trace.model.parse import ParseError, parse_module  # noqa: E402
from gluonize.translation import translate_kernel  # noqa: E402
from kernelgen.kernels import kernel_of  # noqa: E402
from planted_faults import Fault, faults  # noqa: E402

TWO = 5  # one in so many random ones has two faults
EVERY = 250  # faults after which it is said how many came out how
WRONG = ("proved, but wrong", "crash")
OF_EACH = 20  # faults of a random kernel
ASSUMED = re.compile(r"llvm\.intr\.assume (%\S+)")
Named = tuple[str, int, str]  # a fixture, the number of its launch, a target; "": a random kernel of this number


@dataclass(frozen=True)
class Pair:
    """A launch of a golden: both stages, what its header states, and why its launch check refuses inputs."""

    left: Stage
    right: Stage
    spec: LaunchSpec
    contract: Contract
    refusal: Refusal | None

    def proved(self, text: str) -> Verdict:
        """What is known of the golden's module with another text. Raises: ParseError."""
        return prove(parse_module(self.left.text), parse_module(text), self.contract, BRIEFLY)

    def run(self, text: str) -> str:
        """What the reference machine says of it, with what is assumed checked: `validated`, `mismatch`, `hazard`, `not_runnable`."""
        text = ASSUMED.sub(r'tt.assert \1, "assumed"', text)
        names = {"source_names": self.left.names, "translated_names": self.right.names}
        return validate_pair(
            self.left.text, text, self.spec, **names, translated_file=self.right.file, refusal=self.refusal
        ).status


@functools.lru_cache(maxsize=16)
def pair(fixture: str, launch: int, target: str) -> Pair:
    if not fixture:
        return generated(launch, target)
    folder = fixture_set.Fixture(fixture_set.ROOT / fixture)
    spec = read_launches(str(folder.launches_file))[launch]
    return paired(folder.kernel_file, folder.golden_file(target), spec, target)


def paired(source: Path, output: Path, spec: LaunchSpec, target: str) -> Pair:
    stated = read_contract(output.read_text(), spec.kernel, spec.constexprs)
    contract = replace(stated, copies_end=target_row(target).copies_end_with_program)
    left, right = source_stage(str(source), spec, target), translated_stage(str(output), spec, target)
    checked = parse_file(right.file).tree, spec.kernel, spec, right.defaults
    return Pair(left, right, spec, contract, other_kernel(*checked) or launch_check(*checked))


def generated(seed: int, target: str) -> Pair:
    """A random kernel and its translation. Raises: TranslationError where it has none."""
    kernel = kernel_of(seed)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        source, output = Path(folder) / "source.py", Path(folder) / "output.py"
        source.write_text(kernel.text)
        spec = replace(kernel.spec, source=str(source))
        text = translate_kernel(TranslateRequest(str(source), target, launches=(spec,))).text
        if text is None:
            raise TranslationError(Diagnostic("random-kernel", f"kernel {seed} has no translation for {target}"))
        output.write_text(text)
        return paired(source, output, spec, target)


@functools.lru_cache(maxsize=16)
def is_proved(named: Named) -> bool:
    given = pair(*named)
    return given.proved(given.right.text).holds


def launches(fixtures: Sequence[str], targets: Sequence[str]) -> list[Named]:
    """All launches of goldens."""
    return [
        (name, number, target)
        for name in fixtures
        for target in targets
        if fixture_set.Fixture(fixture_set.ROOT / name).golden_file(target).exists()
        for number in range(len(fixture_set.Fixture(fixture_set.ROOT / name).launches()))
    ]


@dataclass(frozen=True)
class Try:
    """A launch, what is planted there, and the module with that."""

    named: Named
    planted: tuple[Fault, ...]

    @property
    def text(self) -> str:
        return self.planted[-1].text

    def __str__(self) -> str:
        what = (f"line {x.line}: {x.what}: {x.lines[x.line - 1].strip()[:100]}" for x in self.planted)
        return f"{'/'.join(map(str, self.named))} {'; '.join(what)}"


def every(named: Sequence[Named]) -> Iterator[Try]:
    """All single faults."""
    for one in named:
        if is_proved(one):
            for fault in faults(pair(*one).right.text):
                yield Try(one, (fault,))


def drawn(named: Sequence[Named], count: int, seed: int) -> Iterator[Try]:
    """Random ones. Launches are taken one after the other, so that few of them are compiled for few faults."""
    rng = random.Random(seed)
    each = max(1, min(100, count // 10))
    while count > 0:
        one = rng.choice(named)
        if not is_proved(one):
            continue
        text = pair(*one).right.text
        known = list(faults(text))
        for _ in range(min(each, count)):
            count -= 1
            first = rng.choice(known)
            if rng.randrange(TWO):
                yield Try(one, (first,))
            else:
                yield Try(one, (first, rng.choice(list(faults(first.text)))))


def of_random_kernels(seeds: range, targets: Sequence[str], seed: int) -> Iterator[Try]:
    """Faults of random kernels that are proved, each kernel for one of the targets in turn."""
    rng = random.Random(seed)
    for number in seeds:
        named = ("", number, targets[number % len(targets)])
        try:
            if not is_proved(named):
                continue
        except TranslationError:
            continue
        known = list(faults(pair(*named).right.text))
        for fault in rng.sample(known, min(OF_EACH, len(known))):
            yield Try(named, (fault,))


def outcome(tried: Try) -> str:
    """`refuted`, `not proved`, `proved` where the machine finds no difference, else one of WRONG; `no module`."""
    given = pair(*tried.named)
    try:
        verdict = given.proved(tried.text)
    except ParseError:
        return "no module"
    except Exception:  # whatever it is, it is counted and fails the run
        return "crash"
    if not verdict.holds:
        return verdict.word
    if any(fault.promised for fault in tried.planted):
        return WRONG[0]
    status = given.run(tried.text)
    if status not in ("mismatch", "hazard"):
        return f"proved, {status}"
    # What the machine says of the kernel without the fault, too, says nothing of the fault.
    return WRONG[0] if given.run(given.right.text) == "validated" else "proved, not judged"


def run(tries: Iterator[Try], seconds: float) -> tuple[Counter, list[str]]:
    """(how many came out how, what is wrong), in so many seconds of processor time."""
    begin, count, wrong = time.process_time(), Counter(), []
    for tried in tries:
        if time.process_time() - begin > seconds:
            break
        found = outcome(tried)
        count[found] += 1
        if found in WRONG:
            wrong.append(f"{found}: {tried}")
            print(wrong[-1], flush=True)
        if sum(count.values()) % EVERY == 0:
            print(words(count), file=sys.stderr, flush=True)
    return count, wrong


def words(count: Counter) -> str:
    """`210 refuted, 190 not proved`"""
    return ", ".join(f"{n} {word}" for word, n in count.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", metavar="FROM:TO")
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--fixtures", nargs="+", default=[f.name for f in fixture_set.fixtures()])
    parser.add_argument("-t", "--targets", nargs="+", default=list(fixture_set.TARGETS))
    given = parser.parse_args()
    if given.kernels:
        tries = of_random_kernels(range(*map(int, given.kernels.split(":"))), given.targets, given.seed)
    else:
        named = launches(given.fixtures, given.targets)
        tries = drawn(named, given.random, given.seed) if given.random else every(named)
    count, wrong = run(tries, given.seconds)
    print(words(count))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
