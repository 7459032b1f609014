"""The fixtures as data: which there are, their launches, kernels, references and inputs."""

from __future__ import annotations

import functools
import importlib.util
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from gluonize.versions import release_of, triton_version

ROOT = Path(__file__).resolve().parent.parent / "fixtures"
TARGETS = ("gfx942", "gfx950", "gfx1250", "gfx1100", "gfx1201")
# Kernels that are Gluon already, as sources: folders with `source.py`, whose launches say what they are written for.
GLUON_SOURCES = ("blackwell", "convolution", "hopper")

# Bits of significand and sign, and the largest finite value, of float types that numpy lacks. Sources: bfloat16 is the
# upper half of an fp32; OCP 8-bit floating point specification 1.0 table 1 for e4m3fn and e5m2; the FNUZ types of CDNA3
# as in LLVM's APFloat (Float8E4M3FNUZ, Float8E5M2FNUZ).
NARROW_FLOATS = {
    "bfloat16": (8, 3.3895313892515355e38, -126),
    "float8_e4m3fn": (4, 448.0, -6),
    "float8_e4m3fnuz": (4, 240.0, -7),
    "float8_e5m2": (3, 57344.0, -14),
    "float8_e5m2fnuz": (3, 57344.0, -15),
}


@dataclass(frozen=True)
class Fixture:
    """One folder of fixtures/: kernel.py, launches.json, reference.py and golden/."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def kernel_file(self) -> Path:
        return self.folder / "kernel.py"

    @property
    def launches_file(self) -> Path:
        return self.folder / "launches.json"

    @property
    def reference_file(self) -> Path:
        return self.folder / "reference.py"

    def golden_file(self, target: str) -> Path:
        """Of the installed Triton, where that has one of its own: most texts are the same under all that are served."""
        common, own = self.folder / "golden" / f"{target}.py", self.golden_of_release(target)
        return own if own.exists() else common

    def golden_of_release(self, target: str) -> Path:
        return self.folder / "golden" / release_of(triton_version()) / f"{target}.py"

    def launches(self) -> list[dict]:
        return json.loads(self.launches_file.read_text())["launches"]

    def kernel_module(self) -> ModuleType:
        return load_module(self.kernel_file)

    def reference(self, inputs: dict) -> dict:
        """Expected contents of each output; see fixtures/README.md for the convention."""
        return load_module(self.reference_file).reference(inputs)


def fixtures() -> list[Fixture]:
    """Every fixture folder, sorted by name."""
    return [Fixture(path.parent) for path in sorted(ROOT.glob("*/kernel.py"))]


@functools.lru_cache(maxsize=None)
def load_module(path: Path) -> ModuleType:
    """Import a file of a fixture under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"fixture_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def round_to(array: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest values that `dtype` holds, ties to even, beyond the largest finite value clamped to it; as float32."""
    if dtype not in NARROW_FLOATS:
        return array.astype(dtype)
    digits, largest, least_exponent = NARROW_FLOATS[dtype]
    wide = array.astype(np.float64)
    # frexp gives 0.5 <= |mantissa| < 1, so the exponent of the leading digit is one less.
    exponent = np.maximum(np.frexp(wide)[1] - 1, least_exponent)
    unit = np.ldexp(1.0, exponent - digits + 1)
    return np.clip(np.round(wide / unit) * unit, -largest, largest).astype(np.float32)


def make_inputs(launch: dict) -> dict:
    """Every argument of the launch by name: scalars and constexprs as they are, tensors as arrays.

    Floats are standard normal, or uniform within "range"; integers uniform within "range" (both ends included), or the
    "data" given. The same launch gets the same numbers each time. Types that numpy lacks are float32 arrays of
    representable values.
    """
    rng = np.random.default_rng(zlib.crc32(launch["id"].encode()))
    return {
        name: _array(value["tensor"], rng) if isinstance(value, dict) and "tensor" in value else value
        for name, value in launch["values"].items()
    }


def _array(tensor: dict, rng: np.random.Generator) -> np.ndarray:
    dtype, shape = tensor["dtype"], tuple(tensor["shape"])
    low, high = tensor.get("range", (None, None))
    if "data" in tensor:
        return np.array(tensor["data"], dtype=dtype).reshape(shape)
    if "int" in dtype or dtype == "bool":
        return rng.integers(low or 0, (high or 0) + 1, size=shape).astype(dtype)
    return round_to(rng.standard_normal(shape) if low is None else rng.uniform(low, high, shape), dtype)
