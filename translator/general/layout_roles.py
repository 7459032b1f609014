"""What has which layout in a launch: the roles of layouts, by which those of other launches are compared.

Two roles may have one layout in one launch and two in another. So that both launches get the same text, the equal layouts are told
apart: one becomes a twin of the other, with a name of its own. A conversion between twins moves nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from gluonize.decide.layouts.gluon_values import linear
from gluonize.decide.readback.operands import OperandInLds
from gluonize.decide.readback.staging import Staged
from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear, Opaque, Slice
from gluonize.trace.passes.anchors import Anchors, Path, PlacedOp, TensorType

# Rows of a launch, tiles with one dimension longer than one, that are loaded once, and computed where they are used.
#
# Where a row has fewer elements than a workgroup has lanes, Triton's passes take it for cheap: it is loaded and computed anew in the layout of
# each use, so launches with other sizes have other loads. Here it is loaded once, as rows that are long enough are.

_COMPUTED = ("arith.", "math.")


def with_rows_once(ops: Iterable[PlacedOp], loads: Set[Path], launch: TracedLaunch) -> list[PlacedOp]:
    """The operations without what computes rows, and each row loaded once. loads: the visits that load."""
    out, seen = [], set()
    for op in ops:
        shape = op.results[0].shape if op.results else ()
        if not shape or not _is_row(shape):
            out.append(op)
        elif op.name == "tt.load":
            if (op.path, shape) not in seen:
                out.append(_as_long(op, shape, launch))
            seen.add((op.path, shape))
        elif not op.name.startswith(_COMPUTED) and op.path not in loads:
            out.append(op)
    return out


def _is_row(shape: tuple[int, ...]) -> bool:
    return sum(length > 1 for length in shape) <= 1


def _as_long(op: PlacedOp, shape: tuple[int, ...], launch: TracedLaunch) -> PlacedOp:
    """A load of a row with fewer elements than lanes in the layout of one with as many: an element per lane."""
    lanes = launch.target.warp_size
    if math.prod(shape) >= lanes * launch.num_warps or launch.num_ctas > 1:
        return op
    layout = one_each(shape, lanes, launch.num_warps)

    def placed(ty: TensorType) -> TensorType:
        return replace(ty, layout=layout) if ty.shape == shape else ty

    return op.retyped(placed)


def one_each(shape: tuple[int, ...], lanes: int, warps: int) -> Blocked:
    """The layout of a row of which each lane has one element; what lanes and warps are left hold the same."""
    along = max(range(len(shape)), key=lambda d: (shape[d] > 1, d))
    order = (along, *(d for d in reversed(range(len(shape))) if d != along))
    lanes_of, warps_of = [1] * len(shape), [1] * len(shape)
    if len(shape) == 1:
        return Blocked((1,), (lanes,), (warps,), order)
    lanes_of[along] = min(lanes, shape[along])
    warps_of[along] = min(warps, max(shape[along] // lanes_of[along], 1))
    lanes_of[order[-1]] = lanes // lanes_of[along]
    warps_of[order[-1]] = warps // warps_of[along]
    return Blocked((1,) * len(shape), tuple(lanes_of), tuple(warps_of), order)


Role = tuple
Roles = Mapping[Role, Layout]
ThroughLds = frozenset[tuple]  # operands by what makes them, and how they go
Classes = Mapping[Role, int]  # roles of one class have the same layout in every launch

_ARITHMETIC = ("arith.", "math.")
_CONSTANT = "arith.constant"  # one for all visits whose layouts are equal: the visit that it is of has another role
_SAME = {"tt.dot_scaled": "tt.dot"}  # an instruction without scales, of which one is deeper
# Operations whose layouts Triton's passes choose; what else the same visit makes has theirs.
_CHOSEN = (
    "load",
    "store",
    "atomic",
    "dot",
    "reduce",
    "scan",
    "gather",
    "scatter",
    "histogram",
    "reshape",
    "split",
    "join",
)


def roles(launch: TracedLaunch) -> Roles:
    """The layout of every role of a launch: operands and results of memory operations, products and reductions, tiles in LDS."""
    out = {}
    for key, op in _numbered(launch.anchors.ops, launch.loose):
        out |= {(*key, slot): ty.layout.root for slot, ty in enumerate(op.types)}
    for nth, (_, staged) in enumerate(sorted(launch.staging.items())):
        parts = (("shared", staged.shared), ("source", staged.source), ("stored", staged.stored))
        out |= {("staged", nth, name): layout.root for name, layout in parts if layout is not None}
    for nth, (_, entries) in enumerate(sorted(launch.operands_in_lds.items())):
        for number, entry in enumerate(entries):
            out["lds", nth, number] = entry.shared
    return {role: layout for role, layout in out.items() if not isinstance(layout, Opaque)}


def ring_bytes(launch: TracedLaunch) -> list[int]:
    """The bytes of each tile that is in LDS several times, in the order of the visits that load them."""
    out = []
    for path, staged in sorted(launch.staging.items()):
        elements = [
            ty.element for op in launch.anchors.at(path, inner=False) for ty in op.results if ty.shape == staged.shape
        ]
        if staged.shared is not None and elements:
            out.append(math.prod(staged.shape) * bits_of(elements[-1]) // 8)
    return out


def classes(samples: Sequence[Roles]) -> Classes:
    """Classes of the roles of the first of some launches. Of each other one those roles count that are of operations, or of tiles, of
    which it has as many: those of a class have the same layout wherever they count."""
    first = _counted(samples[0])
    counting = [{name for name, count in _counted(sample).items() if first[name] == count} for sample in samples]
    known: list[dict[int, Layout]] = []  # the layout of each class by the number of the launch
    out = {}
    for role in samples[0]:
        mine = {i: sample[role] for i, sample in enumerate(samples) if role[0] in counting[i] and role in sample}
        number = next((n for n, its in enumerate(known) if _agree(mine, its)), len(known))
        if number == len(known):
            known.append({})
        known[number] |= mine
        out[role] = number
    return out


def _counted(sample: Roles) -> Counter[str]:
    return Counter(role[0] for role in sample)


def _agree(one: Mapping[int, Layout], other: Mapping[int, Layout]) -> bool:
    return all(other.get(i, layout) == layout for i, layout in one.items())


def told_apart(launch: TracedLaunch, known: Classes) -> TracedLaunch:
    """The launch, where roles of different classes have different layouts: those equal to one of an earlier class are its twins."""
    found = roles(launch)
    twins: dict[Layout, dict[int, int]] = {}
    for role, number in known.items():
        if role in found:
            of_layout = twins.setdefault(found[role], {})
            of_layout.setdefault(number, len(of_layout))
    moved = {
        role: twins[layout][known[role]]
        for role, layout in found.items()
        if role in known and twins[layout][known[role]]
    }
    if not moved:
        return launch
    staging = {path: _staged(nth, staged, moved) for nth, (path, staged) in enumerate(sorted(launch.staging.items()))}
    in_lds = {
        path: tuple(_in_lds(nth, number, entry, moved) for number, entry in enumerate(entries))
        for nth, (path, entries) in enumerate(sorted(launch.operands_in_lds.items()))
    }
    return replace(launch, anchors=_anchors(launch, moved), staging=staging, operands_in_lds=in_lds)


def loosened(
    launch: TracedLaunch, rows_once: bool, through_lds: ThroughLds = frozenset(), nothing_ahead: bool = False
) -> TracedLaunch:
    """The launch without what Triton's passes decided by sizes and a kernel can do without: which operands go through LDS, where a
    conversion has the same lanes read what others hold, and where arithmetic on indices and masks lies. What then lies where nothing
    asks for it has a twin of its own. rows_once: nor where rows lie (`gluonize.general.layout_roles`). through_lds: operands
    that go there whatever the sizes (`same_through_lds`). nothing_ahead: nor which loads run ahead of their loop, so that none does.
    """
    ops = launch.anchors.ops
    kept = {op.path for op in ops if _is_chosen(op)}
    left = [op for op in ops if op.path in kept or not _is_arithmetic_on_indices(op)]
    if rows_once:
        left = with_rows_once(left, {op.path for op in ops if op.name == "tt.load"}, launch)
    staying = {path for path, how in _through_lds(launch).items() if how in through_lds}
    operands = {path: entries for path, entries in launch.operands_in_lds.items() if path in staying}
    staging = {} if nothing_ahead else launch.staging
    return replace(
        launch,
        anchors=Anchors.of(left),
        staging=staging,
        operands_in_lds=operands,
        loose=True,
        loads_once=rows_once,
    )


def stored_as_loaded(launch: TracedLaunch) -> TracedLaunch:
    """The launch, where tiles go to LDS in the layout in which they were loaded instead of one that only reorders what a lane holds:
    Triton's stores to LDS find by themselves which elements of a lane lie next to each other there."""
    staging = {
        path: replace(staged, stored=staged.source) if _reorders_in_lanes(staged) else staged
        for path, staged in launch.staging.items()
    }
    return launch if staging == launch.staging else replace(launch, staging=staging)


def _reorders_in_lanes(staged: Staged) -> bool:
    """Whether a tile lies in the same lanes where it is stored to LDS as where it was loaded."""
    source, stored = staged.source, staged.stored
    if source is None or stored is None or source == stored:
        return False
    one, other = (x if isinstance(x, Linear) else linear(x, staged.shape) for x in (source, stored))
    if one is None or other is None:
        return False
    return (one.lane, one.warp, sorted(one.register)) == (other.lane, other.warp, sorted(other.register))


def same_through_lds(launches: Iterable[TracedLaunch]) -> ThroughLds:
    """The operands that go through LDS in all launches, and in the same way."""
    return frozenset.intersection(*(frozenset(_through_lds(launch).values()) for launch in launches))


def _through_lds(launch: TracedLaunch) -> dict[Path, tuple]:
    """The operands that go through LDS of which Triton's passes choose where they come from, by the path of the visit: that, and how
    they go, but for sizes, layouts and element types."""
    made = {op.path: key for key, op in _numbered(launch.anchors.ops, False)}
    return {
        path: (
            made[path],
            tuple((e.loaded is None, e.at_once, tuple(turned for _, turned in e.read)) for e in entries),
        )
        for path, entries in launch.operands_in_lds.items()
        if path in made
    }


def _is_arithmetic_on_indices(op: PlacedOp) -> bool:
    return bool(op.results) and all(ty.element.startswith("i") for ty in op.results)


def without_twin(layout: Layout) -> Layout:
    """The layout itself, of one that is a twin."""
    if isinstance(layout, (Slice, DotOperand)):
        return replace(layout, parent=without_twin(layout.parent))
    return _twin(layout, 0) if getattr(layout, "twin", 0) else layout


def _is_chosen(op: PlacedOp) -> bool:
    return any(word in op.name for word in _CHOSEN)


def _has_role(op: PlacedOp, loose: bool) -> bool:
    """Whether the layouts of an operation are told apart; of a launch that is loosened, those of arithmetic are too."""
    return _is_chosen(op) or loose and op.name.startswith(_ARITHMETIC) and op.name != _CONSTANT


def _numbered(ops: Iterable[PlacedOp], loose: bool) -> Iterator[tuple[Role, PlacedOp]]:
    """Operations that have roles with their name and which of several such they are: visits have other numbers in other launches."""
    counts: Counter[str] = Counter()
    for op in ops:
        if _has_role(op, loose):
            name = _SAME.get(op.name, op.name)
            yield (name, counts[name]), op
            counts[name] += 1


def _anchors(launch: TracedLaunch, moved: Mapping[Role, int]) -> Anchors:
    """What the visit of an operation with a twin makes beside it in the same layout (masks, values of masked lanes) has the twin too."""
    by_path: dict[Any, dict[Layout, int]] = {}
    slots: dict[int, dict[int, int]] = {}
    for key, op in _numbered(launch.anchors.ops, launch.loose):
        for slot, ty in enumerate(op.types):
            if number := moved.get((*key, slot)):
                slots.setdefault(id(op), {})[slot] = number
                by_path.setdefault(op.path, {})[ty.layout.root] = number
    out = []
    for op in launch.anchors.ops:
        own, beside = slots.get(id(op), {}), {} if _has_role(op, launch.loose) else by_path.get(op.path, {})
        types = [_typed(ty, own.get(slot) or beside.get(ty.layout.root, 0)) for slot, ty in enumerate(op.types)]
        split = len(op.operands)
        out.append(replace(op, operands=tuple(types[:split]), results=tuple(types[split:])))
    return Anchors.of(out)


def _typed(ty: TensorType, number: int) -> TensorType:
    return replace(ty, layout=_twin(ty.layout, number)) if number else ty


def _twin(layout: Layout, number: int) -> Layout:
    if isinstance(layout, (Slice, DotOperand)):
        return replace(layout, parent=_twin(layout.parent, number))
    return replace(layout, twin=number)  # type: ignore[call-arg]


def _staged(nth: int, staged: Staged, moved: Mapping[Role, int]) -> Staged:
    names = ("shared", "source", "stored")
    found = {name: moved.get(("staged", nth, name), 0) for name in names}
    return replace(staged, **{name: _twin(getattr(staged, name), n) for name, n in found.items() if n})


def _in_lds(nth: int, number: int, entry: OperandInLds, moved: Mapping[Role, int]) -> OperandInLds:
    twin = moved.get(("lds", nth, number), 0)
    return replace(entry, shared=_twin(entry.shared, twin)) if twin else entry


__all__ = [
    "Classes",
    "Role",
    "Roles",
    "classes",
    "loosened",
    "ring_bytes",
    "roles",
    "same_through_lds",
    "stored_as_loaded",
    "told_apart",
    "without_twin",
]
