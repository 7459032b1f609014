"""Launches that differ in one thing from the one that a translation was made for: each must give the source's results, or be refused.

    python bench/other_launches.py [FOLDER [--launches FILE]] [-t gfx950] [--only ID] [--every N] [--state FILE] [--unnamed]

What differs: the element type of one tensor, its alignment, that it is there at all; the width of one integer, whether it is a multiple of 16;
one compile-time value; the number of warps. The file is the one that was written for the launch as it was. Each launch that comes out wrong is
listed, with --unnamed also each that is refused without a word on what the file was translated for. A run with --state goes on where one with the same file stopped.
The exit status is 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.launch_sets import Unit, chosen_units  # noqa: E402
from gluonize.diagnostics import InternalError, TranslationError  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec  # noqa: E402

SECONDS = 60.0  # of CPU time for one launch
OTHER_TYPES = {
    "fp16": "bf16",
    "bf16": "fp16",
    "fp32": "fp16",
    "i32": "i64",
    "i64": "i32",
    "u8": "i8",
    "i8": "u8",
    "fp8e4nv": "fp8e5",
}
WARPS = (1, 2, 4, 8)
UNNAMED = "refused, unnamed"  # without a word on what it was translated for
NO_LAUNCH = "no launch"  # Triton compiles the source for it no more than the translation
RIGHT = ("validated", "refused", "not_runnable", NO_LAUNCH)
# What a refusal says that is about the launch, not about the kernel.
NAMED = (" asserts ", "translated for", "in no translated launch", "refuses")


@dataclass(frozen=True)
class Other:
    """A launch that differs from one that was translated. what: in what."""

    what: str
    spec: LaunchSpec


@dataclass(frozen=True)
class Outcome:
    """How it ended: `validated`, `refused`, `not_runnable`, `no launch`; all else is wrong. why: the reason, or the refusal."""

    status: str
    why: str = ""

    @property
    def wrong(self) -> bool:
        """Whether the file gave something else than the source, or neither ran nor was refused."""
        return self.status not in RIGHT

    @property
    def unnamed(self) -> bool:
        """Whether it was refused without a word on what the file was translated for."""
        return self.status == "refused" and not any(words in self.why for words in NAMED)


def other_launches(spec: LaunchSpec) -> Iterator[Other]:
    """The launches that differ from `spec` in one thing."""
    for name, kind in spec.signature.items():
        if isinstance(kind, str) and kind.startswith("*"):
            yield from _other_tensors(spec, name, kind)
        elif kind in ("i32", "i64"):
            yield from _other_integers(spec, name, kind)
    for name, value in spec.constexprs.items():
        if spec.signature.get(name) == "constexpr" or name not in spec.signature:
            for other in _other_constants(value):
                changed = replace(spec, constexprs=spec.constexprs | {name: other})
                yield Other(f"{name}: {value} -> {other}", _with_value(changed, name, other))
    own = spec.options.get("num_warps", 4)
    for warps in WARPS:
        if warps != own:
            yield Other(f"num_warps: {own} -> {warps}", replace(spec, options=spec.options | {"num_warps": warps}))


def _other_tensors(spec: LaunchSpec, name: str, kind: str) -> Iterator[Other]:
    """A tensor of another type, one that starts elsewhere, and none."""
    if other := OTHER_TYPES.get(kind[1:]):
        changed = replace(spec, signature=spec.signature | {name: f"*{other}"})
        value = spec.values.get(name)
        if isinstance(value, dict) and "tensor" in value:  # its type is that of the signature
            changed = replace(changed, values=spec.values | {name: {"tensor": value["tensor"] | {"dtype": ""}}})
        yield Other(f"{name}: {kind} -> *{other}", changed)
    if "D" in (flags := str(spec.attrs.get(name, ""))):
        yield Other(f"{name} unaligned", replace(spec, attrs=spec.attrs | {name: flags.replace("D", "")}))
    none = replace(
        spec,
        signature=spec.signature | {name: "constexpr"},
        constexprs=spec.constexprs | {name: None},
        attrs=_without(spec, name),
    )
    yield Other(f"{name}: {kind} -> None", _with_value(none, name, None))


def _other_integers(spec: LaunchSpec, name: str, kind: str) -> Iterator[Other]:
    """An integer of another width, and one that is no multiple of 16."""
    other = OTHER_TYPES[kind]
    yield Other(f"{name}: {kind} -> {other}", replace(spec, signature=spec.signature | {name: other}))
    value = spec.values.get(name)
    if "D" in str(spec.attrs.get(name, "")) and isinstance(value, int) and value > 16:
        yield Other(
            f"{name}: {value} -> {value - 1}", _with_value(replace(spec, attrs=_without(spec, name)), name, value - 1)
        )


def _other_constants(value: Any) -> list[Any]:
    """Other values of a compile-time parameter."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value * 2, max(value // 2, 1)] if value > 1 else [value + 1]
    if isinstance(value, dict) and (other := OTHER_TYPES.get(value.get("$dtype", ""))):
        return [{"$dtype": other}]
    return []


def _without(spec: LaunchSpec, name: str) -> dict[str, Any]:
    """The flags of all arguments but one."""
    return {key: flags for key, flags in spec.attrs.items() if key != name}


def _with_value(spec: LaunchSpec, name: str, value: Any) -> LaunchSpec:
    """The launch with another value of an argument, where it has values."""
    return replace(spec, values=spec.values | {name: value}) if name in spec.values else spec


def outcome(pool: WorkerPool, unit: Unit, output: str, spec: LaunchSpec, target: str) -> Outcome:
    """How the file `output` does with a launch."""
    arguments = unit.source, output, spec, target, unit.search_path, False, None, False
    try:
        found = pool.call("gluonize.judge.verdict:validate_launch", *arguments)
    except TranslationError as error:
        diagnostic = error.diagnostics[0]
        return Outcome("refused", f"{diagnostic.message}: {diagnostic.why}")
    except InternalError as error:
        return Outcome("crash", str(error))
    status, why = found["status"], str(found.get("reason", ""))
    if status == "skipped":
        status = NO_LAUNCH if f"({target}, ttir) does not compile" in why else "refused"
    return Outcome(status, why)


def translated(pool: WorkerPool, unit: Unit, target: str, folder: Path) -> str | None:
    """The file that the launches of a unit become, in `folder`; None where they are refused."""
    try:
        result = pool.call("gluonize.translation:translate_kernel", unit.request(target))
    except (TranslationError, InternalError) as error:
        print(f"{unit.launches[0].id}: not translated: {error}", flush=True)
        return None
    if result.text is None:
        return None
    path = folder / "translated.py"
    path.write_text(result.text)
    return str(path)


def judged(pool: WorkerPool, unit: Unit, output: str, target: str) -> Iterator[tuple[Other, Outcome]]:
    """Each other launch of a unit of one launch, with how the file `output` does."""
    (spec,) = unit.launches
    for other in other_launches(spec):
        yield other, outcome(pool, unit, output, other.spec, target)


def units_of_one(units: list[Unit]) -> list[Unit]:
    """One unit for each launch."""
    return [replace(unit, launches=(spec,)) for unit in units for spec in unit.launches]


def main() -> int:
    """Run; -> the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--launches", type=Path)
    parser.add_argument("-t", "--target", default="gfx950")
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--unnamed", action="store_true")
    options = parser.parse_args()
    done = json.loads(options.state.read_text()) if options.state and options.state.exists() else {}
    units = units_of_one(chosen_units(options.folder, options.launches, options.only))[:: options.every]
    with WorkerPool(1, timeout=SECONDS) as pool, tempfile.TemporaryDirectory(prefix="other-launches-") as folder:
        for unit in units:
            (spec,) = unit.launches
            output = None if spec.id in done else translated(pool, unit, options.target, Path(folder))
            if output is None:
                continue
            counts: Counter[str] = Counter()
            for other, found in judged(pool, unit, output, options.target):
                counts[UNNAMED if found.unnamed else found.status] += 1
                if found.wrong or found.unnamed and options.unnamed:
                    print(f"{spec.id}: {other.what}: {found.status}: {found.why[-400:]}", flush=True)
            done[spec.id] = dict(counts)
            print(spec.id, dict(counts), flush=True)
            if options.state:
                options.state.write_text(json.dumps(done, indent=1) + "\n")
    total = sum((Counter(counts) for counts in done.values()), Counter())
    print(f"{len(done)} launches, {sum(total.values())} others: {dict(total)}")
    return int(any(status not in RIGHT for status in total if status != UNNAMED))


if __name__ == "__main__":
    sys.exit(main())
