"""`gluonize doctor`: what works with the installed Triton. The compatibility part of the suite runs the same."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gluonize import __version__, triton_api
from gluonize.diagnostics import TranslationError
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.rules import gluon
from gluonize.versions import ANNOUNCED, NOT_INSTALLED, TRIED, release_of, triton_version

_SECONDS = 120
# What it takes of a kernel to need most of the tool: a masked tail, a reduction, a pipelined product.
PROBE = """import triton
import triton.language as tl


@triton.jit
def probe(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + columns[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    acc -= tl.max(acc, axis=1)[:, None]
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16), mask=mask)
"""


def _tensor(*shape: int) -> dict:
    size = shape[0] * shape[1]
    return {"tensor": {"dtype": "float16", "shape": [*shape], "stride": [shape[1], 1], "storage": size, "offset": 0}}


_POINTERS = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16"}
LAUNCH = {
    "id": "probe",
    "kernel": "probe",
    "source": "probe.py",
    "signature": _POINTERS | {"M": "i32", "N": "i32", "K": "i32", "BLOCK": "constexpr", "BLOCK_K": "constexpr"},
    "constexprs": {"BLOCK": 64, "BLOCK_K": 32},
    "attrs": {name: "D" for name in (*_POINTERS, "N", "K")},
    "options": {"num_warps": 4, "num_stages": 2},
    "grid": [2, 2],
    "values": {
        "a_ptr": _tensor(128, 96),
        "b_ptr": _tensor(96, 128),
        "c_ptr": _tensor(128, 128),
        "M": 128,
        "N": 128,
        "K": 96,
    },
}


@dataclass(frozen=True)
class Check:
    """What was tried, and why it does not work, "" where it does."""

    what: str
    wrong: str = ""


def run_doctor(targets: tuple[str, ...], as_json: str | None, verbosity: Verbosity) -> int:
    """Try every row and one kernel for each target, and say what works."""
    version = triton_version()
    checks = (
        [*row_checks(), *kernel_checks(targets)]
        if version != NOT_INSTALLED
        else [Check("triton", "it is not installed")]
    )
    if as_json:
        from gluonize.product.cli.results import write_json

        write_json(as_json, [{"what": c.what, "works": not c.wrong, "why": c.wrong} for c in checks])
        if as_json == "-":
            return _status(checks)
    console = rich_console(verbosity)
    console.print(f"gluonize {__version__}, Triton {version}: {told_of(version)}", highlight=False)
    for check in checks:
        mark = "ok   " if not check.wrong else "fails"
        console.print(
            f"  {mark} {check.what}" + (f": {check.wrong}" if check.wrong else ""), markup=False, highlight=False
        )
    return _status(checks)


def _status(checks: list[Check]) -> int:
    return exit_status.CHECK_FAILED if any(c.wrong for c in checks) else exit_status.DONE


def told_of(version: str) -> str:
    """What is known of a release."""
    release = release_of(version)
    if release in TRIED:
        return "the suite passes with this release"
    known = ANNOUNCED.get(release)
    return "not a release that gluonize was tried with; what fails below does not work" + (
        f" ({known})" if known else ""
    )


def row_checks() -> Iterator[Check]:
    """Every name of Triton's that the tool uses, one check per module; and Gluon's operations."""
    for found in pkgutil.iter_modules(triton_api.__path__):
        try:
            module = importlib.import_module(f"gluonize.triton_api.{found.name}")
        except TranslationError as error:  # it is made of a row of another module, which is named there
            yield Check(f"what {found.name} is made of", error.diagnostics[0].message)
            continue
        rows, missing = getattr(module, "ROWS", ()), []
        for row in rows:
            try:
                row.load()
            except TranslationError as error:
                missing.append(error.diagnostics[0].message)
        if rows:
            yield Check(f"{len(rows)} names of {found.name}", "; ".join(missing))
    missing = [f"{op.home[0]}.{op.name}" for op in gluon.OPS if not _is_there(op)]
    yield Check(f"{len(gluon.OPS)} operations of Gluon", f"missing: {', '.join(missing)}" if missing else "")
    wrong = [said for op in gluon.OPS if (said := other_parameters(op))]
    yield Check("their parameters", "; ".join(wrong))


def other_parameters(op: gluon.Op) -> str:
    """What the signature of an operation has otherwise than its row says, "" where nothing is known to differ."""
    version = triton_version()
    for found in _found(op):
        try:
            parameters = inspect.signature(found).parameters
        except (TypeError, ValueError):
            continue  # a class of values, or what is no function
        for name, default in op.parameters_in(version).items():
            if name not in parameters and default is not gluon.REQUIRED and release_of(version) not in TRIED:
                continue  # announced, and said by no output
            if name not in parameters:
                return f"{op.name} has no parameter {name}"
            if default is not gluon.REQUIRED and parameters[name].default != default:
                return f"{op.name} has {name}={parameters[name].default} and not {default}"
    return ""


def _found(op: gluon.Op) -> Iterator[object]:
    """An operation as the installed Gluon has it, in each module."""
    version = triton_version()
    name = op.name_in(version)
    for home in set(op.home) & set(gluon.MODULES) if name and "." not in name else ():
        for path in dict.fromkeys(gluon.MODULES[home].path_in(version).format(family=f) for f in gluon.FAMILIES):
            try:
                yield getattr(importlib.import_module(path), name)
            except (ImportError, AttributeError):
                continue


def _is_there(op: gluon.Op) -> bool:
    """Whether the installed Gluon has an operation that the table has for it; what no module is said to have is not looked for."""
    version = triton_version()
    name = op.name_in(version)
    if (
        not name
        or "." in name
        or op.name in gluon.BUILTIN_NAMES
        or op.name == gluon.IDENTITY
        or not set(op.home) & set(gluon.MODULES)
    ):
        return True
    for home in set(op.home) & set(gluon.MODULES):
        for family in gluon.FAMILIES:
            path = gluon.MODULES[home].path_in(version).format(family=family)
            if path and _has(path, name):
                return True
    return False


def _has(path: str, name: str) -> bool:
    owner, _, last = path.rpartition(".")
    try:
        return hasattr(importlib.import_module(path), name)
    except ImportError:
        try:
            return hasattr(getattr(importlib.import_module(owner), last), name)
        except (ImportError, AttributeError):
            return False


def kernel_checks(targets: tuple[str, ...]) -> Iterator[Check]:
    """The probe translated, compiled and validated by the command itself: for all targets at once, and where that fails for each, to
    say for which and why.
    """
    with tempfile.TemporaryDirectory(prefix="gluonize-doctor-") as folder:
        Path(folder, "probe.py").write_text(PROBE)
        Path(folder, "launches.json").write_text(json.dumps({"version": 1, "launches": [LAUNCH]}))
        fails = bool(_wrong_of(folder, targets))
        for target in targets:
            wrong = _wrong_of(folder, (target,)) if fails else ""
            yield Check(f"a product of matrices for {target}: translated, compiled, validated", wrong)


def _wrong_of(folder: str, targets: tuple[str, ...]) -> str:
    """What is said of translating the probe in a folder, "" where it is translated and nothing is wrong."""
    words = ["translate", "probe.py", "-l", "launches.json", "-t", ",".join(targets), "--no-cache", "-q"]
    command = [sys.executable, "-P", "-m", "gluonize.product.cli", *words]
    seconds = _SECONDS * len(targets)
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {seconds} s"
    there = all(Path(folder, f"probe_{target}.py").exists() for target in targets)
    return "" if done.returncode == 0 and there else _short(done.stdout)


def _short(text: str) -> str:
    return " ".join(text.split())[:300] or "nothing was written"
