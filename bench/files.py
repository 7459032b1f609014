"""What becomes of files as they are: `gluonize translate FILE -t TARGET`, nothing else, and the outcomes counted.

    python bench/files.py FOLDER... [-t gfx950] [--sample N --seed 0] [--limit 120] [--out DIR] [--json FILE] [-v]
    python bench/files.py --show FILE

A FOLDER holds code bases, such as packages that were unpacked and not imported: each of its folders is one. Every module
in it that has Triton kernels is a case; `--sample` takes N, in turn from each code base, so that a large one does not count for all.
Files run one at a time. FILE is written after each, and one that exists is gone on with. `--show` prints the table of one again.

Exit status, kernels (translated; validated: every line ran and agreed, or the proof covers what did not) and launches that
stand in host code (served; named: said not to be served, or why it cannot be read) are counted by themselves.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

JIT = re.compile(r"^\s*@(?:\w+\.)*jit\b", re.MULTILINE)
GLUON = re.compile(r"^\s*@gluon\.jit\b", re.MULTILINE)
# From what a user wants to what must not happen.
BINS = (
    "validated",
    "translated",
    "launch not served",
    "stays Triton",
    "check failed",
    "in part",
    "refused",
    "no kernel",
    "no end",
    "wrong",
    "crash",
)
# Every kernel has a translation, which is not called wrong. One that "stays Triton" is one that Triton accepts in no launch that was tried.
WHOLE = ("validated", "translated", "launch not served")
DEAD_CODES = ("internal-error",)


def cases(folders: list[str]) -> dict[str, list[Path]]:
    """Modules with Triton kernels by code base, in the order of their paths."""
    found: dict[str, list[Path]] = collections.defaultdict(list)
    for folder in map(Path, folders):
        for path in sorted([folder] if folder.is_file() else folder.rglob("*.py")):
            text = path.read_text(errors="replace")
            if "triton" in text and len(JIT.findall(text)) > len(GLUON.findall(text)):
                parts = path.parts if folder.is_file() else path.relative_to(folder).parts
                found[parts[0] if len(parts) > 1 and not folder.is_file() else str(folder)].append(path)
    return found


def sample(found: dict[str, list[Path]], count: int, seed: int) -> list[Path]:
    rng = random.Random(seed)
    queues = []
    for name in sorted(found):
        paths = list(found[name])
        rng.shuffle(paths)
        queues.append(paths)
    out: list[Path] = []
    while len(out) < count and any(queues):
        out += [queue.pop() for queue in queues if queue]
    return out[:count]


def run(path: Path, target: str, limit: float, out: Path) -> dict[str, Any]:
    """One file as a user runs it. limit, processor: of all its processes, so that other work on the machine does not count; results: those of --json, none where the command did not get there."""
    stem = re.sub(r"\W+", "_", str(path.with_suffix("")))[-110:]
    results = out / f"{stem}.json"
    results.unlink(missing_ok=True)
    command = [str(Path(sys.executable).with_name("gluonize")), "translate", str(path), "-t", target]
    command += ["-o", str(out / f"{stem}.py"), "--json", str(results)]
    start = time.monotonic()
    with open(out / f"{stem}.log", "w") as log:
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        used: dict[int, float] = {}  # of each process, when it was last seen
        while (status := child.poll()) is None and sum(used.values()) < limit and time.monotonic() < start + 10 * limit:
            time.sleep(0.2)
            used |= processor_seconds(child.pid)
        if status is None:
            for process in used:
                _kill(process)
            child.wait()
    text = (out / f"{stem}.log").read_text()
    return {
        "file": str(path),
        "target": target,
        "status": status,
        "seconds": round(time.monotonic() - start, 1),
        "processor": round(sum(used.values()), 1),
        "results": json.loads(results.read_text())["results"] if results.exists() else [],
        "text": text,
    }


def processor_seconds(root: int) -> dict[int, float]:
    """What a process and those under it have used, from /proc: workers have sessions of their own."""
    parents, seconds = {}, {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            parents[int(entry.name)] = int(fields[1])
            seconds[int(entry.name)] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    found = {root}
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return {process: seconds[process] for process in found if process in seconds}


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kernels(case: dict[str, Any]) -> dict[str, str]:
    """What became of each kernel of a file, the worst of its launches: validated, in part, not validated, or its status."""
    order = ("validated", "in part", "not validated", "passed-over", "failed", "refused", "mismatch")
    out: dict[str, str] = {}
    for result in case["results"]:
        said = result["status"]
        if said == "translated":
            validation = result.get("validation") or {}
            whole = (validation.get("coverage") or {}).get("complete") or _proved(validation)
            said = "not validated"
            if validation.get("status") == "validated":
                said = "validated" if whole else "in part"
        before = out.get(result["kernel"], "validated")
        out[result["kernel"]] = max(said, before, key=lambda one: order.index(one) if one in order else len(order))
    return out


def _proved(validation: dict[str, Any]) -> bool:
    return str((validation.get("proof") or {}).get("status", "")).startswith("proved")


def launches(case: dict[str, Any]) -> dict[tuple[str, str, int], str]:
    """Each launch of host code once: its status."""
    found = {}
    for result in case["results"]:
        for launch in result.get("host_launches") or ():
            found[launch["kernel"], launch["file"], launch["line"]] = launch["status"]
    return found


def outcome(case: dict[str, Any]) -> str:
    """Its bin."""
    codes = {one["code"] for result in case["results"] for one in result["diagnostics"]}
    became = kernels(case)
    if case["status"] is None:
        return "no end"
    if case["status"] not in (0, 1, 2) or codes & set(DEAD_CODES) or not (case["results"] or case["status"] == 2):
        return "crash"
    if "mismatch" in became.values():
        return "wrong"
    if case["status"] == 2:
        if "source-no-kernels" in codes or "[source-no-kernels]" in case["text"]:
            return "no kernel"
        if set(became.values()) == {"passed-over"}:
            return "stays Triton"
        return "in part" if {"validated", "in part", "not validated"} & set(became.values()) else "refused"
    if case["status"] == 1:
        return "check failed" if {"failed", "refused"} & set(became.values()) else "launch not served"
    if "passed-over" in became.values():
        return "stays Triton"
    return "validated" if set(became.values()) <= {"validated"} else "translated"


def table(found: list[dict[str, Any]]) -> str:
    bins = collections.Counter(map(outcome, found))
    lines = [f"{len(found)} files: " + ", ".join(f"{bins[name]} {name}" for name in BINS if bins[name])]
    ends = [case for case in found if outcome(case) not in ("no kernel",)]
    whole = [case for case in ends if outcome(case) in WHOLE]
    lines.append(f"every kernel: {len(whole)} of {len(ends)} files with kernels ({_percent(len(whole), len(ends))})")
    became = collections.Counter(one for case in found for one in kernels(case).values())
    lines.append("kernels: " + ", ".join(f"{count} {name}" for name, count in became.most_common()))
    sites = collections.Counter(one for case in found for one in launches(case).values())
    lines.append("launches in host code: " + ", ".join(f"{count} {name}" for name, count in sites.most_common()))
    for name, key in (("seconds", "seconds"), ("of processor time", "processor")):
        if seconds := sorted(case[key] for case in ends if key in case):
            last = seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))]
            lines.append(f"{name}: median {statistics.median(seconds):.1f}, 95 % within {last:.1f}")
    codes = collections.Counter(
        one["code"] for case in found for result in case["results"] for one in result["diagnostics"]
    )
    lines.append("diagnostics: " + ", ".join(f"{count} {name}" for name, count in codes.most_common()))
    return "\n".join(lines)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folders", nargs="*", help="folders of code bases, or files")
    parser.add_argument("-t", "--target", default="gfx950")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many files; all where it is left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS", help="of processor time, for one file")
    parser.add_argument("--out", help="where outputs and logs go; a temporary folder where it is left out")
    parser.add_argument("--json", help="what became of each file")
    parser.add_argument("--show", metavar="FILE", help="print the table of what --json wrote")
    parser.add_argument("-v", "--verbose", action="store_true", help="what the command printed, too")
    arguments = parser.parse_args()
    if arguments.show:
        found = json.loads(Path(arguments.show).read_text())
        for case in found:
            print(_line(case))
        print(table(found))
        return
    chosen = cases(arguments.folders)
    paths = sorted(path for one in chosen.values() for path in one)
    if arguments.sample:
        paths = sample(chosen, arguments.sample, arguments.seed)
    found = []
    if arguments.json and os.path.exists(arguments.json):
        found = json.loads(Path(arguments.json).read_text())
    done = {(case["file"], case["target"]) for case in found}
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(arguments.out or scratch)
        out.mkdir(parents=True, exist_ok=True)
        for path in paths:
            if (str(path), arguments.target) in done:
                continue
            found.append(run(path, arguments.target, arguments.limit, out))
            print(_line(found[-1]), flush=True)
            if arguments.verbose:
                print(found[-1]["text"], flush=True)
            if arguments.json:
                Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def _line(case: dict[str, Any]) -> str:
    became = collections.Counter(kernels(case).values())
    return f"{outcome(case):18} {case['seconds']:6.1f} s  {case['file']}  " + ", ".join(
        f"{count} {name}" for name, count in became.items()
    )


if __name__ == "__main__":
    main()
