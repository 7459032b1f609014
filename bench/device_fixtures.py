"""Every fixture on a real GPU: bundles are built where Triton is, and run where the GPU is.

    python bench/device_fixtures.py build --out DIR [--targets gfx942,gfx950] [--only NAME] [-j 2]
    python bench/device_fixtures.py run DIR --json FILE [-j 8]

`build` translates each launch of each fixture, and of the Gluon kernels for Hopper in fixtures/hopper, for each target and writes one
bundle per pair; on gfx1250 also of programs that are clusters of several workgroups, which the device runs as clusters of its own. Every pipelined one, and the
hand-written matmuls of tests/validate/kernels, comes with copies that have one synchronisation bug each: every wait removed
or weakened, every slot of a ring that a loop reads or fills exchanged for the next. What is refused is listed by name in
DIR/index.json.
`run` needs Python 3.10 and numpy only, runs each code object in a process of its own with a time limit, and keeps apart:
numbers match, no hazard found, what this cannot show.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("gfx942", "gfx950", "gfx1250", "gfx1100", "gfx1201")
PIPELINED = {  # hand-written kernel -> target
    "matmul_gfx942": "gfx942",
    "matmul_gfx950": "gfx950",
    "matmul_gfx1250": "gfx1250",
    "matmul_gfx1250_specialized": "gfx1250",
}
# Fixtures whose programs are launched as clusters too, and what has them.
CLUSTERS = ("vector_add", "softmax", "layer_norm", "cross_entropy", "matmul", "descriptor_matmul", "flash_attention")
CLUSTER_TARGET, CLUSTER_SIZES = "gfx1250", (2, 4)
STRATEGIES = {  # fixture -> (target, strategy)
    name: (("gfx1250", "warp-specialized"),) for name in ("matmul", "descriptor_matmul", "flash_attention")
}


def build(out: Path, targets: list[str], only: str, jobs: int, planted: bool) -> int:
    """Bundles of every fixture launch and target, and of the hand-written pipelined kernels."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "validate"), str(ROOT / "tests")]
    from gluonize.judge.lower.children.worker import WorkerPool

    out.mkdir(parents=True, exist_ok=True)
    index = _read_index(out)
    with WorkerPool(jobs, timeout=120) as pool:
        for case in [
            *_fixture_cases(targets),
            *_strategy_cases(targets),
            *_pipelined_cases(targets),
            *_hopper_cases(targets),
            *(_cluster_cases(out) if CLUSTER_TARGET in targets else ()),
        ]:
            if only not in case["name"]:
                continue
            started = time.monotonic()
            entry = _build_one(pool, out, case, planted)
            index[case["name"]] = entry
            print(
                f"{case['name']}: {entry.get('refused') or entry['file']} ({time.monotonic() - started:.1f} s)",
                flush=True,
            )
    (out / "index.json").write_text(json.dumps(dict(sorted(index.items())), indent=1) + "\n")
    size = sum(path.stat().st_size for path in out.glob("*.zip"))
    refused = sum("refused" in entry for entry in index.values())
    print(f"{len(index) - refused} bundles, {size / 2**20:.1f} MiB, {refused} refused")
    return 0


def _read_index(out: Path) -> dict:
    path = out / "index.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _fixture_cases(targets: list[str]):
    from bench.launch_sets import fixture_units

    for unit in fixture_units():
        for spec in unit.launches:
            for target in targets:
                name = f"{spec.id.replace('/', '-')}.{target}"
                yield {"name": name, "spec": spec, "source": unit.source, "target": target, "output": ""}


def _strategy_cases(targets: list[str]):
    """Fixtures once more with a strategy that changes their synchronisation."""
    from bench.launch_sets import fixture_units

    for unit in fixture_units():
        for spec in unit.launches:
            for target, strategy in STRATEGIES.get(spec.id.partition("/")[0], ()):
                if target in targets:
                    name = f"{spec.id.replace('/', '-')}.{target}.{strategy}"
                    yield {
                        "name": name, "spec": spec, "source": unit.source, "target": target, "output": "",
                        "strategy": strategy,
                    }  # fmt: skip


def _pipelined_cases(targets: list[str]):
    from dataclasses import replace

    from planted import KERNELS, matmul_launch

    for kernel, target in PIPELINED.items():
        if target in targets:
            # Four tiles of K, the last one partial, so that both slots are used again.
            spec = replace(matmul_launch(272, 208, 144 + 64), id=f"pipelined/{kernel}")
            files = {"source": str(KERNELS / "matmul.py"), "output": str(KERNELS / f"{kernel}.py")}
            yield {"name": f"pipelined-{kernel}.{target}", "spec": spec, "target": target, **files}


def _hopper_cases(targets: list[str]):
    """Kernels that are Gluon for the device itself: they run as they are, beside their translations."""
    from gluonize.read.spec.launch import read_launches

    folder = ROOT / "fixtures" / "hopper"
    for spec in read_launches(str(folder / "launches.json")):
        for target in targets:
            name = f"{spec.id.replace('/', '-')}.{target}"
            yield {"name": name, "spec": spec, "source": str(folder / "source.py"), "target": target, "output": ""}


def _cluster_cases(out: Path):
    """Fixtures, and small kernels of many kinds, as clusters of two and four workgroups."""
    from dataclasses import replace

    from bench.launch_sets import fixture_units
    from cluster_sources import SOURCES

    for count in CLUSTER_SIZES:
        for unit in fixture_units():
            for spec in unit.launches:
                if spec.id.partition("/")[0] in CLUSTERS:
                    name = f"{spec.id.replace('/', '-')}.{CLUSTER_TARGET}.{count}_ctas"
                    spec = replace(spec, options={**spec.options, "num_ctas": count})
                    yield {"name": name, "spec": spec, "source": unit.source, "target": CLUSTER_TARGET, "output": ""}
        for what, source in SOURCES.items():
            name = f"clusters-{what.replace(' ', '_')}.{CLUSTER_TARGET}.{count}_ctas"
            path = out / f"{name}.source.py"
            path.write_text(source.file)
            spec = replace(source.launch(count), id=f"clusters/{what}")
            yield {"name": name, "spec": spec, "source": str(path), "target": CLUSTER_TARGET, "output": ""}


def _build_one(pool, out: Path, case: dict, planted: bool) -> dict:
    from gluonize.judge.device.bundles.build import BundleRequest, build_bundle
    from gluonize.diagnostics import InternalError, TranslationError
    from gluonize.request import TranslateRequest

    spec, target = case["spec"], case["target"]
    entry = {"id": spec.id, "target": target}
    try:
        output = case["output"]
        if not output:
            request = TranslateRequest(
                source=case["source"], target=target, launches=(spec,), strategy=case.get("strategy")
            )
            result = pool.call(
                "gluonize.translation:translate_kernel", request, what=f"translating {spec.id} for {target}"
            )
            if not result.text:
                found = [*result.diagnostics, *(d for outcome in result.outcomes for d in outcome.diagnostics)]
                return entry | {"refused": "translation: " + "; ".join(d.message for d in found[:2])}
            path = out / f"{case['name']}.py"
            path.write_text(result.text)
            output = str(path)
        built = build_bundle(pool, BundleRequest(case["source"], output, spec, target, "cuda", planted))
    except TranslationError as error:
        first = error.diagnostics[0]
        return entry | {"refused": f"{first.message}: {first.why}" if first.why else first.message}
    except InternalError as error:
        return entry | {"refused": f"internal error: {str(error).strip().splitlines()[-1]}"}
    file = f"{case['name']}.zip"
    (out / file).write_bytes(built.content)
    return entry | {"file": file, "notes": list(built.notes)}


def run(folder: Path, destination: str, jobs: int, runs: int, limit: float) -> int:
    """Run every bundle of the folder; 1 when one that was not refused does not match or has a hazard."""
    runner = _runner()
    driver = runner.find_driver()
    if driver is None:
        print("no GPU found: neither libamdhip64 nor libcuda gives a device", file=sys.stderr)
        return 2
    index = _read_index(folder)
    todo = [entry for entry in index.values() if "file" in entry]

    def one(entry: dict) -> dict:
        return runner.run_bundle(str(folder / entry["file"]), driver.api, True, runs, 0, limit)

    started = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(one, todo))
    refused = [entry for entry in index.values() if "refused" in entry]
    report = {
        "device": driver.device,
        "driver": driver.version,
        "command": "python bench/device_fixtures.py " + " ".join(sys.argv[1:]),
        "summary": summary(results, refused),
        "refused": refused,
        "results": results,
        "seconds": round(time.monotonic() - started, 1),
    }
    Path(destination).write_text(json.dumps(report, indent=1) + "\n")
    for result in results:
        print(runner.show(result))
    print(json.dumps(report["summary"], indent=1))
    return (
        0
        if report["summary"]["ran"] == report["summary"]["numbers_match"] == report["summary"]["no_hazard_found"]
        else 1
    )


def summary(results: list[dict], refused: list[dict]) -> dict:
    """Counts, and by name what did not come out as it should."""
    sanitized, plain = _planted(results, sanitized=True), _planted(results, sanitized=False)
    by_sanitizer = {bug for bug, code in sanitized.items() if code["messages"]}
    by_numbers = {bug for bug, code in plain.items() if "failed" in code or code["matched"] < code["runs"]}
    return {
        "pairs": len(results) + len(refused),
        "ran": len(results),
        "refused": len(refused),
        "numbers_match": sum(r["numbers"].startswith("match") for r in results),
        "sources_that_match": sum(r["numbers_of_source"].startswith("match") for r in results),
        "sources_that_differ": [
            f"{r['id']} {r['target']}: {r['numbers_of_source']}"
            for r in results
            if not r["numbers_of_source"].startswith(("match", "not run"))
        ],
        "no_hazard_found": sum(r["hazards"] == "none found" for r in results),
        "numbers_differ": [
            f"{r['id']} {r['target']}: {r['numbers']}" for r in results if not r["numbers"].startswith("match")
        ],
        "hazards_found": [f"{r['id']} {r['target']}: {r['hazards']}" for r in results if r["hazards"] != "none found"],
        "planted_bugs": len(sanitized),
        "caught_by_sanitizer": len(by_sanitizer),
        "missed_by_sanitizer": [bug for bug in sanitized if bug not in by_sanitizer],
        "caught_by_numbers": len(by_numbers),
        "missed_by_both": [bug for bug in sanitized if bug not in by_sanitizer | by_numbers],
    }


def _planted(results: list[dict], sanitized: bool) -> dict[str, dict]:
    """The runs of planted bugs by name: with the sanitizer, or those whose numbers count."""
    return {
        f"{r['id']} {r['target']}: {code['planted']}": code
        for r in results
        for code in r["codes"]
        if code["planted"] and bool(code["sanitizer"]) is sanitized
    }


def _runner():
    """The runner as a module, without the package around it: nothing but numpy is needed."""
    sys.path.insert(0, str(ROOT / "translator" / "judge" / "device"))
    import runner

    return runner


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("build")
    make.add_argument("--out", required=True, type=Path)
    make.add_argument("--targets", default=",".join(TARGETS))
    make.add_argument("--only", default="", help="only names that contain this")
    make.add_argument("--no-planted", action="store_true")
    make.add_argument("-j", type=int, default=2)
    execute = commands.add_parser("run")
    execute.add_argument("folder", type=Path)
    execute.add_argument("--json", required=True)
    execute.add_argument("--runs", type=int, default=3)
    execute.add_argument("--timeout", type=float, default=60.0, help="seconds for one code object")
    execute.add_argument("-j", type=int, default=8)
    a = parser.parse_args()
    if a.command == "build":
        return build(a.out, a.targets.split(","), a.only, a.j, not a.no_planted)
    return run(a.folder, a.json, a.j, a.runs, a.timeout)


if __name__ == "__main__":
    sys.exit(main())
