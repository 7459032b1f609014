"""Mends that can be taken out, one at a time: the generator must find each fault again.

    python tests/validate/planted_reverts.py [--kernels 200] [NAME ...]

A revert replaces what a mend changed by what was there before, in the child process that translates; nothing on disk changes.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE, HERE.parent, HERE.parent.parent) if str(p) not in sys.path]


@dataclass(frozen=True)
class Revert:
    """`what` was wrong without the mend; patches: "module:attribute" -> what stands there instead; kinds of kernels that show it."""

    what: str
    patches: dict[str, Callable[[Any], Any]]
    kinds: tuple[str, ...]


def _by_spelling(operation_of):
    """An operation is known by the name that is written, whoever's function that is."""

    def spelled(call: ast.Call, callee: Any):
        from gluonize.facts.integers.operations import ARGUMENTS, Operation

        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in ARGUMENTS:
            return Operation(name, dict(zip(ARGUMENTS[name], call.args)))
        return operation_of(call, callee)

    return spelled


def _by_position(range_of_loop):
    """What a range is given by keyword is not seen."""

    def positional(call: ast.AST, callee: Any):
        if isinstance(call, ast.Call) and call.args:
            call = ast.Call(call.func, call.args, [])
        return range_of_loop(call, callee)

    return positional


def _unsound(**rules: Callable) -> Callable:
    """A table of rules with some of them exchanged."""
    return lambda table: {**table, **rules}


REVERTS = {
    "augmented": Revert(
        "the target of `x += c` is not taken for a use: what ran ahead in a pipelined loop is not moved back",
        {"gluonize.facts.webs:Web.reads": lambda old: property(lambda web: web.uses)},
        ("loops of products", "persistent", "modes", "locks"),
    ),
    "defaults": Revert(
        "a launch that leaves an argument to its default is neither checked nor thought of",
        {
            "gluonize.translation:given_numbers": lambda old: lambda specs, defaults: old(specs, {}),
            "gluonize.output.contracts.launch_checks:Checks.required": lambda old: lambda checks, asked: [
                one for one in old(checks, asked) if not any(re.search(rf"\b{n}\b", one.holds) for n in asked.defaults)
            ],
        },
        ("addresses",),
    ),
    "conversions": Revert(
        "a number keeps its range when it is converted to another width or sign",
        {"gluonize.facts.integers.known:converted": lambda old: lambda to, a: a},
        ("addresses",),
    ),
    "steps": Revert(
        "a step that is given by keyword is not seen: the index of a loop that goes down is taken for one that goes up",
        {"gluonize.facts.numbers.values:range_of_loop": _by_position},
        ("addresses",),
    ),
    "names": Revert(
        "a helper of the user's that is named as a builtin is taken for it",
        {"gluonize.facts.numbers.values:operation_of": _by_spelling},
        ("addresses",),
    ),
    "differences": Revert(
        "a difference of numbers that are not negative is not negative",
        {
            "gluonize.facts.integers.known:TRANSFER": _unsound(sub=lambda type, a, b: a),
            "gluonize.facts.integers.known:LINEAR": _unsound(sub=lambda a, b: a),
        },
        ("addresses",),
    ),
}


@contextlib.contextmanager
def without(name: str) -> Iterator[None]:
    """The translator without one mend."""
    saved = []
    for place, change in REVERTS[name].patches.items():
        module, _, path = place.partition(":")
        owner: Any = importlib.import_module(module)
        *outer, last = path.split(".")
        for part in outer:
            owner = getattr(owner, part)
        old = owner.__dict__[last]
        saved.append((owner, last, old))
        setattr(owner, last, change(old))
    try:
        yield
    finally:
        for owner, last, old in reversed(saved):
            setattr(owner, last, old)


def judge_without(name: str, kernel, target: str, folder: str):
    """`judge` in a translator that lacks a mend; runs in a child process."""
    from kernelgen.judge import judge

    with without(name):
        return judge(kernel, target, folder)


def found_again(judges, name: str, kernels: int) -> tuple[int, str] | None:
    """The first of so many kernels that is right with the mend and wrong without it, and how it is wrong."""
    from fixture_set import TARGETS
    from kernelgen.judge import SOUND, WRONG
    from kernelgen.kernels import kernel_of

    for seed in range(kernels):
        kernel, target = kernel_of(seed, REVERTS[name].kinds), TARGETS[seed % len(TARGETS)]
        found = judges.pool.call("planted_reverts:judge_without", name, kernel, target, judges.folder.name)
        if found.status in WRONG and judges.judge(kernel, target)["status"] == SOUND:
            return seed, f"{kernel.kind} on {target}: {found.status}: {found.reason}"
    return None


def main() -> int:
    from random_run import Judges

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(REVERTS), metavar="NAME", help=", ".join(REVERTS))
    parser.add_argument("--kernels", type=int, default=200, help="how many are tried at most (default: %(default)s)")
    options = parser.parse_args()
    missed = 0
    with Judges(interpreter=False) as judges:
        for name in options.names:
            found = found_again(judges, name, options.kernels)
            missed += found is None
            how = (
                f"not found in {options.kernels} kernels"
                if found is None
                else f"found by kernel {found[0]}, {found[1]}"
            )
            print(f"{name} ({REVERTS[name].what}): {how}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
