"""Rows for tensors without memory: shapes, casts, program ids, gather, histogram.

In the region of a reduction, which runs for all pairs at once, a scalar is an array of all pairs, and a tensor has them as first dimensions.
"""

from __future__ import annotations


import numpy as np

from gluonize.judge.machine.dtypes import FP4, decode, encode, held, rounded, stored, toward_zero, unsigned
from gluonize.judge.machine.hazards import Hazard
from gluonize.judge.machine.memory.handed_over import HandedOver
from gluonize.judge.machine.ops.arith import high_product
from gluonize.judge.machine.table import as_type, row

AXES = {"x": 0, "y": 1, "z": 2}


@row("tt.get_program_id")
def get_program_id(machine, op):
    return np.int32(machine.program[AXES[op.word]])


@row("tt.get_num_programs")
def get_num_programs(machine, op):
    return np.int32(machine.grid[AXES[op.word]])


@row("tt.make_range")
def make_range(machine, op):
    if "value" not in op.memo:
        op.memo["value"] = np.arange(op.attribute("start"), op.attribute("end"), dtype=np.int32)
        op.memo["value"].flags.writeable = False
    return op.memo["value"]


@row("tt.splat")
def splat(machine, op, x):
    if np.ndim(x):
        return np.broadcast_to(x.reshape((*x.shape, *[1] * len(op.type.shape))), (*x.shape, *op.type.shape))
    out = np.empty(op.type.shape, x.dtype)
    out.fill(x)
    return out


@row("tt.unsplat")
def unsplat(machine, op, x):
    return x.reshape(_pairs(op, x))[()]


@row("tt.expand_dims")
def expand_dims(machine, op, x):
    return np.expand_dims(x, op.attribute("axis") + x.ndim + 1 - len(op.type.shape))


@row("tt.broadcast")
def broadcast(machine, op, x):
    out = np.empty(op.type.shape, x.dtype)  # a copy: faster than a view with zero strides for all that follows
    out[...] = x
    return out


@row("tt.reshape")
def reshape(machine, op, x):
    return x.reshape(op.type.shape if x.size == op.type.size else (*_pairs(op, x), *op.type.shape))


def _pairs(op, x) -> tuple[int, ...]:
    """The dimensions of `x` that the type of the first operand does not have."""
    return x.shape[: x.ndim - len(op.operand_types[0].shape)]


@row("tt.trans")
def trans(machine, op, x):
    return np.transpose(x, op.integers("order"))


@row("tt.cat")
def cat(machine, op, a, b):
    return np.concatenate([a, b]).reshape(op.type.shape)


@row("tt.join")
def join(machine, op, a, b):
    return np.stack([a, b], axis=-1)


@row("tt.split")
def split(machine, op, x):
    return x[..., 0], x[..., 1]


@row("ttg.convert_layout", "amdg.in_thread_transpose")
def convert_layout(machine, op, x):
    return x


@row("amdg.extract_slice")
def extract_slice(machine, op, x):
    return x[tuple(slice(start, start + extent) for start, extent in zip(op.indices, op.type.shape))]


@row("amdg.concat")
def concat(machine, op, *parts):
    """Tiles of one shape fill the result in row-major order."""
    shape, tile = op.type.shape, parts[0].shape
    out = np.empty(shape, parts[0].dtype)
    counts = [extent // part for extent, part in zip(shape, tile)]
    for index, part in zip(np.ndindex(*counts), parts):
        out[tuple(slice(i * t, (i + 1) * t) for i, t in zip(index, tile))] = part
    return out


@row("tt.bitcast", "arith.bitcast")
def bitcast(machine, op, x):
    source, target = op.operand_types[0], op.type
    if source.kind == "ptr" or target.kind == "ptr":
        return x
    if source.element == target.element:
        return x
    bits = np.asarray(encode(x, source.element))
    return decode(bits.view(stored(target.element)), target.element)[()]


@row("tt.int_to_ptr", "tt.ptr_to_int")
def pointer_cast(machine, op, x):
    return x.astype(held(op.type.element)) if op.name == "tt.ptr_to_int" else x.astype(np.int64)


@row("tt.addptr")
def addptr(machine, op, pointer, offset):
    return pointer + offset.astype(np.int64) * stored(op.type.element).itemsize


@row("tt.fp_to_fp")
def fp_to_fp(machine, op, x):
    if op.attribute("rounding") == "rtz":
        return toward_zero(np.asarray(x), op.type.element)[()]
    return rounded(np.asarray(x), op.type.element)[()]


@row("ttg.fp4_to_fp")
def fp4_to_fp(machine, op, x):
    axis = op.attribute("axis")
    return as_type(unpack_fp4(x, axis), op.type)


def unpack_fp4(x: np.ndarray, axis: int) -> np.ndarray:
    """Two e2m1 values per byte along `axis`, the low half first. -> f32"""
    raw = unsigned(x)
    pair = np.stack([raw & 15, raw >> 4], axis=axis + 1)
    shape = list(x.shape)
    shape[axis] *= 2
    return FP4[pair].reshape(shape)


@row("tt.clampf")
def clampf(machine, op, x, low, high):
    if op.attribute("propagateNan") == "all":
        return as_type(np.minimum(np.maximum(x, low), high), op.type)
    return as_type(np.fmin(np.fmax(x, low), high), op.type)


@row("tt.precise_sqrt")
def precise_sqrt(machine, op, x):
    return as_type(np.sqrt(x), op.type)


@row("tt.precise_divf", "tt.approx_divf")
def precise_divf(machine, op, a, b):
    return as_type(np.divide(a, b), op.type)


@row("tt.mulhiui")
def mulhiui(machine, op, a, b):
    return high_product(a, b, 8 * a.dtype.itemsize, False)


@row("tt.gather")
def gather(machine, op, source, indices):
    axis = op.attribute("axis")
    _check_indices("tt.gather", indices, source.shape[axis])
    crop = tuple(slice(None) if d == axis else slice(0, n) for d, n in enumerate(indices.shape))
    return np.take_along_axis(source[crop], indices.astype(np.int64), axis)


def _check_indices(what: str, indices, extent: int) -> None:
    bad = (indices < 0) | (indices >= extent)
    if bad.any():
        raise Hazard("index-range", f"{what} index {int(indices[bad].flat[0])} is outside of 0..{extent - 1}")


@row("tt.histogram")
def histogram(machine, op, x, mask=None):
    """Values outside of the bins are undefined; the machine drops them."""
    bins = op.type.shape[0]
    chosen = np.broadcast_to(x, x.shape) if mask is None else x[np.broadcast_to(mask, x.shape)]
    chosen = chosen[(chosen >= 0) & (chosen < bins)]
    return np.bincount(chosen.reshape(-1), minlength=bins).astype(held(op.type.element))


@row("tt.print")
def device_print(machine, op, *args):
    machine.printed.append((op.string or "", args))


@row("tt.assert")
def device_assert(machine, op, condition):
    if not np.all(condition):
        raise Hazard("device-assert", f"device assertion failed: {op.string or ''}")


@row(
    "ttg.barrier",
    "gpu.barrier",
    "amdg.cond_barrier",
)
def barrier(machine, op, *args):
    machine.lds.barrier()
    if isinstance(machine.memory.peers, HandedOver) and "all" in op.words:
        machine.memory.peers.barrier()


@row("amdg.cluster_barrier_arrive")
def cluster_barrier_arrive(machine, op):
    if machine.lds.cluster is not None:
        machine.lds.cluster.arrive(machine.lds.epoch)


@row("amdg.cluster_barrier_wait")
def cluster_barrier_wait(machine, op):
    if machine.lds.cluster is not None:
        machine.lds.cluster.wait()


@row(
    "rocdl.sched.barrier",
    "rocdl.s.setprio",
    "rocdl.iglp.opt",
    "rocdl.sched.group.barrier",
    "llvm.intr.assume",
    "tt.grid_dependency_wait",
    "tt.grid_dependency_launch_dependents",
    "ttg.local_dealloc",
    "gluon.set_auto_layout",
)
def no_effect(machine, op, *args):
    """Hints: values pass through."""
    return args[0] if op.results else None


@row("ub.poison", "llvm.mlir.undef", "llvm.mlir.poison")
def poison(machine, op):
    dtype = held(op.type.element)
    fill = np.nan if dtype.kind == "f" else 0
    return np.full(op.type.shape or (), fill, dtype)[()]
