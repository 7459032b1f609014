"""Translations of a kernel's launches for other sizes, each made once, in the words of the launch that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.general.box import Point
from gluonize.general.converted_texts import in_words_of
from gluonize.general.detours import without_detours
from gluonize.general.launches.ring_depth import STAGES_TRIED, RingDepth, with_stages
from gluonize.general.layout_roles import (
    Classes,
    classes,
    loosened,
    roles,
    same_through_lds,
    stored_as_loaded,
    told_apart,
)
from gluonize.read.spec.launch import LaunchSpec
from gluonize.write.function.merge import merge_plain
from gluonize.write.state.emitted import EmittedKernel
from gluonize.write.state.unit import Synthesized

WARPS = "num_warps"
Moved = frozenset[tuple[str, str]]  # pointer variables whose base moves from tile to tile, with their functions

Key = tuple[int, Point]  # a launch that is asked for, by number, with other sizes
State = tuple["Loose", Classes, list[EmittedKernel], dict[Key, EmittedKernel | None]]


class Loose(Enum):
    """What of Triton's decisions translations for other sizes do without."""

    NOTHING = 0
    PLACES = 1  # those of `layout_roles.loosened`, and layouts that values only pass through
    ROWS = 2  # and those on where rows lie, and on what goes through LDS for all sizes that are looked at first
    LOOPS = 3  # and those on which loads run ahead of their loop: none does


@dataclass(frozen=True)
class Given:
    """A launch that is asked for, traced and translated. widths: bits of the elements of pointers, by argument."""

    spec: LaunchSpec
    traced: TracedLaunch
    emitted: EmittedKernel
    num_warps: int
    widths: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Tools:
    """trace: traces a launch. write: translates a traced launch in which the given pointer variables have a base that moves.
    Both give None for what is refused. depth: what gives the depth of rings, which is then left out of translations. functions: those
    that other texts of the kernel have, by their names."""

    trace: Callable[[LaunchSpec], TracedLaunch | None]
    write: Callable[[TracedLaunch, Moved], EmittedKernel | None]
    depth: RingDepth | None = None
    functions: Mapping[str, Synthesized] = field(default_factory=dict)

    @property
    def remembering(self) -> Tools:
        """The same, but that launches which differ in their values alone are traced once."""
        known: dict[str, TracedLaunch | None] = {}

        def trace(spec: LaunchSpec) -> TracedLaunch | None:
            key = repr((spec.kernel, spec.signature, spec.constexprs, spec.attrs, spec.options))
            if key not in known:
                known[key] = self.trace(spec)
            return known[key]

        return replace(self, trace=trace)


class Trials:
    """names: of the sizes, the number of warps last."""

    def __init__(self, given: Sequence[Given], names: Sequence[str], tools: Tools):
        self.given, self.names, self.tools, self.loose = list(given), names, tools, Loose.NOTHING
        self.points: list[Point] = list(map(self._point, given))
        self.traced: dict[Key, TracedLaunch | None] = {
            (i, point): g.traced for i, (g, point) in enumerate(zip(given, self.points))
        }
        self.own: list[EmittedKernel] = []
        self.found: dict[Key, EmittedKernel | None] = {}
        self.deeper: dict[tuple[int, Point, int], EmittedKernel | None] = {}  # with other `num_stages`
        self.moved: list[Moved] = [frozenset(key for key, moves in g.emitted.moving.items() if moves) for g in given]
        self.start(())

    def _point(self, given: Given) -> Point:
        return (*(given.spec.constexprs[name] for name in self.names[:-1]), given.num_warps)

    def sizes(self, key: Key) -> dict[str, int]:
        """The sizes of a launch, and the bits of its elements."""
        return dict(zip(self.names, key[1])) | dict(self.given[key[0]].widths)

    def add(self, given: Given) -> int:
        """Another launch, which tells apart what the others do; -> its number."""
        number, point = len(self.given), self._point(given)
        self.given.append(given)
        self.points.append(point)
        self.moved.append(self.moved[0])
        self.traced[number, point] = given.traced
        self.own.append(self._written(given.traced, number, None) or given.emitted)
        self.found[number, point] = self.own[-1]
        return number

    def drop(self) -> None:
        """Forget the launch that was added last."""
        number = len(self.given) - 1
        for kept in (self.given, self.points, self.moved, self.own):
            kept.pop()
        for key in [key for key in (*self.found, *self.traced) if key[0] == number]:
            self.found.pop(key, None)
            self.traced.pop(key, None)
        self.deeper = {key: emitted for key, emitted in self.deeper.items() if key[0] != number}

    def start(self, beside: Iterable[Key], loose: Loose = Loose.NOTHING) -> None:
        """Forget all translations; those to come tell apart what has different layouts in one of the launches `beside`, and do without
        what is `loose`."""
        self.loose = loose
        launches = [g.traced for g in self.given]
        launches += [traced for key in beside if (traced := self.trace(*key)) is not None]
        self.through_lds = same_through_lds(launches)
        self.classes: Classes = classes([roles(self._seen(launch)) for launch in launches])
        self.found, self.deeper = {}, {}
        self.own = [self._written(g.traced, i, g.emitted) or g.emitted for i, g in enumerate(self.given)]
        self.found = {(i, point): own for i, (point, own) in enumerate(zip(self.points, self.own))}

    @property
    def state(self) -> State:
        """How launches are translated, and all translations."""
        return self.loose, self.classes, self.own, self.found

    @state.setter
    def state(self, state: State) -> None:
        self.loose, self.classes, self.own, self.found = state

    def _seen(self, traced: TracedLaunch) -> TracedLaunch:
        traced = stored_as_loaded(traced)
        if self.loose is Loose.NOTHING:
            return traced
        if self.loose is Loose.PLACES:
            return loosened(traced, False, self.through_lds)
        return loosened(traced, True, nothing_ahead=self.loose is Loose.LOOPS)

    def trace(self, i: int, point: Point) -> TracedLaunch | None:
        if (i, point) not in self.traced:
            self.traced[i, point] = self.tools.trace(with_sizes(self.given[i].spec, dict(zip(self.names, point))))
        return self.traced[i, point]

    def at(self, i: int, point: Point) -> EmittedKernel | None:
        """The translation of a launch for other sizes; None where it has another text."""
        if (i, point) not in self.found:
            traced = self.trace(i, point)
            emitted = None if traced is None else self._written(traced, i, None)
            self.found[i, point] = self._in_words(i, emitted)
        return self.found[i, point]

    def staged(self, i: int, point: Point, stages: int = STAGES_TRIED[-1]) -> EmittedKernel | None:
        """`at` with another `num_stages`."""
        if (i, point, stages) not in self.deeper:
            traced = self.trace(i, point)
            traced = None if traced is None else self.tools.trace(with_stages(traced.spec, stages))
            emitted = None if traced is None else self._written(traced, i, None)
            self.deeper[i, point, stages] = self._in_words(i, emitted)
        return self.deeper[i, point, stages]

    def _in_words(self, i: int, emitted: EmittedKernel | None) -> EmittedKernel | None:
        """A translation with the names of layouts that the launch with number `i` has; None where it has another text."""
        return None if emitted is None else in_words_of(self.own[i], emitted, self.loose is Loose.NOTHING)

    def good(self, point: Point) -> bool:
        return all(self.at(i, point) is not None for i in range(len(self.given)))

    def unmoved(self, i: int, point: Point) -> EmittedKernel | None:
        """A launch for other sizes, with the deepest rings where `num_stages` says their depth, in which what moves from tile to tile
        is as Triton's sizes alone have it."""
        traced, depth = self.trace(i, point), self.tools.depth
        if traced is not None and depth is not None and depth.ranges:
            traced = self.tools.trace(with_stages(traced.spec, STAGES_TRIED[-1]))
        return None if traced is None else self._written(traced, i, None, frozenset())

    def _written(
        self, traced: TracedLaunch, i: int, known: EmittedKernel | None, moved: Moved | None = None
    ) -> EmittedKernel | None:
        """A launch translated with its roles told apart, in the words of the one with number `i`; known: its translation without;
        moved: instead of what moves in that."""
        apart, depth = told_apart(self._seen(traced), self.classes), self.tools.depth
        moved = self.moved[i] if moved is None else moved
        emitted = known if apart is traced and known is not None else self.tools.write(apart, moved)
        if emitted is not None and self.loose is not Loose.NOTHING:
            emitted = without_detours(emitted)
        return emitted if depth is None or emitted is None else depth.taken_out(emitted, traced)


def joinable(one: EmittedKernel, other: EmittedKernel) -> bool:
    """Whether two translations differ in nothing but layouts and what one text can say for both."""
    mine, theirs = one.kernel.laid_out, other.kernel.laid_out
    if mine is None or theirs is None or mine.depths != theirs.depths:
        return False
    if mine.function.text != theirs.function.text and merge_plain(mine.function, theirs.function) is None:
        return False
    if [name for name, _ in mine.constants] != [name for name, _ in theirs.constants]:
        return False
    helpers = [[(h.name, h.text) for h in emitted.helpers] for emitted in (one, other)]
    return helpers[0] == helpers[1]


def with_sizes(spec: LaunchSpec, sizes: dict[str, int]) -> LaunchSpec:
    """The launch with other tile sizes and another number of warps, and no values: those are of the given sizes."""
    tiles = {name: value for name, value in sizes.items() if name != WARPS}
    return replace(spec, constexprs=spec.constexprs | tiles, options=spec.options | {WARPS: sizes[WARPS]}, values={})


__all__ = ["Given", "Key", "Loose", "State", "Tools", "Trials", "WARPS", "joinable", "with_sizes"]
