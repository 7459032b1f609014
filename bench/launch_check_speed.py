"""Time that the checks of generated files take before each launch, in microseconds.

    python bench/launch_check_speed.py [-t gfx950]

Of the translations of the fixtures. A kernel is called with the values of its first launch, tensors stand for themselves: with
torch its own, without it objects whose methods are written in Python. The least of many short runs is shown, which other work on the
machine hardly changes; what Python takes to call a function with these arguments is part of it, and shown beside it.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import fixture_set  # noqa: E402
from gluonize.judge.inputs.inputs import DescriptorArgument, Tensor, make_inputs  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec, read_launches  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

CALLS, RUNS = 500, 100


class Stored:
    """A tensor for launch checks, where there is no torch."""

    dtype = "torch.float16"

    def untyped_storage(self) -> Stored:
        return self

    def size(self) -> int:
        return 4096

    def data_ptr(self) -> int:
        return 4096


def tensor() -> Any:
    return Stored() if torch is None else torch.zeros(64, dtype=torch.float16)


def seen(value: Any) -> Any:
    """An argument as host code passes it."""
    if isinstance(value, Tensor):
        return tensor()
    if isinstance(value, DescriptorArgument):
        return tensor(), tuple(value.shape), tuple(value.strides)
    return value


def hooks_of(path: Path) -> dict[str, tuple[Callable, list[str]]]:
    """What is called before launches of the kernels of a generated file, by their names, with the names of their arguments. A check that
    asks for the grid stands around `run`, and is not among them."""
    spec = importlib.util.spec_from_file_location(f"checked_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {}
    for name, value in vars(module).items():
        while not hasattr(value, "pre_run_hooks") and hasattr(value, "fn"):  # under autotune
            value = value.fn
        if getattr(value, "pre_run_hooks", None):
            found[name] = value.pre_run_hooks[0], value.arg_names
    return found


def microseconds(check: Callable, names: list[str], spec: LaunchSpec) -> float:
    """The time of one call, with what comes before the compile-time arguments by position."""
    given = {name: seen(value) for name, value in make_inputs(spec).arguments.items()} | spec.constexprs
    named = next((i for i, name in enumerate(names) if name.isupper() and name in spec.constexprs), len(names))
    positional = [given.pop(name) for name in names[:named]]
    options = given | spec.options | {"debug": False, "instrumentation_mode": ""}
    call = timeit.Timer(lambda: check(*positional, **options))
    return min(call.repeat(RUNS, CALLS)) / CALLS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-t", "--target", default="gfx950", choices=fixture_set.TARGETS)
    target = parser.parse_args().target
    rows = []
    for fixture in fixture_set.fixtures():
        path = fixture.golden_file(target)
        hooks = hooks_of(path) if path.exists() else {}
        for name, (hook, names) in hooks.items():
            launches = read_launches(str(fixture.launches_file))
            spec = next((s for s in launches if s.kernel.rpartition(".")[2] == name), None)
            if spec is not None:
                times = (microseconds(each, names, spec) for each in (hook, lambda *args, **kwargs: None))
                rows.append((name, *times))
    print(f"tensors: {'stand-ins' if torch is None else f'torch {torch.__version__}'}, Python {sys.version.split()[0]}")
    print("| kernel | us | of it the call |\n|---|---|---|")
    for name, own, empty in rows:
        print(f"| {name} | {own:.2f} | {empty:.2f} |")
    times = [own for _, own, _ in rows]
    print(f"| median of {len(rows)} | {statistics.median(times):.2f} | |\n| most | {max(times):.2f} | |")


if __name__ == "__main__":
    main()
