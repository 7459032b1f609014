"""Guessed launches beside captured ones: how often a guess has the right pointer types and kinds of constants.

    python bench/derive.py LAUNCHES.json FOLDER [--only TEXT] [-j 1 | --cluster ADDRESS] [--json FILE] [-v]

LAUNCHES.json holds captured launches, FOLDER the packages that their sources are in. Every kernel of the file is derived as if
nothing was known of its launches; the guessed launch that agrees best is compared with each captured one.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from gluonize.diagnostics import InternalError, TranslationError
from gluonize.product.cluster.open_pool import open_pool
from gluonize.read.spec.launch import LaunchSpec

DERIVE = "gluonize.planned_launches:derived_unseen"


def constant_kind(value: Any) -> str:
    """`int`, `float`, `bool`, `str`, `None`, `dtype`, `jit`, `tuple`."""
    if isinstance(value, dict):
        marker, inner = next(iter(value.items()))
        return constant_kind(inner) if marker == "$constexpr" else marker.removeprefix("$")
    return "None" if value is None else type(value).__name__


def compare(guess: LaunchSpec, captured: dict) -> dict[str, list[tuple[str, str, str]]]:
    """(argument, captured, guessed) for every pointer, every constant and every run-time number of a captured launch."""
    out: dict[str, list[tuple[str, str, str]]] = {"pointer": [], "constant": [], "number": []}
    for name, kind in captured["signature"].items():
        ours = guess.signature.get(name, "missing")
        if isinstance(kind, str) and kind.startswith("*"):
            out["pointer"].append((name, kind, str(ours)))
        elif kind == "constexpr":
            what = constant_kind(captured["constexprs"].get(name))
            mine = constant_kind(guess.constexprs.get(name)) if ours == "constexpr" else _scalar_kind(str(ours))
            out["constant"].append((name, what, mine))
        else:
            mine = str(ours) if ours != "constexpr" else constant_kind(guess.constexprs.get(name))
            out["number"].append((name, _scalar_kind(str(kind)), _scalar_kind(mine)))
    return out


def _scalar_kind(kind: str) -> str:
    """Integers of all widths are one kind, and so is one that is a constant because it is 1."""
    if kind.startswith(("i", "u")) and kind not in ("i1", "u1"):
        return "int"
    return {"i1": "bool", "u1": "bool", "fp32": "float", "fp64": "float"}.get(kind, kind)


def pointer_class(kind: str) -> str:
    """What a pointer points to but for its width: host code mostly leaves it to its caller whether numbers are fp16, bf16 or fp32."""
    element = kind.removeprefix("*")
    if not kind.startswith("*"):
        return kind
    return (
        "float"
        if element in ("fp16", "bf16", "fp32")
        else "fp8" if element.startswith("fp8") else "bool" if element in ("i1", "u1") else element
    )


def agreement(rows: dict[str, list[tuple[str, str, str]]]) -> int:
    return sum(want == got for part in rows.values() for _, want, got in part)


def _share(counts: collections.Counter) -> str:
    return f"{100 * counts[True] / max(1, sum(counts.values())):.1f} % of {sum(counts.values())}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launches")
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--cluster", metavar="ADDRESS", help="as of gluonize translate")
    parser.add_argument("--json")
    parser.add_argument("-v", "--verbose", action="store_true")
    asked = parser.parse_args()
    with open(asked.launches, encoding="utf-8") as file:
        captured = json.load(file)["launches"]
    kernels = collections.defaultdict(list)
    for launch in captured:
        if asked.only in launch["id"]:
            kernels[launch["source"], launch["kernel"]].append(launch)
    total: dict[str, collections.Counter] = {part: collections.Counter() for part in ("pointer", "constant", "number")}
    classes: collections.Counter = collections.Counter()
    wrong, failed, seconds = [], [], []
    with open_pool(asked.jobs, 120.0, cached=False, cluster=asked.cluster) as pool:
        folder = os.path.abspath(asked.folder)
        jobs = [pool.submit(DERIVE, *names, (folder,), asked.target) for names in kernels]
        for (source, kernel), launches, job in zip(kernels, kernels.values(), jobs):
            try:
                found, taken = job.result()
                seconds.append(taken)
            except (TranslationError, InternalError) as error:
                text = (
                    error.diagnostics[0].why or error.diagnostics[0].message
                    if isinstance(error, TranslationError)
                    else str(error)
                )
                failed.append((source, kernel, text[-300:]))
                continue
            for launch in launches:
                rows = max((compare(spec, launch) for spec in found.launches), key=agreement)
                for part, entries in rows.items():
                    for name, want, got in entries:
                        total[part][want == got] += 1
                        if part == "pointer":
                            classes[pointer_class(want) == pointer_class(got)] += 1
                        if want != got:
                            wrong.append((part, source, kernel, name, want, got))
    report = {
        "kernels": len(kernels), "without a launch": len(failed), "seconds, median": sorted(seconds)[len(seconds) // 2] if seconds else 0.0,
        "pointers right but for the width of floats": _share(classes),
        **{f"{part}s right": _share(c) for part, c in total.items()},
    }  # fmt: skip
    for name, value in report.items():
        print(f"{name}: {value}")
    kinds = collections.Counter((part, want, got) for part, _, _, _, want, got in wrong)
    for (part, want, got), count in kinds.most_common(25):
        print(f"{count:5d}  {part}: captured {want}, guessed {got}")
    if asked.verbose:
        for row in wrong:
            print("  ", *row)
    for row in failed:
        print("no launch:", *row)
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"report": report, "wrong": wrong, "failed": failed}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
