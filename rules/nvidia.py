"""What becomes of NVIDIA's operations in Gluon kernels: one row each.

A kernel is lifted: what it computes is told in Triton, and translated from there for any AMD GPU. Most operations say how and when, and
leave nothing behind. Where a target has the same machine (a tensor data mover, barriers in LDS), `--keep-structure` writes the kernel's own
text with each call's counterpart; for what has none the rows say why, and what a port by hand does. `docs/reference/nvidia.md` is made
from this table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Counterpart:
    """What stands for a call where the structure is kept.

    function: of Gluon's, by the module that has it: `tma.async_load`, `hopper.warpgroup_mma`. text: an expression with the arguments as
    holes by their names, and `{arrivals}`, how many arrivals end a phase of the barrier, `{k_width}`, elements of K that a lane has in a
    row; "" where nothing stands for it. A keyword whose argument the call does not give is left out; arguments without a hole are left out. only:
    arguments that have to be what is said here. needs: the capability, a field of the target's row. A call with a predicate stands under an `if`.
    """

    function: str
    text: str
    only: tuple[tuple[str, object], ...] = ()
    needs: str = "supports_tdm"


@dataclass(frozen=True)
class NvidiaRow:
    """One operation of the dialect.

    op: its name in `ttng`. gluon: the function that a kernel calls for it, "" where Gluon has none. does: what it does. lifted: what stands
    for it in the lifted kernel, "" where it leaves nothing behind. conditions: what the lifter checks, or refuses. data_mover, other: how a
    port by hand that keeps the structure spells it, on a target with a tensor data mover and on the others. example: of the tests, whose
    lifted kernel has `gives` in it ("": nothing of it is left). why_none: for an operation without an example. counterparts: of the functions
    that make it, where the structure is kept; why_not: why there is none.
    """

    op: str
    gluon: str
    does: str
    lifted: str
    conditions: str
    data_mover: str
    other: str
    example: str = ""
    gives: str = ""
    why_none: str = ""
    counterparts: tuple[Counterpart, ...] = ()
    why_not: str = ""

    def __post_init__(self):
        assert bool(self.counterparts) != bool(self.why_not or self.why_none), f"{self.op}: a counterpart, or why not"
        assert self.does.endswith("."), self.op
        assert bool(self.example) != bool(self.why_none), f"{self.op}: an example, or why there is none"


_ORDER = "Kernels in which partitions wait for each other for ever are refused."
_LOWERED = "Gluon has no function for it: Triton's lowering of a descriptor made in the kernel writes it"

_NO_TENSOR_MEMORY = "there is no tensor memory: what multiplies has its accumulator in registers"
# The copies' hints for caches are those of another machine. Each copy arrives: the last one of a phase may not be the last to land.
_LOAD = Counterpart(
    "tma.async_load", "tdm.async_load({tensor_desc}, {coord}, {result}, mbarrier={barrier})", (("multicast", False),)
)
_STORE = Counterpart("tma.async_store", "tdm.async_store({tensor_desc}, {coord}, {src})")

NVIDIA: tuple[NvidiaRow, ...] = (
    NvidiaRow(
        "arrive_barrier", "mbarrier.arrive", "A partition tells that it is done with a slot.", "", _ORDER,
        "`mbarrier.arrive`: every thread arrives, so that counts are threads", "none: one partition, program order", "tensor memory",
        counterparts=(Counterpart("mbarrier.arrive", "mbarrier.arrive({mbarrier}, count={count})", (("from_cta", None),)),),
    ),
    NvidiaRow(
        "async_copy_mbarrier_arrive", "async_copy.mbarrier_arrive", "A barrier is told when the copies of each thread are done.", "",
        "A barrier that never completes is refused.", "`async_copy.mbarrier_arrive`", "`async_copy.wait_group`", "copies",
        counterparts=(Counterpart("async_copy.mbarrier_arrive", "async_copy.mbarrier_arrive({mbarrier})", (("increment_count", False),)),),
    ),
    NvidiaRow(
        "async_tma_copy_global_to_local", "tma.async_load", "A block of a descriptor is copied to shared memory.", "`desc.load([m, k])`",
        "The coordinates of what a slot holds have to be one expression of the loops around its reads. Of a descriptor of images (im2col) the pixels are rows, read through pointers: the lifted kernel takes `(base, shape, strides, pixel_box_lower_corner, pixel_box_upper_corner, steps)` in its place, all but the base tuples of integers, the steps the element strides of the spatial dimensions; one that fills with NaN is refused.",
        "`tdm.async_load` with the barrier on the last load of a slot", "masked pointers with `buffer_load_to_shared`, or registers", "tile",
        "a.load([m, k])",
        counterparts=(_LOAD,),
    ),
    NvidiaRow(
        "async_tma_copy_local_to_global", "tma.async_store", "A slot is copied to a block of a descriptor.", "`desc.store([m, n], value)`",
        "Stores of all parts of one tensor become one store, and the descriptor's block the whole tensor's.", "`tdm.async_store`",
        "`buffer_store` with a mask", "tile", "c.store([m, 0]",
        counterparts=(_STORE,),
    ),
    NvidiaRow(
        "async_tma_gather", "tma.async_gather", "Rows of a descriptor, by their numbers, are copied to shared memory.",
        "`desc.gather(rows, column)`", "As for a load.", "`tdm.async_gather`", "pointers of each row", "rows", "x.gather(",
        why_not="its mover takes the numbers of rows from a layout in which all lanes have them, and a descriptor of other blocks",
    ),
    NvidiaRow(
        "async_tma_reduce", "tma.async_atomic_add, _min, _max, _and, _or, _xor", "A slot is added to memory, element by element.",
        "`desc.atomic_add([m, n], value)`", "", "`buffer_atomic`: the mover does not reduce", "`buffer_atomic`", "reduce",
        "y.atomic_add([0, 0]",
        why_not="its mover does not reduce",
    ),
    NvidiaRow(
        "async_tma_scatter", "tma.async_scatter", "Rows of a slot are copied to rows of a descriptor, by their numbers.",
        "`desc.scatter(value, rows, column)`", "", "`tdm.async_scatter`", "pointers of each row", "rows", "y.scatter(",
        why_not="its mover takes the numbers of rows from a layout in which all lanes have them, and a descriptor of other blocks",
    ),
    NvidiaRow(
        "async_tma_store_wait", "tma.store_wait", "Waits until slots that are being stored may be written again.", "", "",
        "`tdm.async_wait`, which counts loads and stores together", "none: stores read registers", "tile",
        counterparts=(Counterpart("tma.store_wait", "tdm.async_wait({pendings})"),),
    ),
    NvidiaRow(
        "barrier_expect", "mbarrier.expect", "A barrier is told how many bytes will land.", "",
        "Bytes that never land make the kernel wait for ever: refused.", "none: the barrier goes on the slot's last load", "none", "tile",
        counterparts=(Counterpart("mbarrier.expect", "", (("from_cta", None),)),),
    ),
    NvidiaRow(
        "cluster_arrive", "", "A thread block tells its cluster that it is here.", "", "", "`cluster.arrive`", "none: one program is one cluster",
        why_none="Gluon has no function for it: `cluster.barrier`, which falls away, is lowered to it",
    ),
    NvidiaRow(
        "cluster_wait", "", "Waits for the cluster.", "", "", "`cluster.wait`", "none: one program is one cluster",
        why_none="Gluon has no function for it: `cluster.barrier`, which falls away, is lowered to it",
    ),
    NvidiaRow(
        "fence_async_shared", "fence_async_shared", "Writes of threads become visible to the copy engine.", "", "",
        "none needed", "none needed", "tile",
        counterparts=(Counterpart("hopper.fence_async_shared", ""),),
    ),
    NvidiaRow(
        "init_barrier", "mbarrier.init", "A barrier gets the number of arrivals of a phase.", "",
        "A barrier that is used before it is initialised is refused.", "`mbarrier.init` and `gl.barrier()`; counts are warps of a copy, threads of an arrival",
        "none", "tile",
        counterparts=(Counterpart("mbarrier.init", "mbarrier.init({mbarrier}, count={arrivals})"),),
    ),
    NvidiaRow("inval_barrier", "mbarrier.invalidate", "A barrier's memory may be used for something else.", "", "", "none", "none", "tile", counterparts=(Counterpart("mbarrier.invalidate", ""),)),
    NvidiaRow(
        "reinterpret_tensor_descriptor", "", "A pointer to a descriptor becomes a descriptor.", "`tl.make_tensor_descriptor`", "",
        "`tdm.make_tensor_descriptor`", "base, shape and strides", why_none=_LOWERED,
    ),
    NvidiaRow(
        "tc_gen5_commit", "tcgen05_commit", "A barrier is told when the products that were issued are done.", "", _ORDER,
        "`mbarrier.arrive` behind the reads of the operands, or behind the product", "none", "tensor memory",
        why_not=_NO_TENSOR_MEMORY,
    ),
    NvidiaRow(
        "tc_gen5_mma", "tcgen05_mma", "A product of slots, added to tensor memory or written to it.", "`tl.dot(a, b, acc)`",
        "A flag `use_acc` that comes from memory is refused. Sums of products become loops; 2-CTA products are those of their cluster.",
        "`cdna5.wmma` on registers", "`mfma`, `wmma` on registers", "tensor memory", "tl.dot(sa, sb, sc)",
        why_not=_NO_TENSOR_MEMORY,
    ),
    NvidiaRow(
        "tc_gen5_mma_scaled", "tcgen05_mma_scaled", "A product of scaled operands.", "`tl.dot_scaled(a, a_scale, \"e4m3\", b, b_scale, \"e4m3\", acc)`",
        "Formats that the target cannot multiply are widened; so are numbers of e2m1 with scales of e4m3 where it multiplies powers of two only.", "`cdna5.wmma_scaled`",
        "`cdna4.mfma_scaled` on gfx950; elsewhere operands are widened", "scaled", "tl.dot_scaled(sa, ta, \"e4m3\", tl.trans(sb), tb, \"e4m3\")",
        why_not=_NO_TENSOR_MEMORY,
    ),
    NvidiaRow(
        "tensormap_create", "tma.make_tensor_descriptor", "A descriptor is made in memory.", "`tl.make_tensor_descriptor`", "",
        "`tdm.make_tensor_descriptor`", "base, shape and strides", why_none=_LOWERED,
    ),
    NvidiaRow(
        "tensormap_fenceproxy_acquire", "", "A descriptor that was made in memory becomes visible.", "", "", "none needed", "none needed",
        why_none=_LOWERED,
    ),
    NvidiaRow(
        "tmem_alloc", "allocate_tensor_memory", "Tensor memory, 128 lanes of 512 columns.", "",
        "What is read has to be what was written, in the same type.", "none: registers, or LDS where two partitions share it", "none: registers",
        "tensor memory",
        why_not=_NO_TENSOR_MEMORY,
    ),
    NvidiaRow(
        "tmem_copy", "tcgen05_copy", "A slot is copied to tensor memory, in order with products.", "the slot's value",
        "Scales in blocks of 32 x 4 x 4 are put back into rows; any other change of shape is refused.", "none: `local_load`", "none: `local_load`",
        "tensor memory", "tl.dot(sa, sb, sc)",
        why_not=_NO_TENSOR_MEMORY,
    ),
    NvidiaRow(
        "tmem_load", "tmem.load", "Tensor memory is read, perhaps with the maximum of each row.", "the value",
        "A reduction that takes absolute values or keeps NaN is refused.", "none: registers", "none: registers", "tensor memory", "x.to(tl.float16)",
        why_not=_NO_TENSOR_MEMORY,
    ),
    NvidiaRow(
        "tmem_store", "tmem.store", "Tensor memory is written.", "the value", "", "none: registers", "none: registers", "tensor memory",
        "tl.dot(sa, sb, sc)",
        why_not=_NO_TENSOR_MEMORY,
    ),
    NvidiaRow(
        "tmem_subslice", "tmem.slice", "Some columns of tensor memory.", "the whole tensor where all columns are treated alike, else `tl.split` of halves",
        "Parts that are no equal parts of a tensor are refused.", "none: `reshape`, `permute`, `split`", "none: `reshape`, `permute`, `split`",
        "tensor memory", "d.store([0, 0], x.to(tl.float16))",
        why_not=_NO_TENSOR_MEMORY,
    ),
    NvidiaRow(
        "wait_barrier", "mbarrier.wait", "Waits for a phase of a barrier.", "", _ORDER, "`mbarrier.wait`, with the same parity; a predicate is an `if`",
        "none: program order, or counted waits", "tile",
        counterparts=(Counterpart("mbarrier.wait", "mbarrier.wait({mbarrier}, {phase})"),),
    ),
    NvidiaRow(
        "warp_group_dot", "warpgroup_mma", "A product of slots or registers, added to registers.", "`tl.dot(a, b, acc)`",
        "Products of fp32 are exact to fp32, as `tl.dot` with `ieee`, not TF32.", "`cdna5.wmma`", "`mfma`, `wmma`", "tile", "tl.dot(sa, sb, acc)",
        counterparts=(Counterpart("hopper.warpgroup_mma", "multiply({a}, {b}, {acc}, {k_width}, use_acc={use_acc})"),),
    ),
    NvidiaRow(
        "warp_group_dot_wait", "warpgroup_mma_wait", "Waits until so many products are outstanding.", "", "", "none: products are in order", "none",
        "tile",
        counterparts=(Counterpart("hopper.warpgroup_mma_wait", "{deps}"),),
    ),
)  # fmt: skip

# Functions of Gluon's for NVIDIA GPUs that make operations which are not of the dialect, or several.
BESIDE: tuple[Counterpart, ...] = (
    Counterpart("async_copy.async_load", "async_copy.global_to_shared({smem}, {pointer}, mask={mask})"),
    Counterpart("async_copy.commit_group", "async_copy.commit_group()"),
    Counterpart("async_copy.wait_group", "async_copy.wait_group({num_outstanding})"),
    Counterpart("hopper.warpgroup_mma_init", "{value}"),
    Counterpart(
        "tma.make_tensor_descriptor",
        "tdm.make_tensor_descriptor({base}, {shape}, {strides}, {block_shape}, {layout})",
        (("padding_option", "zero"),),
    ),
)

# Operations that are not of the dialect's reference: why none of them is kept, and what a port by hand does.
OTHERS: tuple[tuple[str, str, str], ...] = (
    (
        "clc_",
        "programs are not handed out while a kernel runs",
        "a grid of all tiles, or a loop over `gl.num_programs`",
    ),
    ("packed_arith", "two numbers of 32 bits are not one operand", "`a * b + c`"),
)


def why_not_kept(op: str) -> tuple[str, str] | None:
    """Why an operation (`ttng.tmem_alloc`) has no counterpart where the structure is kept, and what a port by hand does; None: it has one."""
    name = op.removeprefix("ttng.")
    for row in NVIDIA:
        if row.op == name and row.why_not:
            return row.why_not, row.data_mover
    return next(((why, by_hand) for start, why, by_hand in OTHERS if name.startswith(start)), None)


def counterpart(function: str) -> Counterpart | NvidiaRow | None:
    """What a call of `tma.async_load` becomes where the structure is kept, or the row that says why nothing does; None: neither is known."""
    for known in (*BESIDE, *(x for row in NVIDIA for x in row.counterparts)):
        if known.function == function:
            return known
    last = function.rpartition(".")[2]
    for row in NVIDIA:
        if row.why_not and last in re.findall(r"\w+", row.gluon):
            return row
    return None
