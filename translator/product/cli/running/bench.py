"""`gluonize bench`: time source and translation, or a folder of candidates, natively on this machine's AMD GPU."""

from __future__ import annotations

import glob
import os
import tempfile
from dataclasses import replace

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.results import write_json
from gluonize.product.cli.running.bundle import DeviceOptions, build, chosen_specs
from gluonize.product.project.output.file import launch_stems
from gluonize.product.project.output.overwrite import check_json
from gluonize.rules.targets import parse_targets

NO_GPU = "no AMD GPU found: libamdhip64 gives no device"


def run_bench(a: DeviceOptions, samples: int, json: str | None, verbosity: Verbosity) -> int:
    """Median, spread and ratio of both kernels; refuses a machine without an AMD GPU. a.out may be a folder."""
    from gluonize.judge.device import runner

    rows = parse_targets(a.target)
    check_json(json)
    folder = sorted(glob.glob(os.path.join(glob.escape(a.out), "*.py"))) if os.path.isdir(a.out) else []
    if folder and not a.source:
        raise TranslationError(Diagnostic("usage", f"{a.out} is a folder of candidates", help="give --source FILE"))
    timed = _timed(a, folder, rows)
    driver = runner.find_driver("hip")
    if driver is None:
        raise TranslationError(
            Diagnostic("no-gpu", NO_GPU, help="times are measured on the target only; see gluonize parity")
        )
    results, failed = [], False
    for out, spec, row in timed:
        try:
            entry = _bench_one(spec, replace(a, out=out), row.name, samples, runner)
        except TranslationError as error:
            print_diagnostics(error.diagnostics)
            entry, failed = {"failed": str(error)}, True
        failed |= "ratio" not in entry
        results.append({"id": spec.id, "kernel": spec.kernel, "target": row.name, "file": out, "bench": entry})
        if not verbosity.quiet and json != "-":
            name = f"{spec.id} {os.path.basename(out)}" if folder else spec.id
            rich_console(verbosity).print(line(name, row.name, entry), markup=False)
    if json:
        write_json(json, results)
    return exit_status.CHECK_FAILED if failed else exit_status.DONE


def _timed(a: DeviceOptions, folder: list[str], rows) -> list[tuple]:
    """(file, launch, target) of everything to time; candidates say launch and target in their names."""
    if not folder:
        return [(a.out, spec, row) for spec in chosen_specs(a, a.source or a.out) for row in rows]
    found = []
    for path in folder:
        specs = chosen_specs(replace(a, out=path), a.source)
        stems = launch_stems(spec.id for spec in specs)
        named = [(spec, row) for spec in specs for row in rows]
        own = [x for x in named if os.path.basename(path).startswith(f"{stems[x[0].id]}_{x[1].name}_")]
        found += [(path, spec, row) for spec, row in own]
    return found


def _bench_one(spec, a: DeviceOptions, target: str, samples: int, runner) -> dict:
    content = build(spec, a, target, "hip").content
    with tempfile.TemporaryDirectory(prefix="gluonize-bench-") as folder:
        path = os.path.join(folder, "bundle.zip")
        with open(path, "wb") as file:
            file.write(content)
        return times(runner.run_bundle(path, "hip", timed=samples), runner.Bundle(path).manifest)


def times(result: dict, manifest: dict) -> dict:
    """Times of source and translation in microseconds, their ratio, GB/s, and TFLOPS of a kernel with matrix products.

    The bytes are a lower bound of the traffic (each tensor once), so GB/s is one of the bandwidth. The operations are
    those of whole tiles.
    """
    entry = {"device": result["device"], "numbers": result["numbers"], "hazards": result["hazards"]}
    entry["bytes"] = sum(tensor["bytes"] for tensor in manifest["tensors"])
    for code in result["codes"]:
        if "microseconds" in code:
            timed = code["microseconds"]
            rates = {"GB/s": round(entry["bytes"] / timed["median"] / 1000.0, 3)}
            if manifest["flops"]:
                rates["TFLOPS"] = round(manifest["flops"] / timed["median"] / 1e6, 3)
            entry[code["of"]] = timed | rates
    if "source" in entry and "translation" in entry:
        entry["ratio"] = round(entry["translation"]["median"] / entry["source"]["median"], 4)
    return entry


def line(id: str, target: str, entry: dict) -> str:
    """`matmul/fp16 gfx942: 10.1 us (9.9 to 12), Triton 11.0 us (10.8 to 13), ratio 0.92`."""
    if "ratio" not in entry:
        return f"{id} {target}: not timed: {entry.get('failed') or entry['numbers']}"
    ours, theirs = entry["translation"], entry["source"]
    rate = "TFLOPS" if "TFLOPS" in ours else "GB/s"
    return (
        f"{id} {target}: {ours['median']} us ({ours['least']} to {ours['most']}), Triton {theirs['median']} us "
        f"({theirs['least']} to {theirs['most']}), ratio {entry['ratio']}, {ours[rate]} {rate}; numbers: {entry['numbers']}"
    )
