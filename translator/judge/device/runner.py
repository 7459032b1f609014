"""Runs a bundle on the GPU of this machine: `python BUNDLE.zip`, or `python runner.py BUNDLE.zip`.

Needs Python 3.10, numpy and the module `gpu_driver.py` beside it, nothing else: both travel inside every bundle. Each code object
runs in a process of its own with a time limit, because a sanitizer traps and a broken kernel may hang.

The result (JSON) keeps three lines apart: `numbers` (outputs match the expected ones), `hazards` (what the compiler's
concurrency sanitizer found) and `cannot_show` (what this device cannot tell about the target).
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import os
import re
import statistics
import subprocess
import sys
import time
import zipfile

import numpy as np

if __package__:
    from gluonize.judge.device.gpu_driver import APIS, DeviceError, Driver, find_driver
else:  # started as a script: from a bundle, or from this folder
    from gpu_driver import APIS, DeviceError, Driver, find_driver

FORMAT = 1
MARK = "gluonize-result:"
RUNS, TIMED_RUNS, LIMIT = 3, 20, 60.0
POISON_BLOCKS = 1024
# fp8 name -> (mantissa bits, exponent bias, code of infinity or None, codes of NaN)
FLOAT8 = {
    "f8E4M3FN": (3, 7, None, (0x7F, 0xFF)),
    "f8E5M2": (2, 15, 0x7C, (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)),
    "f8E4M3FNUZ": (3, 8, None, (0x80,)),
    "f8E5M2FNUZ": (2, 16, None, (0x80,)),
}


def decode(bits: np.ndarray, element: str) -> np.ndarray:
    """The bits as stored -> numbers (float64 for floats, else as they are)."""
    if element == "bf16":
        with np.errstate(invalid="ignore"):
            return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if element in FLOAT8:
        mantissa, bias, infinity, nans = FLOAT8[element]
        code = np.arange(256)
        exponent, fraction = (code & 0x7F) >> mantissa, (code & ((1 << mantissa) - 1)) * 2.0**-mantissa
        value = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - float(bias)))
        value = np.where(code & 0x80, -value, value)
        if infinity is not None:
            value[infinity], value[infinity | 0x80] = np.inf, -np.inf
        value[list(nans)] = np.nan
        return value[bits]
    return bits.astype(np.float64) if bits.dtype.kind == "f" else bits


def compare(found: np.ndarray, tensor: dict, arrays: dict) -> dict:
    """One tensor after a run: elements the kernel writes within tolerance, all others untouched."""
    initial, expected = arrays[tensor["initial"]].reshape(-1), arrays[tensor["expected"]].reshape(-1)
    chosen = np.unpackbits(arrays[tensor["written"]], count=initial.size).astype(bool)
    racing = np.unpackbits(arrays[tensor["racing"]], count=initial.size).astype(bool)
    found = found.reshape(-1)
    whole = f"u{initial.itemsize}"
    outside = ~chosen & ~racing & (found.view(whole) != initial.view(whole))
    chosen &= ~racing
    a, b = decode(expected[chosen], tensor["element"]), decode(found[chosen], tensor["element"])
    same = expected[chosen].view(whole) == found[chosen].view(whole)
    error = 0.0
    if a.dtype.kind == "f":
        same |= (a == b) | (np.isnan(a) & np.isnan(b))
        finite = np.isfinite(a) & np.isfinite(b)
        with np.errstate(all="ignore"):
            difference = np.where(finite, np.abs(a - b), np.inf)
        size = np.abs(np.where(finite, a, 0.0))
        wrong = ~same & (difference > tensor["rtol"] * size + tensor["atol"])
        if wrong.sum() <= tensor["flips"] * wrong.size:
            wrong &= difference > tensor["flip_rtol"] * size + tensor["flip_atol"]
        error = float(difference[finite].max()) if finite.any() else 0.0
    else:
        wrong = ~same
    first = int(np.flatnonzero(wrong)[0]) if wrong.any() else -1
    out = {"name": tensor["name"], "compared": int(chosen.sum()), "equal": int(same.sum()), "wrong": int(wrong.sum())}
    out |= {"written_outside": int(outside.sum()), "largest_difference": error}
    if first >= 0:
        out |= {"first": int(np.flatnonzero(chosen)[first]), "expected": str(a[first]), "found": str(b[first])}
    return out


class Bundle:
    """A bundle file: its manifest and its arrays."""

    def __init__(self, path: str):
        self.path = path
        self.zip = zipfile.ZipFile(path)
        self.manifest = json.loads(self.zip.read("manifest.json"))
        if self.manifest.get("format") != FORMAT:
            raise SystemExit(f"{path}: a bundle of format {self.manifest.get('format')}; this runner knows {FORMAT}")

    def array(self, name: str) -> np.ndarray:
        return np.load(io.BytesIO(self.zip.read(name)), allow_pickle=False)

    def codes(self, kind: str, planted: bool) -> list[dict]:
        codes = [c for c in self.manifest["codes"] if c["kind"] == kind]
        return [c for c in codes if planted or not c["planted"]]


def parameters(
    bundle: Bundle, code: dict, driver: Driver, pointers: dict[str, int], scratch: tuple[int, int]
) -> list[bytes]:
    """The bytes of each parameter: the kernel's, then global and profile scratch."""
    out = []
    for argument in code.get("arguments") or bundle.manifest["arguments"]:
        if argument["kind"] == "tensor":
            address = pointers[argument["tensor"]] + argument["offset"]
            encoded = (
                driver.tensor_map(address, argument["map"]) if "map" in argument else address.to_bytes(8, "little")
            )
            out.append(encoded)
        else:
            out.append(bytes.fromhex(argument["bytes"]))
    return out + [pointer.to_bytes(8, "little") for pointer in scratch]


def run_code(bundle: Bundle, code: dict, driver: Driver, runs: int, timed: int) -> dict:
    """Run one code object `runs` times from poisoned memory, compare, and time it."""
    manifest = bundle.manifest
    tensors = manifest["tensors"]
    arrays = {t[key]: bundle.array(t[key]) for t in tensors for key in ("initial", "expected", "written", "racing")}
    pointers = {t["name"]: driver.allocate(arrays[t["initial"]].nbytes) for t in tensors}
    programs, ctas = int(np.prod(code["grid"])), code.get("ctas", 1)
    sizes = [code[key] * programs * ctas for key in ("global_scratch", "profile_scratch")]
    scratch = tuple(driver.allocate(size) if size else 0 for size in sizes)
    function = driver.function(bundle.zip.read(code["file"]), code["symbol"], code["shared"], ctas)
    poison = next((p for p in manifest["poison"] if p["kind"] == driver.kind), None)
    poisoner = driver.function(bundle.zip.read(poison["file"]), poison["symbol"], poison["shared"]) if poison else None
    values = parameters(bundle, code, driver, pointers, scratch)

    def prepare() -> None:
        for t in tensors:
            driver.upload(pointers[t["name"]], arrays[t["initial"]])
        for pointer, size in zip(scratch, sizes):
            if size:
                driver.upload(pointer, np.zeros(size, np.uint8))
        if poisoner:
            nothing = [pointers[tensors[0]["name"]].to_bytes(8, "little"), bytes(4), bytes(8), bytes(8)]
            driver.launch(poisoner, (POISON_BLOCKS, 1, 1), poison["block"], poison["shared"], nothing)
        driver.synchronize()

    def launch() -> None:
        driver.launch(function, code["grid"], code["block"], code["shared"], values, ctas)

    matched, results, failed = 0, [], None
    for _ in range(runs):
        prepare()
        if programs:
            launch()
        driver.synchronize()
        results = [compare(driver.download(pointers[t["name"]], arrays[t["initial"]]), t, arrays) for t in tensors]
        wrong = any(r["wrong"] or r["written_outside"] for r in results)
        matched += not wrong
        if wrong and failed is None:
            failed = results
    out = {"runs": runs, "matched": matched, "tensors": failed or results, "poisoned_lds": bool(poisoner)}
    if matched == runs and timed and programs and not code["sanitizer"]:
        prepare()
        launch()
        out["microseconds"] = timing([driver.microseconds(launch) for _ in range(timed)])
    return out


def timing(samples: list[float]) -> dict:
    """Median and spread of the samples, in microseconds."""
    ordered = sorted(samples)
    return {
        "median": round(statistics.median(ordered), 3),
        "least": round(ordered[0], 3),
        "most": round(ordered[-1], 3),
        "samples": len(ordered),
    }


def child(path: str, name: str, api: str, runs: int, timed: int) -> None:
    """Run one code object in this process and print its result after MARK."""
    bundle = Bundle(path)
    code = next(c for c in bundle.manifest["codes"] if c["name"] == name)
    try:
        driver = Driver(api)
        out = {"device": driver.device, "driver": driver.version} | run_code(bundle, code, driver, runs, timed)
    except (DeviceError, OSError, AttributeError) as error:
        out = {"failed": f"{type(error).__name__}: {error}" if not isinstance(error, DeviceError) else str(error)}
    ctypes.CDLL(None).fflush(None)  # what the driver printed of a trap
    print(MARK + json.dumps(out), flush=True)
    os._exit(0)  # a context that has trapped cannot be torn down in order


def run_child(path: str, code: dict, api: str, runs: int, timed: int, limit: float) -> dict:
    """`child` in a process of its own."""
    own = os.path.abspath(__file__)  # inside the bundle when the bundle itself was started
    command = [sys.executable, own, path] if os.path.isfile(own) else [sys.executable, path]
    command += ["--child", code["name"], "--device", api, "--runs", str(runs), "--timed", str(timed)]
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit)
        printed = done.stdout + done.stderr
        found = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
        out = (
            json.loads(found[-1][len(MARK) :])
            if found
            else {"failed": f"the process ended with status {done.returncode}"}
        )
    except subprocess.TimeoutExpired as error:
        printed = "".join(
            part.decode(errors="replace") if isinstance(part, bytes) else part or ""
            for part in (error.stdout, error.stderr)
        )
        out = {"failed": f"it ran longer than {limit:g} s", "hangs": True}
    messages = sorted(set(re.findall(r"Assertion `([^`]*?)[`'] failed", printed)))
    head = {key: code[key] for key in ("name", "of", "sanitizer", "planted")}
    if "failed" in out and not messages:
        out["printed"] = printed.replace(MARK, "")[-600:]
    return head | out | {"messages": messages, "seconds": round(time.monotonic() - started, 2)}


def numbers_line(result: dict | None) -> str:
    if result is None:
        return "not run"
    if "failed" in result:
        return f"failed: {result['failed']}"
    if result["matched"] == result["runs"]:
        return f"match in {result['runs']} of {result['runs']} runs"
    return f"differ in {result['runs'] - result['matched']} of {result['runs']} runs"


def hazards_line(result: dict | None) -> str:
    if result is None:
        return "not run"
    if result["messages"]:
        return f"found: {'; '.join(result['messages'])}"
    if "failed" in result:
        return f"failed: {result['failed']}"
    return "none found"


def run_bundle(
    path: str, api: str, planted: bool = False, runs: int = RUNS, timed: int = TIMED_RUNS, limit: float = LIMIT
) -> dict:
    """Run the code objects of a bundle that the driver `api` takes; -> the JSON result."""
    bundle = Bundle(path)
    manifest = bundle.manifest
    kind = APIS[api][3]
    results = [
        run_child(path, code, api, runs if not code["sanitizer"] else 1, timed, limit)
        for code in bundle.codes(kind, planted)
    ]
    good = [r for r in results if not r["planted"] and r["of"] == "translation"]
    plain = next((r for r in good if not r["sanitizer"]), None)
    sanitized = next((r for r in good if r["sanitizer"]), None)
    source = next((r for r in results if r["of"] == "source" and not r["sanitizer"]), None)
    sanitized_source = next((r for r in results if r["of"] == "source" and r["sanitizer"]), None)
    return {
        "id": manifest["id"],
        "target": manifest["target"],
        "device": next((r["device"] for r in results if "device" in r), ""),
        "driver": next((r["driver"] for r in results if "driver" in r), 0),
        "ran_as": manifest["ran_as"][kind],
        "numbers": numbers_line(plain),
        "numbers_of_source": numbers_line(source),
        "hazards_of_source": hazards_line(sanitized_source),
        "source_ran_as": manifest.get("source_ran_as") or "Triton's own compile of the source",
        "hazards": hazards_line(sanitized),
        "cannot_show": manifest["cannot_show"][kind],
        "codes": results,
        "provenance": manifest["provenance"],
    }


def show(result: dict) -> str:
    """The three lines, and the time."""
    time_line = ""
    for code in result["codes"]:
        if "microseconds" in code and not code["planted"]:
            t = code["microseconds"]
            time_line += f"\n  time of the {code['of']}: median {t['median']} us, {t['least']} to {t['most']} us in {t['samples']} runs"
    source, hazards = result["numbers_of_source"], result["hazards_of_source"]
    found = "" if hazards == "not run" else f"; hazards: {hazards}"
    beside = "" if source == "not run" else f" ({result['source_ran_as']}: {source}{found})"
    return (
        f"{result['id']} {result['target']} on {result['device'] or 'no device'} ({result['ran_as']})\n"
        f"  numbers: {result['numbers']}{beside}\n  hazards: {result['hazards']}\n"
        f"  this cannot show: {', '.join(result['cannot_show'])}{time_line}"
    )


def main(arguments: list[str], own: str = "") -> int:
    """0: numbers match and no hazard was found; 1: not so; 2: nothing could be run."""
    parser = argparse.ArgumentParser(description="Run a bundle on the GPU of this machine.")
    if not own:
        parser.add_argument("bundle")
    parser.add_argument("--device", choices=("auto", *APIS), default="auto")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--planted", action="store_true", help="also the variants with a planted bug")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--timed", type=int, default=TIMED_RUNS)
    parser.add_argument("--timeout", type=float, default=LIMIT, help="seconds for one code object")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    a = parser.parse_args(arguments)
    path = own or a.bundle
    if a.child:
        child(path, a.child, a.device, a.runs, a.timed)
    driver = find_driver(a.device)
    if driver is None:
        none = {"hip": "libamdhip64 gives no device", "cuda": "libcuda gives no device"}
        why = none.get(a.device, "neither libamdhip64 nor libcuda gives a device")
        print(f"no GPU found ({a.device}): {why}", file=sys.stderr)
        return 2
    if not Bundle(path).codes(driver.kind, False):
        print(f"{path} has no {driver.kind} for this {driver.device}", file=sys.stderr)
        return 2
    result = run_bundle(path, driver.api, a.planted, a.runs, a.timed, a.timeout)
    if a.json != "-":
        print(show(result))
    if a.json == "-":
        print(json.dumps(result, indent=1))
    elif a.json:
        with open(a.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    clean = result["numbers"].startswith("match") and result["hazards"] in ("none found", "not run")
    return 0 if clean else 1


if __name__ == "__main__":
    inside = os.path.dirname(os.path.abspath(__file__))
    sys.exit(main(sys.argv[1:], inside if zipfile.is_zipfile(inside) else ""))
