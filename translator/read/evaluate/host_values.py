"""What stands for the host side of a program: modules that are not imported, and what is known of them.

The translated kernel runs on an AMD GPU, so what host code asks about the device has a known answer as far as it does not
depend on the architecture; everything else about `torch` stays undetermined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Standard modules whose values may be constants of a kernel. Importing them has no effect on anything else.
PURE_MODULES = frozenset(
    {
        "abc",
        "builtins",
        "collections",
        "copy",
        "dataclasses",
        "enum",
        "functools",
        "importlib",
        "itertools",
        "math",
        "numbers",
    }
    | {"numpy", "operator", "os", "platform", "re", "string", "sys", "types", "typing", "__future__"}
)
# Packages that a kernel library imports for its host side; taken to be there, and never parsed.
HOST_PACKAGES = frozenset({"torch", "packaging"})
# What `VersionNumber` stands for, by the names that other packages hand it on under.
VERSIONS = {"Version": "packaging.version.Version", "parse_version": "packaging.version.parse"}

_TORCH_DTYPES = frozenset(
    "float16 half bfloat16 float32 float float64 double int8 int16 short int32 int int64 long uint8 uint16 uint32 uint64 "
    "bool float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu complex64 complex128".split()
)
_SAME_DTYPE = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}


@dataclass(frozen=True)
class HostName:
    """Something of a module that is not imported, known by its dotted name only."""

    dotted: str
    is_module: bool = False

    @property
    def torch_dtype(self) -> str:
        """`float16` for `torch.float16` and `torch.half`; empty when it is no dtype."""
        module, _, name = self.dotted.rpartition(".")
        return _SAME_DTYPE.get(name, name) if module == "torch" and name in _TORCH_DTYPES else ""

    def __repr__(self) -> str:
        return self.dotted

    @staticmethod
    def of_dtype(name: str) -> HostName | None:
        """What stands for `torch.NAME`, the same for its other names (`half`, `float16`); None where torch has no such type."""
        found = HostName(f"torch.{name}").torch_dtype
        return HostName(f"torch.{found}") if found else None

    @property
    def certainly_true(self) -> bool:
        return self.is_module or bool(self.torch_dtype) or self.dotted in _TRUE


_TRUE = frozenset({"torch.version.hip", "torch.Tensor"})
# On AMD: `torch.version.cuda` and its siblings are None, and the device is called "cuda" by torch.
ATTRIBUTE_FACTS: dict[str, object] = {"torch.version.cuda": None, "torch.version.xpu": None}
CALL_FACTS: dict[str, object] = {
    "torch.cuda.is_available": True,
    **{f"torch.utils._triton.{name}": True for name in ("has_triton", "has_triton_package")},
    **{f"torch.{other}.is_available": False for other in ("xpu", "npu", "mps", "hpu", "mlu", "musa", "backends.mps")},
}

# Names by which host code asks for a vendor other than AMD; such a question is answered with no.
OTHER_VENDORS = frozenset(
    "nvidia iluvatar kunlunxin ascend npu xpu mthreads musa metax cambricon mlu aipu hygon enflame gcu intel mps sunrise tsingmicro "
    "spacemit thead arm".split()
)
ASKS_FOR_DEVICE = re.compile(r"vendor|backend|platform|device", re.IGNORECASE)


@dataclass(frozen=True)
class ActiveDriver:
    """Stands for `triton.runtime.driver.active`."""


@dataclass(frozen=True)
class ActiveTarget:
    """Stands for what the active driver says is the target: an AMD GPU of an architecture that is not known here."""

    backend: str = "hip"


@dataclass(frozen=True, order=True)
class VersionNumber:
    """A release number as `packaging.version.Version` orders it; pre- and post-release parts are left out."""

    release: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> VersionNumber | None:
        if not (found := re.match(r"\s*v?(\d+(?:\.\d+)*)", text)):
            return None
        parts = [int(part) for part in found.group(1).split(".")]
        while len(parts) > 1 and parts[-1] == 0:
            parts.pop()
        return VersionNumber(tuple(parts))

    @property
    def major(self) -> int:
        return self.release[0]

    @property
    def minor(self) -> int:
        return (*self.release, 0)[1]

    @property
    def micro(self) -> int:
        return (*self.release, 0, 0)[2]
