"""The driver of the GPU of this machine, through ctypes: load code, move arrays, launch, and time.

HIP and CUDA share all code but the library, the prefix of the symbols and the kind of code object. Needs the standard library and
numpy only: `runner.py` takes this file with it into every bundle.
"""

from __future__ import annotations

import ctypes
import os

import numpy as np

CUDA_NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
PORTABLE_CLUSTER = 8  # workgroups of a cluster that every CUDA device with clusters takes
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
CUDA_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
STATIC_SHARED = 48 << 10  # bytes of shared memory that CUDA gives without being asked

# api -> (library names, environment variable with another one, symbol prefix, kind of code object)
APIS = {
    "hip": (
        ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"),
        "GLUONIZE_LIBAMDHIP64",
        "hip",
        "hsaco",
    ),
    "cuda": (("libcuda.so.1", "libcuda.so"), "GLUONIZE_LIBCUDA", "cu", "cubin"),
}
# Names that are more than prefix + name.
SPELLED = {
    ("cuda", "Malloc"): "cuMemAlloc_v2",
    ("cuda", "MemcpyHtoD"): "cuMemcpyHtoD_v2",
    ("cuda", "MemcpyDtoH"): "cuMemcpyDtoH_v2",
    ("cuda", "ModuleLaunchKernel"): "cuLaunchKernel",
    ("cuda", "LaunchClusters"): "cuLaunchKernelEx",
    ("cuda", "DeviceSynchronize"): "cuCtxSynchronize",
    ("cuda", "EventCreateWithFlags"): "cuEventCreate",
}
_POINTER, _INT, _UNSIGNED, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
# Call -> types of its arguments, those of HIP's and CUDA's headers; each returns an int, 0 for success.
ARGUMENTS = {
    "Init": (_UNSIGNED,),
    "DeviceGet": (_POINTER, _INT),
    "DevicePrimaryCtxRetain": (_POINTER, _INT),
    "CtxSetCurrent": (_POINTER,),
    "DeviceGetName": (_POINTER, _INT, _INT),
    "DriverGetVersion": (_POINTER,),
    "ModuleLoadData": (_POINTER, _POINTER),
    "ModuleGetFunction": (_POINTER, _POINTER, ctypes.c_char_p),
    "FuncSetAttribute": (_POINTER, _INT, _INT),  # of CUDA only
    "Malloc": (_POINTER, _SIZE),
    "MemcpyHtoD": (_POINTER, _POINTER, _SIZE),
    "MemcpyDtoH": (_POINTER, _POINTER, _SIZE),
    "ModuleLaunchKernel": (_POINTER, *[_UNSIGNED] * 7, _POINTER, _POINTER, _POINTER),
    "LaunchClusters": (_POINTER, _POINTER, _POINTER, _POINTER),  # of CUDA only
    "DeviceSynchronize": (),
    "EventCreateWithFlags": (_POINTER, _UNSIGNED),
    "EventRecord": (_POINTER, _POINTER),
    "EventSynchronize": (_POINTER,),
    "EventElapsedTime": (_POINTER, _POINTER, _POINTER),
    "TensorMapEncodeTiled": (_POINTER, _INT, _UNSIGNED, *[_POINTER] * 5, *[_INT] * 4),  # of CUDA only
}
MAP_BYTES, MAP_ALIGNMENT = 128, 64  # of a CUtensorMap
L2_PROMOTION_128B, FILL_NAN = 2, 1
# Drivers up to this version let small tensors be prefetched beyond their end; the bit that says so is cleared, as CUTLASS does.
PREFETCHES, SMALL, PREFETCH_BIT = 13010, 128 << 10, 21


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of CUDA's driver API: 8 bytes that say which, and a union of 64 bytes, here the size of a cluster."""

    _fields_ = [("id", _INT), ("pad", _INT), ("size", _UNSIGNED * 3), ("rest", ctypes.c_char * 52)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of CUDA's driver API."""

    _fields_ = [
        ("grid", _UNSIGNED * 3),
        ("block", _UNSIGNED * 3),
        ("shared", _UNSIGNED),
        ("stream", _POINTER),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", _UNSIGNED),
    ]


class DeviceError(Exception):
    """The driver refused a call; the message has the call and the driver's own words."""


class Driver:
    """The calls of one driver library that a bundle needs. Raises: DeviceError, OSError when there is no library."""

    def __init__(self, api: str):
        names, variable, self.prefix, self.kind = APIS[api]
        self.api = api
        given = os.environ.get(variable)
        self.library = _load((given,) if given else names)
        self.call("Init", ctypes.c_uint(0))
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("DeviceGet", ctypes.byref(device), ctypes.c_int(0))
        self.call("DevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("CtxSetCurrent", context)
        name, version = ctypes.create_string_buffer(256), ctypes.c_int()
        self.call("DeviceGetName", name, ctypes.c_int(256), device)
        self.call("DriverGetVersion", ctypes.byref(version))
        self.device, self.version = name.value.decode(errors="replace"), version.value

    def call(self, name: str, *args) -> None:
        symbol = SPELLED.get((self.api, name), self.prefix + name)
        function = getattr(self.library, symbol)
        function.argtypes = ARGUMENTS[name]
        status = function(*args)
        if status:
            raise DeviceError(f"{symbol}: {self.explain(status)}")

    def explain(self, status: int) -> str:
        text = ctypes.c_char_p()
        if self.api == "cuda":
            self.library.cuGetErrorString(ctypes.c_int(status), ctypes.byref(text))
        else:
            self.library.hipGetErrorString.restype = ctypes.c_char_p
            text.value = self.library.hipGetErrorString(ctypes.c_int(status))
        return f"error {status} ({(text.value or b'unknown').decode(errors='replace')})"

    def function(self, code: bytes, symbol: str, shared: int, ctas: int = 1) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("ModuleLoadData", ctypes.byref(module), ctypes.c_char_p(code))
        self.call("ModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        if self.api == "cuda" and shared > STATIC_SHARED:
            self.call("FuncSetAttribute", function, ctypes.c_int(CUDA_MAX_DYNAMIC_SHARED), ctypes.c_int(shared))
        if ctas > PORTABLE_CLUSTER:
            self.call("FuncSetAttribute", function, ctypes.c_int(CUDA_NON_PORTABLE_CLUSTER), ctypes.c_int(1))
        return function

    def allocate(self, size: int) -> int:
        pointer = ctypes.c_void_p()
        self.call("Malloc", ctypes.byref(pointer), ctypes.c_size_t(max(size, 256)))
        return pointer.value or 0

    def upload(self, pointer: int, data: np.ndarray) -> None:
        data = np.ascontiguousarray(data)
        if data.nbytes:
            self.call(
                "MemcpyHtoD", ctypes.c_void_p(pointer), ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes)
            )

    def download(self, pointer: int, like: np.ndarray) -> np.ndarray:
        out = np.empty_like(like)
        if out.nbytes:
            self.call(
                "MemcpyDtoH", ctypes.c_void_p(out.ctypes.data), ctypes.c_void_p(pointer), ctypes.c_size_t(out.nbytes)
            )
        return out

    def launch(self, function, grid, block: int, shared: int, values: list[bytes], ctas: int = 1) -> None:
        """`values` are the bytes of each parameter; `grid` counts programs, each a cluster of `ctas` workgroups (CUDA alone)."""
        buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
        pointers = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(b) for b in buffers))
        if ctas > 1:
            attribute = LaunchAttribute(CLUSTER_DIMENSION, 0, (ctas, 1, 1))
            whole = (grid[0] * ctas, *grid[1:])
            config = LaunchConfig(whole, (block, 1, 1), shared, None, ctypes.pointer(attribute), 1)
            self.call("LaunchClusters", ctypes.byref(config), function, pointers, ctypes.c_void_p())
            return
        sizes = [ctypes.c_uint(n) for n in (*grid, block, 1, 1, shared)]
        self.call("ModuleLaunchKernel", function, *sizes, ctypes.c_void_p(), pointers, ctypes.c_void_p())

    def tensor_map(self, base: int, described: dict) -> bytes:
        """The bytes of a tiled CUtensorMap of the tensor at `base`; the innermost dimension comes last in `described`."""
        shape, block = described["shape"][::-1], described["block"][::-1]
        size, rank = described["element_bytes"], len(shape)
        strides = [size * n for n in described["strides"][-2::-1]]
        whole = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
        start = -ctypes.addressof(whole) % MAP_ALIGNMENT
        arrays = [(ctypes.c_uint64 * rank)(*shape), (ctypes.c_uint64 * max(rank - 1, 1))(*strides)]
        arrays += [(ctypes.c_uint32 * rank)(*block), (ctypes.c_uint32 * rank)(*[1] * rank)]
        modes = (0, described["swizzle"], L2_PROMOTION_128B, FILL_NAN if described["nan"] else 0)
        at = ctypes.c_void_p(ctypes.addressof(whole) + start)
        self.call("TensorMapEncodeTiled", at, described["type"], rank, ctypes.c_void_p(base), *arrays, *modes)
        encoded = bytearray(whole.raw[start : start + MAP_BYTES])
        last = sum((n - 1) * step for n, step in zip(shape, [size, *strides]))
        if self.version <= PREFETCHES and last + 1 < SMALL:
            word = int.from_bytes(encoded[8:16], "little") & ~(1 << PREFETCH_BIT)
            encoded[8:16] = word.to_bytes(8, "little")
        return bytes(encoded)

    def synchronize(self) -> None:
        self.call("DeviceSynchronize")

    def event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self.call("EventCreateWithFlags", ctypes.byref(event), ctypes.c_uint(0))
        return event

    def microseconds(self, launch) -> float:
        """Time of `launch()` between two events."""
        first, last, elapsed = self.event(), self.event(), ctypes.c_float()
        self.call("EventRecord", first, ctypes.c_void_p())
        launch()
        self.call("EventRecord", last, ctypes.c_void_p())
        self.call("EventSynchronize", last)
        self.call("EventElapsedTime", ctypes.byref(elapsed), first, last)
        return elapsed.value * 1000.0


def _load(names) -> ctypes.CDLL:
    problem = OSError("no library")
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            problem = error
    raise problem


def find_driver(wanted: str = "auto") -> Driver | None:
    """The driver of the GPU that is here, HIP before CUDA; None where there is none."""
    for api in APIS if wanted == "auto" else (wanted,):
        try:
            return Driver(api)
        except (OSError, DeviceError, AttributeError):
            continue
    return None
