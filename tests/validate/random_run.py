"""Kernels of the generator by the thousand: each is translated and run beside its source; all failures are listed, not only the first.

    python tests/validate/random_run.py --seeds 0:1000 -t gfx950 [--state FILE] [--save FOLDER] [--minimize] [--kinds locks modes] [--untidy]

A seed is a kernel for ever. With several targets each kernel is judged for one of them in turn, or with --every-target for each. A run
with --state goes on where one with the same file stopped. Counted apart are sources that Triton itself does not compile,
those that leave their buffers, and faults that the product itself finds and Triton's own lowering of the source has, too (`as triton`). The exit status is 1 when anything fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE, HERE.parent, HERE.parent.parent) if str(p) not in sys.path]

import fixture_set  # noqa: E402
from kernelgen.draw import RandomKernel  # noqa: E402
from kernelgen.kernels import KINDS, kernel_of  # noqa: E402
from kernelgen.minimize import minimized  # noqa: E402
from kernelgen.saved import save  # noqa: E402
from kernelgen.untidy import untidied  # noqa: E402

from gluonize.diagnostics import InternalError, TranslationError  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402

SECONDS = 60.0  # of CPU time for one kernel
JOBS = 400  # kernels per child process
WRONG = ("mismatch", "hazard")
FAILED = ("mismatch", "hazard", "does not compile", "refused", "not runnable", "crash", "misread")


class Judges:
    """Child processes for judging and for Triton's interpreter. Use it as a context manager."""

    def __init__(self, interpreter: bool):
        self.pool = WorkerPool(1, timeout=SECONDS, max_jobs=JOBS)
        # Said before Triton is imported.
        other = os.environ | {"TRITON_INTERPRET": "1"}
        self.other = WorkerPool(1, timeout=SECONDS, max_jobs=JOBS, environment=other) if interpreter else None
        self.folder = tempfile.TemporaryDirectory(prefix="random-run-")

    def __enter__(self) -> Judges:
        return self

    def __exit__(self, *error) -> None:
        for pool in (self.pool, self.other):
            if pool is not None:
                pool.__exit__(*error)
        self.folder.cleanup()

    def judge(self, kernel: RandomKernel, target: str, lowering: bool = False) -> dict:
        """-> the fields of a `Verdict`; `crash` where the child died, `misread` where the interpreter thinks otherwise of the source,
        `as triton` where Triton's own lowering has the fault, too, and the product does not call its output validated.
        """
        try:
            verdict = self.pool.call("kernelgen.judge:judge", kernel, target, self.folder.name, lowering)
        except (TranslationError, InternalError) as error:
            return {"status": "crash", "reason": str(error)[-1500:], "launch": -1, "output": ""}
        found = asdict(replace(verdict, written=()))
        if verdict.status in WRONG and not lowering and self._triton_too(kernel, target, found):
            found["product"] = self.product_says(kernel, target, verdict.output)
            if not found["product"].startswith("validated"):
                found["status"] = "as triton"
        if lowering:
            return found
        if self.other is not None and verdict.status == "right":
            found["interpreted"], reason = self.opinion(kernel, verdict.written)
            if reason:
                found |= {"status": "misread", "reason": reason}
        return found

    def _triton_too(self, kernel: RandomKernel, target: str, found: dict) -> bool:
        """Whether Triton's own lowering of the source has the same fault."""
        theirs = self.judge(kernel, target, lowering=True)
        return theirs["status"] == found["status"] and _words(theirs["reason"]) == _words(found["reason"])

    def opinion(self, kernel: RandomKernel, written: tuple) -> tuple[str, str]:
        """-> (`agrees`, `none` or `differs`, how)."""
        try:
            reason = self.other.call("kernelgen.interpreted:opinion", kernel, self.folder.name, written)
        except (TranslationError, InternalError) as error:
            return "none: " + str(error).strip().splitlines()[-1][:100], ""
        return ("none", "") if reason == "?" else ("differs", reason) if reason else ("agrees", "")

    def product_says(self, kernel: RandomKernel, target: str, output: str) -> str:
        try:
            return self.pool.call("kernelgen.judge:product_says", kernel, target, self.folder.name, output)
        except (TranslationError, InternalError) as error:
            return f"crash: {error}"

    def smaller(self, kernel: RandomKernel, target: str, found: dict) -> RandomKernel:
        """The kernel with as little in it as shows the same fault."""
        if found["launch"] > 0:
            only = replace(kernel, launches=(kernel.launches[found["launch"]],))
            kernel = only if _alike(self.judge(only, target), found) else kernel
        return minimized(kernel, lambda k: _alike(self.judge(k, target), found))


def _alike(one: dict, other: dict) -> bool:
    """Whether both are the same fault, as far as a status and the code of a diagnostic tell."""
    return one["status"] == other["status"] and _code(one["reason"]) == _code(other["reason"])


def _words(reason: str) -> str:
    """A reason without its numbers."""
    return re.sub(r"[-\d.]+", "", reason)


def _code(reason: str) -> str:
    first = reason.partition("\n")[0]
    return first[first.rfind("[") :] if first.endswith("]") else ""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0:200", help="FIRST:END, or one number (default: %(default)s)")
    parser.add_argument("-t", "--target", default="all", help="several separated by commas, or all")
    parser.add_argument("--every-target", action="store_true", help="judge each kernel for all of the targets")
    parser.add_argument("--kinds", nargs="+", default=(), choices=KINDS)
    parser.add_argument("--untidy", action="store_true", help="each as written by people who have no formatter")
    parser.add_argument("--state", type=Path, help="one JSON line per kernel; those that are there are not run again")
    parser.add_argument("--save", type=Path, help="write failing kernels, their launches and outputs here")
    parser.add_argument("--minimize", action="store_true", help="make failing kernels smaller; with --save or printed")
    parser.add_argument(
        "--product", action="store_true", help="ask what the product's own validation says of failing ones"
    )
    parser.add_argument("--no-interpreter", action="store_true", help="no second opinion on the sources")
    parser.add_argument("--show", action="store_true", help="print the kernels of the seeds and do nothing else")
    return parser.parse_args()


def _plan(options: argparse.Namespace) -> list[tuple[int, str]]:
    first, _, end = options.seeds.partition(":")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    targets = fixture_set.TARGETS if options.target == "all" else options.target.split(",")
    if options.every_target:
        return [(seed, target) for seed in seeds for target in targets]
    return [(seed, targets[seed % len(targets)]) for seed in seeds]


def _kernel(seed: int, options: argparse.Namespace) -> RandomKernel:
    kernel = kernel_of(seed, tuple(options.kinds))
    return untidied(kernel, seed) if options.untidy else kernel


def _done(state: Path | None) -> dict[tuple[int, str], dict]:
    if state is None or not state.exists():
        return {}
    rows = [json.loads(line) for line in state.read_text().splitlines()]
    return {(row["seed"], row["target"]): row for row in rows}


def _save(folder: Path, name: str, kernel: RandomKernel, found: dict) -> None:
    save(folder, name, kernel)
    if found["output"]:
        (folder / f"{name}.output.py").write_text(found["output"])


def _report(judges: Judges, options, seed: int, target: str, kernel: RandomKernel, found: dict) -> None:
    print(
        f"--- {seed} {kernel.kind} {target} {found['status']} (launch {found['launch']}): {found['reason']}", flush=True
    )
    if options.product and found["output"]:
        found["product"] = judges.product_says(kernel, target, found["output"])
        print(f"the product says: {found['product']}")
    if options.minimize:
        kernel = judges.smaller(kernel, target, found)
        again = judges.judge(kernel, target)
        found = found | {"output": again["output"]}
        print(
            kernel.text, kernel.launches, kernel.spec.attrs, kernel.spec.options, again["reason"], sep="\n", flush=True
        )
    if options.save:
        _save(options.save, f"{seed}-{kernel.kind.replace(' ', '_')}-{target}", kernel, found)


def main() -> int:
    options = _options()
    done = _done(options.state)
    plan = _plan(options)
    if options.show:
        for seed, _ in plan:
            kernel = _kernel(seed, options)
            print(kernel.text, *kernel.launches, kernel.spec.attrs, kernel.spec.options, sep="\n")
        return 0
    count: Counter = Counter()
    started = time.monotonic()
    with Judges(not options.no_interpreter) as judges:
        for seed, target in plan:
            row = done.get((seed, target))
            if row is None:
                kernel = _kernel(seed, options)
                found = judges.judge(kernel, target)
                if found["status"] in FAILED:
                    _report(judges, options, seed, target, kernel, found)
                row = {"seed": seed, "target": target, "kind": kernel.kind}
                row |= {key: value for key, value in found.items() if key not in ("output", "written")}
                if options.state:
                    with options.state.open("a") as file:
                        file.write(json.dumps(row) + "\n")
            count[row["kind"], row["status"]] += 1
            count["launches"] += row.get("ran", 0)
            count["second opinions"] += row.get("interpreted") == "agrees"
    return _summary(count, time.monotonic() - started)


def _summary(count: Counter, seconds: float) -> int:
    launches, opinions = count.pop("launches", 0), count.pop("second opinions", 0)
    for (kind, status), number in sorted(count.items()):
        print(f"{kind:18s} {status:18s} {number}")
    failed = sum(number for (_, status), number in count.items() if status in FAILED)
    print(
        f"{sum(count.values())} kernels on {launches} launches, {opinions} second opinions; {failed} failed, {seconds:.0f} s"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
