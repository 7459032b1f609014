"""`gluonize raise`: modules that Triton compiled as files of Gluon."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import typer
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics
from gluonize.product.project.output.file import write_whole
from gluonize.raised.cache import Entry, entries, target_of
from gluonize.raised.kernel import OPTIONS, Raised, raise_module
from gluonize.raised.together import together as raised_together
from gluonize.read.spec.launch import AMD_OPTIONS
from gluonize.trace.passes.stages import STAGES

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60))


def run_raise(
    file: str | None,
    out: str | None,
    cache: str | None,
    kernels: tuple[str, ...],
    stage: str,
    target: str | None,
    together: bool,
    verbosity: Verbosity,
) -> int:
    """Raise one module, or kernels of a cache, or list these. Raises: TranslationError, as `raise_module`; `raise-cache`."""
    if (file is None) == (cache is None):
        raise typer.BadParameter("give a FILE or --cache DIR")
    if stage not in STAGES:
        raise typer.BadParameter(f"--stage {stage}: there are {', '.join(STAGES)}")
    if together and len(kernels) != 1:
        raise typer.BadParameter("--together needs a cache, and the name of one kernel in it: --cache DIR -k NAME")
    if file is not None:
        if kernels:
            raise typer.BadParameter("-k names kernels of a cache; a FILE has one kernel")
        path = _module_in(Path(file))
        _write(_raised(path, _options(path), stage, target), out, verbosity)
        return exit_status.DONE
    assert cache is not None
    found = [entry for entry in entries(cache) if target in (None, entry.target)]
    there = dict.fromkeys(entry.kernel for entry in found)
    missing = [name for name in kernels if name not in there]
    if missing or not found:
        message = f"no kernel {''.join(missing[:1])} that Triton compiled".replace("  ", " ")
        message += f" for {target}" * (target is not None)
        help = f"there are {', '.join(there)}" if there else ""
        raise TranslationError(Diagnostic("raise-cache", message, cache, help=help))
    found = [entry for entry in found if not kernels or entry.kernel in kernels]
    if not kernels and out is None:
        for line in _listed(found):
            print(line)
        return exit_status.DONE
    if together:
        _write_together(found, out, stage, verbosity)
        return exit_status.DONE
    return _raise_all(found, out, kernels, stage, verbosity)


def _module_in(path: Path) -> Path:
    """A module, which may be named by its folder in a cache."""
    if not path.is_dir():
        return path
    inside = sorted(path.glob("*.ttgir"))
    if len(inside) != 1:
        help = f"for a cache: gluonize raise --cache {path}"
        raise TranslationError(
            Diagnostic("raise-module", f"{len(inside)} modules are in this folder", str(path), help=help)
        )
    return inside[0]


def _write_together(found: list[Entry], out: str | None, stage: str, verbosity: Verbosity) -> None:
    """Modules of one kernel that differ in tile sizes alone as one. Raises: TranslationError `raise-together` where they differ in more."""
    raised = [_raised(entry.path, entry.options, stage, numbers=True) for entry in found]
    alike = raised_together(raised)
    if alike is None:
        message = f"the {len(raised)} modules of {found[0].kernel} differ in more than tile sizes"
        help = "leave --together out: the newest one is raised; -t takes those of one target"
        raise TranslationError(Diagnostic("raise-together", message, help=help))
    text, each = alike
    if out is None:
        print(text, end="")
        return
    path = Path(out)
    write_raised(each[0], path, *each[1:])
    if not verbosity.quiet:
        print(f"{path}: {each[0].kernel} for {each[0].target}; its {len(each)} launches: {launches_path(path)}")


def _raised(path: Path, options: dict, stage: str, target: str | None = None, numbers: bool = False) -> Raised:
    """A module raised, at a stage of Triton's passes: those before the last are made again of the TTIR that lies beside it."""
    name = path.name
    if stage == "last" and path.suffix != ".ttir":
        return raise_module(_read(path), name=name, options=options, numbers=numbers)
    ttir = path.with_suffix(".ttir")
    if not ttir.exists():
        help = "raise a kernel of a cache, or what `gluonize compile --emit stages` writes"
        raise TranslationError(Diagnostic("raise-module", f"--stage {stage} needs the TTIR", str(ttir), help=help))
    told = target or options.get("arch") or (target_of(_read(path)) if path != ttir and path.exists() else None)
    if not told:
        help = "name it with -t gfx950"
        raise TranslationError(
            Diagnostic("raise-module", "nothing says for which target this is", str(ttir), help=help)
        )
    known = {key: value for key, value in options.items() if key in (*AMD_OPTIONS, *OPTIONS) and value is not None}
    with WorkerPool(1) as pool:
        text = pool.call("gluonize.trace.passes.stages:module_at", _read(ttir), stage, told, known)
    return raise_module(text, name=f"{name}, at the stage {stage!r}", options=options, numbers=numbers)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TranslationError(Diagnostic("raise-module", "cannot read the module", str(path), why=why or "")) from None


def _options(path: Path) -> dict:
    """How it was compiled, where that stands beside it as in Triton's cache."""
    try:
        return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _write(raised: Raised, out: str | None, verbosity: Verbosity) -> None:
    if out is None:
        print(raised.text, end="")
        return
    path = Path(out)
    write_raised(raised, path)
    if not verbosity.quiet:
        print(f"{path}: {raised.kernel} for {raised.target}; its launch: {launches_path(path)}")


def launches_path(path: Path) -> Path:
    """Where the launch of a raised kernel is."""
    return path.with_suffix(".launches.json")


def write_raised(raised: Raised, path: Path, *others: Raised) -> None:
    """Write a raised kernel, and its launch beside it; others: of the same text, of which the launches are written too."""
    write_whole(str(path), raised.text)
    specs = [{"source": path.name, **each.spec.as_json()} for each in (raised, *others)]
    write_whole(str(launches_path(path)), json.dumps({"version": 1, "launches": specs}, indent=2) + "\n")


def _raise_all(found: list[Entry], out: str | None, kernels: tuple[str, ...], stage: str, verbosity: Verbosity) -> int:
    """Kernels of a cache: the newest of one name into a file or to standard output, all of them into a folder."""
    if out is None or out.endswith(".py"):
        if len(kernels) != 1:
            raise typer.BadParameter("several kernels need a folder: -o FOLDER")
        newest = found[0]
        if not verbosity.quiet and len(found) > 1:
            print(f"of {len(found)} modules of {newest.kernel} the newest is raised: {newest.path}", file=sys.stderr)
        _write(_raised(newest.path, newest.options, stage), out, verbosity)
        return exit_status.DONE
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    taken: dict[str, int] = {}
    refused: list[Diagnostic] = []
    for entry in found:
        try:
            raised = _raised(entry.path, entry.options, stage)
        except TranslationError as error:
            refused += error.diagnostics
            continue
        name = f"{raised.kernel}_{raised.target}"
        taken[name] = taken.get(name, 0) + 1
        _write(raised, str(folder / f"{name}{f'_{taken[name]}' if taken[name] > 1 else ''}.py"), verbosity)
    print_diagnostics(refused)
    return exit_status.REFUSED if refused else exit_status.DONE


def _listed(found: list[Entry]) -> list[str]:
    """A table of kernels."""
    rows = [("kernel", "target", "pointers", "tile", "warps", "stages", "age", "folder")]
    for entry in found:
        told = (str(entry.options.get(name, "?")) for name in ("num_warps", "num_stages"))
        folder = entry.path.parent.name
        shown = f"{folder[:8]}*" if len(folder) > 16 else folder
        rows.append((entry.kernel, entry.target, entry.pointers, entry.tile, *told, _age(entry.made), shown))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]


def _age(made: float) -> str:
    seconds = max(0.0, time.time() - made)
    for unit, size in _UNITS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' * (count > 1)}"
    return "now"
