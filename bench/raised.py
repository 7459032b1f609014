"""How faithful `gluonize raise` is: the last TTGIR of kernels raised, compiled again, and compared with the module's machine code; no GPU.

    python bench/raised.py [LAUNCHES.json FOLDER] [-t TARGETS] [--only ID] [--sample N] [--validate | --lift] [-j 2] [--out STEM]
    python bench/raised.py --modules PATH... [--sample N] [-j 2] [--out STEM]
    python bench/raised.py --sources FILE... [-t TARGETS] [-j 2] [--out STEM]

Triton compiles each launch of the fixtures (or of LAUNCHES.json, whose sources are modules in FOLDER) for each target; `--modules` takes
modules (`.ttgir`) that are there already, with `.amdgcn` and `.json` beside them as in Triton's cache, or folders of these; `--sources` files
whose launches are derived. Each module is
raised, and the raised file is compiled. Counted are: modules that are raised; of these those that compile; of these those whose machine code
is the module's, but for names and line tables; those that have the same instructions in another order; those within 2 % of the instructions;
and the time of raising. `--validate` compares with their modules, on the reference machine, those whose machine code is another. `--sample` takes so many of all
pairs of launch and target, drawn with a fixed seed. `--lift` counts another thing: modules with layouts, before loops are pipelined, are raised, and the
raised kernel is lifted to the Triton kernel that it computes, which is compared with the source on the reference machine. STEM.json (bench/results/raised by default) is written after each module and read
again at the start: what stands there is not done anew. STEM.md has the summary.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.launch_sets import TARGETS, chosen_units  # noqa: E402
from gluonize.diagnostics import InternalError, TranslationError  # noqa: E402
from gluonize.judge.lower.amdgcn import parse_instructions  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402
from gluonize.lift.kernel import lift_kernel  # noqa: E402
from gluonize.planned_launches import planned_launches  # noqa: E402
from gluonize.raised.cache import target_of  # noqa: E402
from gluonize.raised.kernel import raise_module  # noqa: E402
from gluonize.read.files.source_names import source_folders  # noqa: E402
from gluonize.read.kernels.load import load_kernel  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402

LOWER = "gluonize.judge.lower.jobs:lower_file"
VALIDATE = "gluonize.judge.verdict.run:validate_pair"
STAGE = "gluonize.trace.passes.stages:module_at"
CLOSE = 0.02
LIMITS = {"compile": 120, "validate": 300}  # seconds


@dataclass(frozen=True)
class Task:
    """One module: of a launch that is compiled for a target, or of a file."""

    name: str
    target: str
    source: str = ""
    spec: LaunchSpec | None = None
    search_path: tuple[str, ...] = ()
    file: Path | None = None


@dataclass(frozen=True)
class Module:
    """What Triton made of a kernel. values, grid: of the launch, where that is known."""

    ttgir: str
    amdgcn: str
    options: dict
    values: dict = field(default_factory=dict)
    grid: tuple = ()


def machine_code(assembly: str) -> list[str]:
    """The instructions; labels by their order, symbols under one name."""
    labels: dict[str, str] = {}
    out = []
    for line in parse_instructions(assembly):
        if line.label.startswith(".LBB"):
            labels.setdefault(line.label, f"L{len(labels)}")
        elif not line.label:
            out.append(f"{line.op} {line.operands}".strip())
    return [re.sub(r"\.L\w+|[A-Za-z_]\w*@\w+", lambda found: labels.get(found[0], "symbol"), one) for one in out]


def compared(own: list[str], module: list[str]) -> dict:
    """`same`, `order`, `close` or `far`, and by which instructions they differ."""
    if own == module:
        return {"code": "same"}
    mine, other = (Counter(line.split()[0] for line in side) for side in (own, module))
    share = len(own) / len(module) - 1
    kind = "order" if mine == other else "close" if abs(share) <= CLOSE else "far"
    differing = sorted(mine | other, key=lambda op: (-abs(mine[op] - other[op]), op))
    told = {op: mine[op] - other[op] for op in differing[:6] if mine[op] != other[op]}
    return {"code": kind, "share": round(share, 4), "more": told}


def module_of(task: Task, pool: WorkerPool) -> Module:
    """Compile, or read. Raises: TranslationError for what Triton does not compile."""
    if task.file is not None:
        told = task.file.with_suffix(".json")
        options = json.loads(told.read_text()) if told.exists() else {}
        code = next(path for path in map(task.file.with_suffix, (".amdgcn", ".s")) if path.exists())
        return Module(task.file.read_text(), code.read_text(), options)
    spec = task.spec
    made = pool.call(LOWER, task.source, spec, task.target, task.search_path, False, True, timeout=LIMITS["compile"])
    return Module(made.stages["ttgir"], made.stages["amdgcn"], spec.options, spec.values, spec.grid)


def measured(task: Task, pool: WorkerPool, validate: bool) -> dict:
    """What becomes of one module."""
    try:
        module = module_of(task, pool)
    except (TranslationError, InternalError) as error:
        return {"not a module": str(error).splitlines()[0].rpartition("/")[2]}
    found: dict = {"lines": module.ttgir.count("\n")}
    started = time.thread_time()
    try:
        raised = raise_module(module.ttgir, options=module.options)
    except TranslationError as error:
        return found | {"refused": error.diagnostics[0].message}
    found["seconds"] = round(time.thread_time() - started, 3)
    values = {name: value for name, value in module.values.items() if name in raised.spec.signature}
    spec = replace(raised.spec, values=values, grid=module.grid)
    with tempfile.TemporaryDirectory(prefix="gluonize-raised-") as folder:
        file = Path(folder, "raised.py")
        file.write_text(raised.text)
        try:
            made = pool.call(LOWER, str(file), spec, task.target, (), False, True, timeout=LIMITS["compile"])
        except (TranslationError, InternalError) as error:
            return found | {"does not compile": " ".join(str(error).split())[:300]}
    found |= compared(machine_code(made.stages["amdgcn"]), machine_code(module.amdgcn))
    if validate and found["code"] != "same":
        try:
            result = pool.call(
                VALIDATE, module.ttgir, made.stages["ttgir"], spec, with_variants=False, timeout=LIMITS["validate"]
            )
            found["verdict"] = result.status + (" bit for bit" if result.bitwise else "")
            found["why"] = result.reason
        except (TranslationError, InternalError) as error:
            found["verdict"] = str(error).splitlines()[0]
    return found


def lifted(task: Task, pool: WorkerPool) -> dict:
    """What becomes of one launch by way of a raised kernel, and of the Triton kernel that this is lifted to."""
    spec = task.spec
    assert spec is not None
    try:
        made = pool.call(
            LOWER, task.source, spec, task.target, task.search_path, False, True, timeout=LIMITS["compile"]
        )
        ttir, options = made.stages["ttir"], spec.options
        module = pool.call(STAGE, ttir, "layouts", task.target, options, timeout=LIMITS["compile"])
    except (TranslationError, InternalError) as error:
        return {"not a module": str(error).splitlines()[0].rpartition("/")[2]}
    with tempfile.TemporaryDirectory(prefix="gluonize-lifted-") as folder:
        file, again = Path(folder, "raised.py"), Path(folder, "lifted.py")
        step = "refused"
        try:
            raised = raise_module(module, options=options)
            file.write_text(raised.text)
            values = {name: value for name, value in spec.values.items() if name in raised.spec.signature}
            own = replace(raised.spec, source=str(file), target=f"hip:{task.target}", values=values, grid=spec.grid)
            step = "not lifted"
            again.write_text(lift_kernel(load_kernel(str(file), spec.kernel), own).text)
            step = "does not compile"
            own = replace(own, source=str(again), target="")
            code = pool.call(LOWER, str(again), own, task.target, (), False, True, timeout=LIMITS["compile"])
            step = "not compared"
            ttgir = made.stages["ttgir"]
            result = pool.call(
                VALIDATE, ttgir, code.stages["ttgir"], own, with_variants=False, timeout=LIMITS["validate"]
            )
        except (TranslationError, InternalError) as error:
            return {step: re.sub(r"/\S*/", "", " ".join(str(error).split()))[:300]}
    return {"verdict": result.status, "why": result.reason}


def tasks(a: argparse.Namespace) -> list[Task]:
    """What is asked for, in the order in which it is done."""
    out = []
    for path in a.modules:
        for file in sorted(path.rglob("*.ttgir")) if path.is_dir() else [path]:
            target = target_of(file.read_text())
            if target in TARGETS and any(file.with_suffix(end).exists() for end in (".amdgcn", ".s")):
                out.append(Task(f"{file.parent.name}/{file.stem}", target, file=file))
    if a.sources:
        for source in a.sources:
            try:
                found = planned_launches(
                    TranslateRequest(str(source), a.targets.split(",")[0], keep_going=True)
                ).launches
            except TranslationError as error:
                print(source, str(error).splitlines()[0])
                continue
            path = source_folders(str(source))
            out += [
                Task(f"{source.stem} {spec.id} {t}", t, str(source), spec, path)
                for spec in found
                for t in a.targets.split(",")
            ]
    elif not a.modules:
        for unit in chosen_units(a.folder, a.launches, a.only):
            for spec in unit.launches:
                wanted = [t for t in a.targets.split(",") if spec.target in ("", t)]
                out += [Task(f"{spec.id} {t}", t, unit.source, spec, unit.search_path) for t in wanted]
    if a.sample:
        random.Random(a.seed).shuffle(out)
        out = out[: a.sample]
    return out


def summary(found: dict[str, dict]) -> str:
    """A table of what is counted."""
    modules = [one for one in found.values() if "not a module" not in one]
    raised = [one for one in modules if "refused" not in one]
    compiled = [one for one in raised if "code" in one]
    codes = Counter(one["code"] for one in compiled)
    rows = [
        ("modules", len(modules), 0),
        ("raised", len(raised), len(modules)),
        ("of these, compile", len(compiled), len(raised)),
        ("of these, the same machine code", codes["same"], len(compiled)),
        ("the same instructions in another order", codes["order"], len(compiled)),
        ("within 2 % of the instructions", codes["close"], len(compiled)),
        ("further off", codes["far"], len(compiled)),
    ]
    verdicts = Counter(one["verdict"] for one in compiled if "verdict" in one)
    rows += [(f"verdict: {verdict}", count, sum(verdicts.values())) for verdict, count in verdicts.most_common()]
    lines = ["| | | |", "| --- | --- | --- |"]
    lines += [f"| {told} | {count} | {f'{100 * count / of:.1f} %' if of else ''} |" for told, count, of in rows]
    seconds = [one["seconds"] for one in raised if "seconds" in one]
    if seconds:
        lines.append(
            f"| seconds of a processor to raise, median | {statistics.median(seconds):.2f} | at most {max(seconds):.2f} |"
        )
    return "\n".join(lines) + "\n"


def lifted_summary(found: dict[str, dict]) -> str:
    """A table of how far modules come on the way back to Triton."""
    steps = Counter(one.get("verdict") or next(iter(one)) for one in found.values())
    rows = [f"| {step} | {count} | {100 * count / len(found):.1f} % |" for step, count in steps.most_common()]
    reasons = [
        f"- {name}: {', '.join(f'{key}: {told}' for key, told in one.items() if told)}"
        for name, one in sorted(found.items())
        if one.get("verdict") != "validated"
    ]
    return "\n".join(["| | | |", "| --- | --- | --- |", *rows, "", *reasons]) + "\n"


def page(found: dict[str, dict]) -> str:
    """The summary, and every module that is not raised to the same machine code."""
    lines = ["# What is raised", "", summary(found), "## Not the same machine code", ""]
    for name, one in sorted(found.items()):
        told = next((f"{key}: {one[key]}" for key in ("not a module", "refused", "does not compile") if key in one), "")
        if not told and one["code"] != "same":
            told = f"{one['code']}, {100 * one['share']:+.1f} %, " + ", ".join(
                f"{op} {n:+}" for op, n in one["more"].items()
            )
        if told:
            lines.append(f"- {name}: {told}")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launches", nargs="?", type=Path)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--modules", nargs="+", type=Path, default=[])
    parser.add_argument("--sources", nargs="+", type=Path, default=[])
    parser.add_argument("-t", "--targets", default=",".join(TARGETS))
    parser.add_argument("--only", default="", help="launches whose id contains this")
    parser.add_argument("--sample", type=int, default=0, help="so many of them, drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--validate", action="store_true", help="compare on the reference machine too")
    parser.add_argument("--lift", action="store_true", help="raise, lift to Triton, and compare with the source")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "raised")
    a = parser.parse_args()
    kept = a.out.with_suffix(".json")
    found: dict[str, dict] = json.loads(kept.read_text()) if kept.exists() else {}
    with WorkerPool(a.jobs) as pool, ThreadPoolExecutor(a.jobs) as threads:
        asked: list[tuple[Task, Future]] = [
            (task, threads.submit(lifted, task, pool) if a.lift else threads.submit(measured, task, pool, a.validate))
            for task in tasks(a)
            if task.name not in found
        ]
        for task, answer in asked:
            found[task.name] = answer.result()
            kept.write_text(json.dumps(found, indent=1) + "\n")
            print(task.name, {key: value for key, value in found[task.name].items() if key != "lines"}, flush=True)
    a.out.with_suffix(".md").write_text(lifted_summary(found) if a.lift else page(found))
    print(lifted_summary(found) if a.lift else summary(found), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
