"""Bundles: one launch of one kernel with everything that a machine with a GPU needs to run and judge it.

A bundle is a zip file with `manifest.json`, code objects, arrays (`.npy`, types that numpy lacks as raw bits) and the runner as
`__main__.py`, so `python FILE.zip` runs it. The same inputs give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gluonize.judge.device.bundles.expected import ExpectedTensor
from gluonize.judge.device.runner import FORMAT

FOLDER = Path(__file__).parent.parent  # of the runner

ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that zip knows: a bundle has no time of its own
CLUSTERS_CANNOT_SHOW = "multicast copies: each workgroup of a cluster copies for itself"
CANNOT_SHOW = {
    "cubin": [
        "AMD's own barrier insertion",
        "vmcnt and LDS counter translation",
        "bank conflicts",
        "MFMA and WMMA rounding",
        "speed",
    ],
    "hsaco": ["races that this run did not hit"],
}
RAN_AS = {"cubin": "the translation's TTGIR, re-targeted to CUDA", "hsaco": "the translation itself"}


@dataclass(frozen=True)
class Code:
    """One code object. `sanitizer` names its instrumentation, `planted` the bug in it; both are "" for the kernel itself.

    `of` says whether it is the translation or Triton's own compile of the source; `arguments` are its own where it does not take
    those of all, and `grid` where it is not the launch's. `block` is in threads, `shared` in bytes per workgroup, the scratches in bytes per
    workgroup. ctas: workgroups of a program, more than one on CUDA devices alone.
    """

    name: str
    kind: str
    symbol: str
    block: int
    shared: int
    global_scratch: int
    profile_scratch: int
    content: bytes = field(repr=False)
    sanitizer: str = ""
    planted: str = ""
    of: str = "translation"
    arguments: tuple[dict, ...] | None = None
    ctas: int = 1
    grid: tuple[int, ...] = ()


def make_code(name: str, built: dict, sanitizer: str = "", planted: str = "") -> Code:
    """A Code from what the functions of `build_jobs` return."""
    keys = ("kind", "symbol", "block", "shared", "global_scratch", "profile_scratch")
    more = {"sanitizer": sanitizer, "planted": planted, "ctas": built["ctas"]}
    return Code(name, *(built[key] for key in keys), content=built["code"], **more)


def write_bundle(
    id: str,
    target: str,
    grid: tuple[int, ...],
    codes: list[Code],
    poison: list[Code],
    arguments: list[dict],
    tensors: list[ExpectedTensor],
    flops: int,
    provenance: dict,
    notes: tuple[str, ...] = (),
    source_ran_as: str = "",
) -> bytes:
    """The bytes of the zip file. flops: floating-point operations of all matrix products of the launch, 0 without.

    source_ran_as: what the source's own code object is, for who reads the result.
    """
    files: dict[str, bytes] = {}
    manifest = {
        "format": FORMAT,
        "id": id,
        "target": target,
        "arguments": arguments,
        "codes": [_code(code, grid, files) for code in codes],
        "poison": [_code(code, (), files, "poison/") for code in poison],
        "tensors": [_tensor(tensor, files) for tensor in tensors],
        "flops": flops,
        "ran_as": RAN_AS,
        "source_ran_as": source_ran_as,
        "cannot_show": _cannot_show(codes),
        "notes": list(notes),
        "provenance": provenance,
    }
    runner = (FOLDER / "runner.py").read_bytes()
    files["gpu_driver.py"] = (FOLDER / "gpu_driver.py").read_bytes()
    manifest["provenance"] = provenance | {
        "runner": sha256(runner),
        "files": {name: sha256(files[name]) for name in sorted(files)},
    }
    files["manifest.json"] = (json.dumps(manifest, indent=1, allow_nan=False) + "\n").encode()
    files["__main__.py"] = runner
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name])
    return out.getvalue()


def _cannot_show(codes: list[Code]) -> dict[str, list[str]]:
    if all(code.ctas == 1 for code in codes):
        return CANNOT_SHOW
    return CANNOT_SHOW | {"cubin": [*CANNOT_SHOW["cubin"], CLUSTERS_CANNOT_SHOW]}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _code(code: Code, grid: tuple[int, ...], files: dict[str, bytes], folder: str = "code/") -> dict:
    path = f"{folder}{code.name}.{code.kind}"
    files[path] = code.content
    own = {} if code.arguments is None else {"arguments": list(code.arguments)}
    return own | {
        "name": code.name,
        "kind": code.kind,
        "file": path,
        "symbol": code.symbol,
        "grid": list((*(code.grid or grid), 1, 1, 1)[:3]),
        "block": code.block,
        "ctas": code.ctas,
        "shared": code.shared,
        "global_scratch": code.global_scratch,
        "profile_scratch": code.profile_scratch,
        "sanitizer": code.sanitizer,
        "planted": code.planted,
        "of": code.of,
    }


def _tensor(tensor: ExpectedTensor, files: dict[str, bytes]) -> dict:
    entry = {"name": tensor.name, "element": tensor.element, "bytes": tensor.initial.nbytes}
    arrays = {"initial": tensor.initial, "expected": tensor.expected}
    arrays |= {"written": np.packbits(tensor.written), "racing": np.packbits(tensor.racing)}
    for key, array in arrays.items():
        path = f"{key}/{tensor.name}.npy"
        if key == "expected" and not tensor.written.any():
            path = f"initial/{tensor.name}.npy"
        else:
            files[path] = _npy(array)
        entry[key] = path
    limits = ("rtol", "atol", "flips", "flip_rtol", "flip_atol")
    return entry | {key: getattr(tensor, key) for key in limits}


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return out.getvalue()
