"""Which values Triton puts into LDS to read them back as matrix operands, outside of its pipelined loops.

After `reduce-data-duplication` such a value is the initial content of an allocation of its own. The allocation keeps the
location of the value, so the value's source expression names it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gluonize.decide.layouts.padding import padded_rows
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Layout, SharedLayout
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op, Region
from gluonize.trace.passes.anchors import Path, path_of

# How long allocations of a TTGIR module hold LDS, and which of them hold more of it at once if their reads come later.


@dataclass
class _Held:
    """size: in bits; first, last: operations from which and up to which it is held; used: the last one that uses what is read."""

    size: int
    first: int
    last: int
    used: int


def crowded_by_late_reads(module: Module, most_lds: Callable[[int], int]) -> set[str]:
    """The allocations which, if they were read where the values are used, would take the kernel's LDS beyond what it may be.

    most_lds: the bytes that it may have, for the bytes that it has.
    """
    held: dict[str, _Held] = {}
    owner: dict[str, str] = {}  # alias, or value that was read -> allocation
    values: set[str] = set()
    for i, op in enumerate(module.walk()):
        for name in op.operands:
            if (of := owner.get(name)) is not None:
                held[of].used = i
                held[of].last = held[of].last if name in values else i
        if op.name == "ttg.local_alloc":
            (name,) = op.results
            held[name] = _Held(op.type.size * bits_of(op.type.element), i, i, i)
            owner[name] = name
        elif op.name.startswith("ttg.memdesc_") and op.operands[0] in owner:
            owner[op.results[0]] = owner[op.operands[0]]
        elif op.name == "ttg.local_load" and op.operands[0] in owner:
            owner[op.results[0]] = owner[op.operands[0]]
            values.add(op.results[0])
    most = 8 * most_lds(max((_at_once(held, x.first) for x in held.values()), default=0) // 8)
    return {
        name
        for name, late in held.items()
        if any(_at_once(held, x.first, late) > most for x in held.values() if late.last < x.first <= late.used)
    }


def _at_once(held: dict[str, _Held], at: int, late: _Held | None = None) -> int:
    """Bits held at an operation; late: an allocation that is held longer than to its last read."""
    return sum(x.size for x in held.values() if x.first <= at <= (x.used if x is late else x.last))


@dataclass(frozen=True)
class OperandInLds:
    """element: in MLIR's spelling; read: the operand layouts in which it is read back, and whether transposed. loaded, stored:
    where a transpose within each lane comes before the store, the layouts before and after it. at_once: whether all is read before
    the next such allocation, which would need more LDS otherwise."""

    shape: tuple[int, ...]
    element: str
    shared: SharedLayout
    read: tuple[tuple[Layout, bool], ...] = ()
    loaded: Layout | None = None
    stored: Layout | None = None
    at_once: bool = False


def read_operands(
    module: Module, early: frozenset[Path] = frozenset(), banks: int | None = None
) -> dict[Path, tuple[OperandInLds, ...]]:
    """Initialised allocations of a final TTGIR, by the path of visits that made the value (and its callers' paths).

    With `banks`, tiles in a rotating layout are padded instead (`gluonize.decide.layouts.padding`) where addresses are
    kept: for several tiles, or in a loop.
    """
    read, transposes = _reads(module), _in_thread_transposes(module)
    tiles = Counter(op.type.layout for op in module.walk() if _is_filled(op))
    out: dict[Path, tuple[OperandInLds, ...]] = {}
    for op, in_loop in _allocations(module):
        kind, path = op.type, path_of(op)
        if not path or (shared := module.shared(kind, kind.shape)) is None:
            continue
        loaded, stored = transposes.get(op.operands[0], (None, None))
        name = op.results[0]
        shares = tiles[kind.layout] > 1 or in_loop
        if banks and shares and not any(transposed for _, transposed in read.get(name, ())):
            reads = {layout for layout, _ in read.get(name, ())}
            shared = padded_rows(shared, stored, reads, bits_of(kind.element), banks) or shared
        entry = OperandInLds(kind.shape, kind.element, shared, read.get(name, ()), loaded, stored, path in early)
        for n in range(1, len(path) + 1):
            if entry not in out.get(path[:n], ()):
                out[path[:n]] = (*out.get(path[:n], ()), entry)
    return out


def _is_filled(op: Op) -> bool:
    """Whether an operation allocates LDS for a value that it puts there."""
    return op.name == "ttg.local_alloc" and bool(op.operands)


def _allocations(module: Module) -> Iterator[tuple[Op, bool]]:
    """The allocations with a value, and whether each is in a loop."""

    def walk(region: Region, in_loop: bool) -> Iterator[tuple[Op, bool]]:
        for op in (op for block in region.blocks for op in block.ops):
            if _is_filled(op):
                yield op, in_loop
            for inner in op.regions:
                yield from walk(inner, in_loop or op.name in ("scf.for", "scf.while"))

    for function in module.functions.values():
        yield from walk(function.region, False)


def _in_thread_transposes(module: Module) -> dict[str, tuple[Layout, Layout]]:
    """The layouts before and after each transpose within lanes, by the name of its result."""
    moves = (op for op in module.walk() if op.name == "amdg.in_thread_transpose")
    return {op.results[0]: (module.layout(op.operand_types[0]), module.layout(op.type)) for op in moves}


def read_early(module: Module, most_lds: Callable[[int], int]) -> frozenset[Path]:
    """The values that a module without loops reads back in full before it fills other LDS, where later reads would take more
    of it than `most_lds` of what it takes: by their paths. Equal allocations must have been made one."""
    names = _read_at_once(module) & crowded_by_late_reads(module, most_lds)
    return frozenset(path_of(op) for op in module.walk() if _is_filled(op) and op.results[0] in names)


def _read_at_once(module: Module) -> set[str]:
    """The allocations that are read in full before the next one, in the same block."""
    found: set[str] = set()
    later: set[str] = set()
    transposed: dict[str, str] = {}

    def walk(region: Region) -> None:
        name = ""
        for op in (op for block in region.blocks for op in block.ops):
            if _is_filled(op):
                name = op.results[0]
                found.add(name)
            elif op.name == "ttg.memdesc_trans":
                transposed[op.results[0]] = op.operands[0]
            elif op.name == "ttg.local_load":
                read = transposed.get(op.operands[0], op.operands[0])
                later.update({read} - {name})
            elif op.regions:
                name = ""
                for inner in op.regions:
                    walk(inner)

    for function in module.functions.values():
        walk(function.region)
    return found - later


def _reads(module: Module) -> dict[str, tuple[tuple[Layout, bool], ...]]:
    """How allocations are read, by the name of the value."""
    transposed: dict[str, str] = {}
    out: defaultdict[str, tuple[tuple[Layout, bool], ...]] = defaultdict(tuple)
    for op in module.walk():
        if op.name == "ttg.memdesc_trans":
            transposed[op.results[0]] = op.operands[0]
        elif op.name == "ttg.local_load" and op.type.is_tensor:
            name = transposed.get(op.operands[0], op.operands[0])
            out[name] += ((module.layout(op.type), name != op.operands[0]),)
    return out
