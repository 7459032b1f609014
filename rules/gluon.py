"""Gluon's operations: what each does, where it is, and what each Triton calls it. One row per operation.

The translator thinks and writes in the names of Triton 3.9, its vocabulary. What is impure, what is a copy, what is a product, what a
report highlights and whether a partition may compute it again is derived from `Effect`. A Triton that calls an operation or a module
otherwise has it in `spelled` of that row: `in_words_of` gives the names in which an output for that Triton is written
(`translator/output/file/import_aliases.py` puts them in, as the last thing that happens to a file), and `operation` finds the row of a name in
any of them. An operation without a row is taken for one that does everything: nothing is pure because nobody knew it.

Names of `triton.language` that Gluon has too come from `rules/builtins.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from gluonize.rules.architecture import FAMILIES
from gluonize.rules.builtins import BUILTINS
from gluonize.rules.targets import TARGETS, Target

VOCABULARY = "3.9"  # the Triton whose names the translator uses


class Effect(enum.Flag):
    """What evaluating a call does beside giving a value of its arguments."""

    NOTHING = 0
    LOADS = enum.auto()  # reads global memory
    STORES = enum.auto()  # writes global memory
    READS = enum.auto()  # reads LDS
    FILLS = enum.auto()  # writes LDS, or has a copy to it started
    ALLOCATES = enum.auto()  # LDS
    COMMITS = enum.auto()  # ends a group of copies
    WAITS = enum.auto()  # for copies, or for a barrier in LDS
    SIGNALS = enum.auto()  # an arrival at a barrier in LDS
    MEETS = enum.auto()  # warps, or workgroups of a cluster, wait for each other
    SCHEDULES = enum.auto()  # says something to the compiler's schedule, or to that of warps
    COMBINES = enum.auto()  # values of several lanes and warps, as many as there are
    CHECKS = enum.auto()  # a promise or an assertion
    PRINTS = enum.auto()
    CONVERTS = enum.auto()  # a tensor moves to another layout
    MULTIPLIES = enum.auto()  # a product of matrices
    DESCRIBES = enum.auto()  # makes a descriptor of a tensor in memory


# What gives the same value wherever and however often it is done.
PURE = Effect.CONVERTS | Effect.MULTIPLIES | Effect.DESCRIBES
ANYTHING = Effect.LOADS | Effect.STORES | Effect.READS | Effect.FILLS | Effect.MEETS

PARTITIONS = "warp_specialize"  # runs functions on warps of their own

# Where operations are. `METHOD`, `MEMORY`: methods of tensors, of places in LDS. The others are modules, in `MODULES`.
METHOD, MEMORY = "tensor", "memory"


@dataclass(frozen=True)
class Module:
    """name: what outputs call it. path: where it is, `{family}` for that of a target. spelled: (first version, path) where it is elsewhere.
    needs: the capability of targets that have it."""

    name: str
    path: str
    needs: str = ""
    spelled: tuple[tuple[str, str], ...] = ()

    def path_in(self, version: str) -> str:
        return at_version(version, self.spelled, self.path)


GLUON = "triton.experimental.gluon"
_AMD = f"{GLUON}.language.amd"
MODULES: dict[str, Module] = {
    m.name: m
    for m in (
        Module("gluon", GLUON),
        Module("gl", f"{GLUON}.language"),
        Module("amd", _AMD),
        *(Module(family, f"{_AMD}.{family}") for family in ("cdna3", "cdna4", "cdna5", "rdna3", "rdna4")),
        Module("async_copy", f"{_AMD}.{{family}}.async_copy", needs="has_async_copies"),
        Module("tdm", f"{_AMD}.{{family}}.tdm", needs="supports_tdm"),
        Module("mbarrier", f"{_AMD}.{{family}}.mbarrier", needs="supports_tdm"),
        Module("cluster", f"{_AMD}.{{family}}.cluster", needs="supports_tdm"),
        Module("hint", f"{_AMD}.hint", spelled=(("3.7", ""),)),
    )
}
OLDER_FAMILIES = {"gfx1250": "cdna5"}  # what Triton 3.8 and older call a family's module


@dataclass(frozen=True)
class Op:
    """One operation.

    home: its module, METHOD or MEMORY; several where each target has its own. effect: what it does. operands: parameters that are tensors
    or places, in the order of Gluon's signature. needs: the capability (a field or property of `rules/targets.py`) of targets that have it.
    fits: of a layout, `type` or `shape` where it fits one element type or one shape only. shape_at: which argument of a layout is the shape
    that it is for. takes_shape: whether the call is given the shape of its result. spelled: (first version, name) for each Triton from
    which on it is called otherwise, "" where it does not exist; `tl.NAME` for one that is written through `triton.language` there,
    `memory.NAME` for one that is a method of its first operand. added: (first version, parameter, its default) of parameters that a
    Triton has and those before it have not.
    """

    name: str
    home: tuple[str, ...]
    effect: Effect = Effect.NOTHING
    operands: tuple[str, ...] = ()
    needs: str = ""
    fits: str = ""
    shape_at: int | None = None
    takes_shape: bool = False
    spelled: tuple[tuple[str, str], ...] = ()
    added: tuple[tuple[str, str, object], ...] = ()

    @property
    def is_pure(self) -> bool:
        return not self.effect & ~PURE

    def serves(self, target: Target) -> bool:
        return not self.needs or bool(getattr(target, self.needs))

    def name_in(self, version: str) -> str:
        """What a Triton calls it, "" where it has no such operation."""
        return at_version(version, self.spelled, self.name)

    def parameters_in(self, version: str) -> dict[str, object]:
        """The parameters that its row names and a Triton has, with the default of those that came later; REQUIRED for its operands."""
        came = {name: default for since, name, default in self.added if release(since) <= release(version)}
        return dict.fromkeys((name for name in self.operands if name != "self"), REQUIRED) | came


REQUIRED = object()


def release(version: str) -> tuple[int, ...]:
    """`3.10.0+git1234` as (3, 10): what rows are told apart by."""
    parts = version.partition("+")[0].split(".")[:2]
    return tuple(int(p) for p in parts if p.isdigit())


def at_version(version: str, spelled: tuple[tuple[str, str], ...], otherwise: str) -> str:
    """The entry of the latest version that is no later than `version`. Those of versions before the vocabulary's hold until that one, the
    others from theirs on."""
    now, own = release(version), release(VOCABULARY)
    found = otherwise
    for since, name in sorted(spelled, key=lambda entry: release(entry[0])):
        first = release(since)
        if first <= now and (first >= own or now < own):
            found = name
    return found


def _ops(home: str, names: str, effect: Effect = Effect.NOTHING, operands: str = "", **fields) -> list[Op]:
    return [Op(name, tuple(home.split()), effect, tuple(operands.split()), **fields) for name in names.split()]


_E = Effect
_OLD = dict(spelled=(("3.7", ""),))  # is there from Triton 3.9 on
_REGISTERS = (("3.9", "cd_regclass", None),)  # in which registers the sum is
_COPIES = Effect.LOADS | Effect.FILLS
_FAMILIES = "cdna3 cdna4 cdna5"


class Layouts(enum.StrEnum):
    """The classes of layouts by their names."""

    AUTO = "AutoLayout"
    COALESCED = "CoalescedLayout"
    BLOCKED = "BlockedLayout"
    SLICE = "SliceLayout"
    LINEAR = "DistributedLinearLayout"
    OPERAND = "DotOperandLayout"
    MFMA = "AMDMFMALayout"
    WMMA = "AMDWMMALayout"
    SWIZZLED = "SwizzledSharedLayout"
    PADDED = "PaddedSharedLayout"
    SHARED_LINEAR = "SharedLinearLayout"
    PARTITIONED = "PartitionedSharedLayout"
    BARRIER = "MBarrierLayout"
    NVIDIA_PRODUCT = "NVMMADistributedLayout"
    NVIDIA_SHARED = "NVMMASharedLayout"


IDENTITY = "with_identity_for"  # the other constructor of padded layouts
EFFICIENT_PADDING = "compute_efficient_padded_shared_layout"
# Functions that give layouts in translations of one launch: Gluon's, and those of the output (gluonize.decide.layouts.rule_texts).
GIVE_LAYOUTS = frozenset({EFFICIENT_PADDING, "direct_copy", "wide_store", "transposed_in_lanes"})
DISTRIBUTED = (Layouts.BLOCKED, Layouts.SLICE, Layouts.LINEAR, Layouts.OPERAND, Layouts.MFMA, Layouts.WMMA)
SHARED = (Layouts.SWIZZLED, Layouts.PADDED, Layouts.SHARED_LINEAR, Layouts.PARTITIONED)

_LAYOUTS = (
    *(
        _ops("gl", name)[0]
        for name in (Layouts.AUTO, Layouts.COALESCED, Layouts.BLOCKED, Layouts.SLICE, Layouts.SWIZZLED)
    ),
    *(_ops("gl", name)[0] for name in (Layouts.NVIDIA_PRODUCT, Layouts.NVIDIA_SHARED)),
    *_ops("gl", Layouts.OPERAND, fits="type"),
    *_ops("gl", Layouts.LINEAR, fits="shape", shape_at=4),
    *_ops("gl", Layouts.PADDED, fits="shape", shape_at=3),
    *_ops("gl", Layouts.SHARED_LINEAR, fits="shape"),
    *_ops("amd", Layouts.MFMA, fits="type"),
    *_ops("amd", Layouts.WMMA, fits="type"),
    *_ops("cdna5", Layouts.PARTITIONED),
    *_ops("mbarrier", Layouts.BARRIER),
    *_ops("gl", "to_linear_layout"),
    *_ops("gl", IDENTITY),
    *_ops("cdna4", f"{EFFICIENT_PADDING} get_mfma_scale_layout"),
    *_ops("cdna5", "get_wmma_scale_layout make_partitioned_dot_layouts"),
    *_ops(_FAMILIES, "get_scaled_upcast_fp4_scale_layout", **_OLD),
)
_PLAIN = (
    *_ops("gl", "constexpr num_warps num_ctas pointer_type tuple full_like"),
    *_ops("gl", "convert_layout set_auto_layout", _E.CONVERTS, "value"),
    *_ops("gl", "fp4_to_fp", operands="src"),
    *_ops("gl", "inline_asm", ANYTHING, **_OLD),
    *_ops("gl", "barrier", _E.MEETS),
    *_ops("gl", PARTITIONS, ANYTHING, needs="supports_warp_specialization"),
    *_ops("gl", "bank_conflicts"),
    *_ops("amd", "slice", operands="source"),
    # How many stages apart the two groups of warps are (Triton's pull request 11798): what 3.9 does is its default.
    *_ops("amd", "warp_pipeline_stage", _E.SCHEDULES, added=(("3.10", "phase_gap", 1),)),
    *_ops("hint", "sched_barrier", _E.SCHEDULES, **_OLD),
    *_ops("gluon", "jit constexpr_function"),
)
_PRODUCTS = (
    *_ops("gl", "dot_fma", _E.MULTIPLIES, "a b acc"),
    *_ops("cdna3 cdna4", "mfma", _E.MULTIPLIES, "a b acc", added=_REGISTERS),
    *_ops("rdna3 rdna4 cdna5", "wmma", _E.MULTIPLIES, "a b acc"),
    *_ops("cdna4", "mfma_scaled", _E.MULTIPLIES, "a a_scale a_format b b_scale b_format acc", added=_REGISTERS),
    *_ops("cdna5", "wmma_scaled", _E.MULTIPLIES, "a a_scale a_format b b_scale b_format acc"),
    *_ops(_FAMILIES, "scaled_upcast", operands="src scale"),
    *_ops(_FAMILIES, "scaled_downcast", operands="input scale", **_OLD),
)
_MEMORY = (
    *_ops(_FAMILIES, "buffer_load", _E.LOADS, "ptr offsets mask other"),
    *_ops(_FAMILIES, "buffer_store", _E.STORES, "stored_value ptr offsets mask"),
    *_ops(
        _FAMILIES,
        "buffer_atomic_add buffer_atomic_max buffer_atomic_min buffer_atomic_and buffer_atomic_or buffer_atomic_xor buffer_atomic_xchg",
        _E.LOADS | _E.STORES,
        "ptr offsets value mask",
    ),
    *_ops("gl", "allocate_shared_memory", _E.ALLOCATES, "value", takes_shape=True),
    *_ops(
        "async_copy", "global_load_to_shared", _E.LOADS | _E.FILLS, "dest ptr mask other", needs="copies_take_buffers"
    ),
    *_ops("async_copy", "global_to_shared", _E.LOADS | _E.FILLS, "smem pointer mask other", needs="supports_tdm"),
    *_ops("async_copy", "buffer_load_to_shared", _COPIES, "dest ptr offsets mask other", needs="copies_take_buffers"),
    *_ops("async_copy", "shared_to_global", _E.READS | _E.STORES, "pointer smem mask", needs="copies_to_global"),
    # Copies are marked for LLVM (Triton's pull request 9883): other reads do not wait for them either, and it is to go (10599).
    *_ops(
        "async_copy",
        "load_shared_relaxed",
        _E.READS,
        "smem",
        needs="relaxed_lds_reads",
        spelled=(("3.10", "memory.load"),),
    ),
    *_ops("async_copy", "commit_group", _E.COMMITS),
    *_ops("async_copy", "wait_group", _E.WAITS),
    *_ops("async_copy", "mbarrier_arrive", _E.SIGNALS),
    *_ops("tdm", "make_tensor_descriptor", _E.DESCRIBES, "base"),
    *_ops("tdm", "update_tensor_descriptor", _E.DESCRIBES, "desc"),
    *_ops("tdm", "async_load", _E.LOADS | _E.FILLS, "src dest"),
    *_ops("tdm", "async_gather", _E.LOADS | _E.FILLS, "desc dst"),
    *_ops("tdm", "async_load_fused", _E.LOADS | _E.FILLS, **_OLD),
    *_ops("tdm", "async_store", _E.READS | _E.STORES, "dest src"),
    *_ops("tdm", "async_scatter", _E.READS | _E.STORES, "desc src"),
    *_ops("tdm", "prefetch", _E.SCHEDULES),
    *_ops("tdm", "async_wait", _E.WAITS),
    *_ops("mbarrier", "init arrive", _E.SIGNALS),
    *_ops("mbarrier", "wait", _E.WAITS),
    *_ops("cluster", "arrive", _E.SIGNALS),
    *_ops("cluster", "wait", _E.WAITS),
    *_ops("cdna4 cdna5", "load_shared_fp4_repacked", _E.READS, "mem_desc", **_OLD),
)
_METHODS = (
    *_ops(MEMORY, "load", _E.READS, "self"),
    *_ops(MEMORY, "store", _E.FILLS, "self value"),
    *_ops(MEMORY, "gather", _E.READS, "self indices"),
    *_ops(MEMORY, "scatter", _E.FILLS, "self values indices"),
    *_ops(MEMORY, "index slice permute reshape", operands="self"),
    *_ops(MEMORY, "reinterpret", operands="self", **_OLD),
    *_ops(METHOD, "to permute reshape broadcast_to expand_dims trans split", operands="self"),
    *_ops(METHOD, "sum", _E.COMBINES, "self"),
)

# Of `triton.language`, by the kind of their row; what a kind does not say is said by name.
_OF_KIND = {
    "load": _E.LOADS,
    "store": _E.STORES,
    "atomic": _E.LOADS | _E.STORES,
    "reduce": _E.COMBINES,
    "scan": _E.COMBINES,
    "gather": _E.COMBINES,
    "histogram": _E.COMBINES,
    "helper": _E.COMBINES,
    "dot": _E.MULTIPLIES,
    "dot_scaled": _E.MULTIPLIES,
    "descriptor": _E.LOADS | _E.STORES,
}
_BY_NAME = {
    **dict.fromkeys(("static_assert", "assume", "device_assert"), _E.CHECKS),
    **dict.fromkeys(("device_print", "static_print"), _E.PRINTS),
    "debug_barrier": _E.MEETS,
    "make_tensor_descriptor": _E.DESCRIBES,
    "map_elementwise": ANYTHING,  # what the mapped function does
    "inline_asm_elementwise": ANYTHING,
}
# What Gluon itself lacks in a version: `triton.language` has it there.
_THROUGH_LANGUAGE = {name: (("3.7", f"tl.{name}"),) for name in ("cumsum", "cumprod")}
_THROUGH_LANGUAGE |= {name: (("3.7", ""),) for name in ("atomic_load", "atomic_store", "atomic_poll")}

BUILTIN_NAMES = frozenset(row.name for row in BUILTINS.rows)

OPS: tuple[Op, ...] = (
    *_LAYOUTS,
    *_PLAIN,
    *_PRODUCTS,
    *_MEMORY,
    *_METHODS,
    *(
        Op(row.name, ("gl",), _BY_NAME.get(row.name, _OF_KIND.get(row.kind, _E.NOTHING)), needs=row.needs,
           takes_shape=row.name in ("full", "reshape", "zeros"), spelled=_THROUGH_LANGUAGE.get(row.name, ()))
        for row in BUILTINS.rows
    ),
)  # fmt: skip


LAYOUTS = frozenset(op.name for op in _LAYOUTS)  # what makes a layout, or tells one


@cache
def _by_name() -> Mapping[str, tuple[Op, ...]]:
    """The operations of a name, in the vocabulary or in the words of any version."""
    found: dict[str, tuple[Op, ...]] = {}
    for op in OPS:
        others = (name.rpartition(".")[2] for _, name in op.spelled if name and not name.startswith(f"{MEMORY}."))
        for name in dict.fromkeys((op.name, *others)):
            found[name] = (*found.get(name, ()), op)
    return found


def operations(name: str) -> tuple[Op, ...]:
    """The operations of a name: `load` is one of addresses, and a method of places in LDS. () for what is none of Gluon's."""
    return _by_name().get(name.rpartition(".")[2], ())


def effect(name: str) -> Effect:
    """What a call of an operation may do, by the last part of its name; ANYTHING of an unknown one."""
    found = operations(name)
    if not found:
        return ANYTHING
    every = Effect.NOTHING
    for op in found:
        every |= op.effect
    return every


def is_pure(name: str) -> bool:
    """Whether a call of that name gives the same value wherever and however often it is made; not of what is unknown."""
    return not effect(name) & ~PURE


def named(effects: Effect, *homes: str) -> frozenset[str]:
    """The names of operations that have one of the effects, of the vocabulary and of every version; homes: where they are, anywhere without."""
    return frozenset(
        name
        for name, ops in _by_name().items()
        if any(op.effect != ANYTHING and op.effect & effects and (not homes or set(homes) & set(op.home)) for op in ops)
    )


def copies_to_lds(target: Target) -> tuple[str, str]:
    """What copies a tile of pointers to LDS on a target, and what one of a base and offsets; "" where it has none."""
    found = [op for op in OPS if "async_copy" in op.home and op.effect & Effect.FILLS and op.serves(target)]
    by_pointers = next((op.name for op in found if "offsets" not in op.operands), "")
    return by_pointers, next((op.name for op in found if "offsets" in op.operands), "")


def buffer_atomics(bf16_sum: bool) -> str:
    """The family's module whose buffer atomics are written; they lower on every target (`lowered`), sums of bf16 in one module alone."""
    return "cdna4" if bf16_sum else "cdna3"


def class_name(value: object) -> str:
    """The class of a layout in the vocabulary, whatever the installed Triton calls it."""
    name = type(value).__name__
    return next((op.name for op in operations(name)), name)


def shape_at(layout: str) -> int | None:
    """The place of the shape among the arguments of a layout's constructor, None where it has none."""
    return next((op.shape_at for op in operations(layout)), None)


def newest_namespaces() -> Mapping[str, str]:
    """A family's module under `amd` -> the first target that has it: the newest first, and those of data centers before the others."""
    first: dict[str, str] = {}
    for target in TARGETS.values():
        first.setdefault(target.gluon_module, target.name)
    older = {old: first[new] for old, new in OLDER_FAMILIES.items()}
    newest = sorted(first, key=lambda module: (module[:-1], -int(module[-1])))
    return {name: first[name] for name in newest[:1]} | older | {name: first[name] for name in newest}


def in_words_of(version: str) -> Mapping[tuple[str, str], str]:
    """(module or kind of method, operation) -> what that Triton calls it, of those that it calls otherwise; "" where it has none."""
    return {(home, op.name): name for op in OPS if (name := op.name_in(version)) != op.name for home in op.home}


def path_in(version: str, path: str) -> str:
    """Where a Triton has a module of Gluon's for AMD GPUs that the vocabulary has at `path`; "" where it has none."""
    for family in FAMILIES:
        for module in MODULES.values():
            if module.path.format(family=family) == path:
                return module.path_in(version).format(family=family)
    return path
