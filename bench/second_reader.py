"""What Python itself says of the names that kernels use, beside what the static reading took them for.

    python bench/second_reader.py FOLDER [MODULE...] [--only TEXT] [--stand-in NAME,...] [--json FILE] [-v]

FOLDER holds packages (`scoreboard.py fetch` brings those of the open corpus); every module in it that has jit functions is read
statically, then imported in a child process with the installed Triton. Every constant, helper and default that the reading took is
compared with what the function itself has. A module that cannot be imported is counted, and so is a name that the reading did
not take. `--stand-in torch` puts modules in the place of ones that are not installed; what is made of them is not compared.
The packages' host code runs: use a machine that you can do without.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from bench.second_reader_child import described
from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.unresolved_names import UnresolvedDefault
from gluonize.read.kernels.listing import list_kernels
from gluonize.read.kernels.load import load_kernel

CHILD = Path(__file__).with_name("second_reader_child.py")
AGREES, DIFFERS, NOT_TAKEN, NOT_SEEN = "agrees", "differs", "not taken", "not seen"
LONGEST_IMPORT = 120  # seconds


@dataclass(frozen=True)
class Taken:
    """A name that a jit function mentions, or one of its defaults, and what the reading took it for; "" where it took nothing.

    user: the function, `module:qualname`. default: whether `name` is one of its arguments.
    """

    user: str
    name: str
    default: bool
    value: str
    line: int = 0


@dataclass(frozen=True)
class Row:
    taken: Taken
    verdict: str
    python: str


def taken_by(source: str, search_path: Iterable[str], kernels: Iterable[str] = ()) -> list[Taken]:
    """Every name that the reading resolved, or did not, for the jit functions of a module."""
    out: dict[tuple[str, str, bool], Taken] = {}
    for name in kernels or [info.name for info in list_kernels(source, search_path)]:
        try:
            loaded = load_kernel(source, name, search_path=search_path)
        except TranslationError:
            continue
        for item in loaded.reached:
            out[item.user, item.name, False] = Taken(item.user, item.name, False, described(item.value), item.line)
        users = {item.user for item in loaded.reached}
        for diagnostic in loaded.unresolved.values():
            missed = diagnostic.message.split(" ")[0]
            for user in users:
                out.setdefault((user, missed, False), Taken(user, missed, False, "", diagnostic.line))
        functions = [loaded.fn, *(item.value for item in loaded.helpers)]
        for function in functions:
            user = f"{function.__module__}:{function.__qualname__}"
            for param in getattr(function, "params", ()):
                if param.has_default:
                    taken = "" if isinstance(param.default, UnresolvedDefault) else described(param.default)
                    out[user, param.name, True] = Taken(user, param.name, True, taken)
    return list(out.values())


def compare(module: str, taken: list[Taken], folders: Iterable[str], stand_ins: Iterable[str] = ()) -> list[Row]:
    """What Python has for each of them, when it has imported `module`. Raises: ImportError, with what Python said."""
    asked = {
        "module": module, "folders": list(folders), "stand_ins": list(stand_ins),
        "names": [(t.user, t.name, t.default) for t in taken],
    }  # fmt: skip
    try:
        child = subprocess.run(
            [sys.executable, str(CHILD)],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=LONGEST_IMPORT,
        )
    except subprocess.TimeoutExpired:
        raise ImportError(f"importing {module} takes longer than {LONGEST_IMPORT} s") from None
    if child.returncode:
        raise ImportError((child.stderr.strip().splitlines() or ["no message"])[-1])
    answers: list[Any] = json.loads(child.stdout.splitlines()[-1])
    return [Row(t, _verdict(t, answer), answer or "") for t, answer in zip(taken, answers)]


def _verdict(taken: Taken, answer: str | None) -> str:
    if answer is None or "stand-in" in answer:
        return NOT_SEEN
    if not taken.value:
        return NOT_TAKEN
    return AGREES if taken.value == answer else DIFFERS


def modules_of(folder: str, only: str) -> Iterator[str]:
    """The modules of a folder that have jit functions, by their dotted names."""
    for path in sorted(Path(folder).rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if only in name and all(part.isidentifier() for part in parts) and "jit" in path.read_text(errors="replace"):
            yield name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("module", nargs="*")
    parser.add_argument("--only", default="")
    parser.add_argument("--stand-in", default="")
    parser.add_argument("--json")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    stand_ins = [name for name in args.stand_in.split(",") if name]
    count: collections.Counter[str] = collections.Counter()
    rows: list[dict] = []
    for module in args.module or modules_of(args.folder, args.only):
        try:
            taken = taken_by(module, [args.folder])
        except TranslationError as error:
            count[f"not read: {error.diagnostics[0].code}"] += 1
            continue
        try:
            found = compare(module, taken, [args.folder], stand_ins)
        except ImportError as error:
            count["modules that cannot be imported"] += 1
            if args.verbose:
                print(f"{module}: {error}", flush=True)
            continue
        count["modules"] += 1
        for row in found:
            count[row.verdict] += 1
            if row.verdict == DIFFERS or args.verbose and row.verdict == NOT_TAKEN:
                what = "default " if row.taken.default else ""
                print(
                    f"{row.verdict}: {row.taken.user} {what}{row.taken.name}: {row.taken.value} | Python: {row.python}",
                    flush=True,
                )
            rows.append({"module": module, "verdict": row.verdict, **vars(row.taken), "python": row.python})
    for name, number in sorted(count.items()):
        print(f"{number:6} {name}")
    if args.json:
        Path(args.json).write_text(json.dumps({"count": count, "rows": rows}, indent=1) + "\n")
    return 1 if count[DIFFERS] else 0


if __name__ == "__main__":
    sys.exit(main())
