"""Thousands of random kernels: each is translated for one target and validated; all failures are listed, not only the first.

    python tests/validate/random_run.py --cases 2000 [--seed 1] [--kinds attention scans] [--save FOLDER]

Kernels that Triton itself does not compile for the target are counted apart. The exit status is 1 when anything fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE, HERE.parent, HERE.parent.parent) if str(p) not in sys.path]

import random_kernels  # noqa: E402
from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import fixture_set  # noqa: E402
from translator.diagnostics import InternalError, TranslationError  # noqa: E402
from translator.lowering.worker import WorkerPool  # noqa: E402
from translator.request import TranslateRequest  # noqa: E402

SECONDS = 600.0  # per step; a shared machine may be slow
KINDS = ("elementwise", "rows", "products", "loops_with_dots", "attention", "scans", "control")


def judge(pool: WorkerPool, case: random_kernels.RandomKernel, target: str, folder: Path) -> tuple[str, str]:
    """-> (status, what went wrong). `uncompiled` where Triton's own compile of the source fails."""
    source, out = folder / "kernel.py", folder / "out.py"
    source.write_text(case.text)
    try:
        translated = pool.call(
            "translator.translation:translate_kernel", TranslateRequest(str(source), target, launches=(case.spec,))
        )
        if translated.status != "translated":
            problems = [*translated.diagnostics, *(d for outcome in translated.outcomes for d in outcome.diagnostics)]
            return _or_uncompiled(pool, case, target, source, "refused", "; ".join(d.render() for d in problems[:2]))
        out.write_text(translated.text)
        found = pool.call("translator.validate:validate_launch", str(source), str(out), case.spec, target)
    except (TranslationError, InternalError) as error:
        return _or_uncompiled(pool, case, target, source, "crash", str(error))
    if found["status"] == "skipped":
        return _or_uncompiled(pool, case, target, source, "does not compile", found["reason"])
    return found["status"], found["reason"]


def _or_uncompiled(pool: WorkerPool, case, target: str, source: Path, status: str, why: str) -> tuple[str, str]:
    try:
        pool.call("translator.validate.stages:translated_stage", str(source), case.spec, target)
    except (TranslationError, InternalError):
        return "uncompiled", why
    return status, why


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--targets", nargs="+", default=list(fixture_set.TARGETS), choices=fixture_set.TARGETS)
    parser.add_argument("--save", type=Path, help="write failing kernels and their launch specs here")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    count: Counter = Counter()
    failed = 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary, WorkerPool(1, timeout=SECONDS) as pool:

        @seed(options.seed)
        @settings(
            max_examples=options.cases,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(
            kind=st.sampled_from(options.kinds),
            target=st.sampled_from(options.targets),
            data=st.data(),
        )
        def one(kind, target, data):
            nonlocal failed
            case = data.draw(getattr(random_kernels, kind)())
            status, why = judge(pool, case, target, Path(temporary))
            count[kind, status] += 1
            if status not in ("validated", "uncompiled"):
                failed += 1
                print(f"--- {failed}: {kind} {target} {status}: {why}\n{case.text}\n{case.spec}", flush=True)
                if options.save:
                    options.save.mkdir(parents=True, exist_ok=True)
                    name = f"{failed}-{kind}-{target}"
                    (options.save / f"{name}.py").write_text(case.text)
                    launch = vars(case.spec) | {"source": f"{name}.py"}
                    (options.save / f"{name}.json").write_text(json.dumps({"version": 1, "launches": [launch]}) + "\n")

        one()
    for (kind, status), number in sorted(count.items()):
        print(f"{kind:16s} {status:18s} {number}")
    print(f"{sum(count.values())} cases, {failed} failed, {time.monotonic() - started:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
