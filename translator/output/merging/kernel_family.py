"""The translations of one kernel for several launches, as one public kernel.

Translations that agree but for untaken branches are one (`merge.py`). Those that differ in some places have these under
compile-time conditions (`one_text.py`). What has little in common stays apart as private kernels behind a public one that
picks at compile time. All of it is device code, so decorators and launches keep working.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst
from gluonize.decide.layouts.constructors import Called
from gluonize.gluon.trees.function import (
    JIT,
    Block,
    GluonFunction,
    Statement,
    call_in_block,
    first_after_gap,
    formatted,
    is_layout,
    statements,
    wrapped,
)
from gluonize.gluon.trees.walk import same
from gluonize.numbered import numbered
from gluonize.output.contracts.launch_checks import RunTimeContract, contract_of_texts
from gluonize.output.merging.handed_on import Ranged, condition, picked_by_ranges, refused
from gluonize.output.merging.helper import Helper
from gluonize.output.merging.helper_pool import HelperPool
from gluonize.output.merging.one_text import Variant, one_text
from gluonize.output.programs.runs import together
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.launches.sites.persistent import Shared
from gluonize.read.spec.launch import LaunchSpec
from gluonize.write.contracts import contracts
from gluonize.write.contracts.configuration import (
    CTAS,
    Configuration,
    Key,
    any_of,
    common_keys,
    configuration,
    distinguishing_keys,
)
from gluonize.write.function import merge
from gluonize.write.programs.persistent import for_tiles, persistent
from gluonize.write.state.emitted import EmittedKernel
from gluonize.write.state.unit import Tiles


@dataclass(frozen=True)
class KernelVersion:
    """One kernel translated for one launch."""

    spec: LaunchSpec
    loaded: LoadedKernel
    emitted: EmittedKernel
    num_warps: int
    # Tile sizes, and the number of warps last, where layouts are formulas; and bounds that several of these keep to.
    holds_for: tuple[contracts.SizeRange, ...] = ()
    bounds: tuple[contracts.Bound, ...] = ()
    stages: tuple[contracts.SizeRange, ...] = ()  # what `num_stages` may be, where the depth of rings follows from it
    like: LaunchSpec | None = None  # the launch that was asked for, of which this one has other types or flags
    apart: bool = False  # whether it has a text of its own, for other sizes than those asked for
    unlike: tuple[LaunchSpec, ...] = ()  # launches for which Triton's passes choose layouts of another form

    @property
    def limits(self) -> tuple[contracts.SizeRange | contracts.Bound, ...]:
        """All that is refused otherwise where layouts are formulas."""
        return (*self.holds_for, *self.stages, *self.bounds)

    @property
    def configuration(self) -> Configuration:
        return configuration(self.spec, self.loaded.fn, self.num_warps)


@dataclass(frozen=True)
class Family:
    """A public kernel. before: complete definitions that belong in front of it; served: what each launch has of the facts that
    it is tied to."""

    name: str
    versions: tuple[KernelVersion, ...]
    before: tuple[Block, ...]
    function: GluonFunction
    contract: RunTimeContract
    served: tuple[Configuration, ...]
    notes: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()  # ids of launches that run the translation of an earlier one
    tiles: Tiles | None = None  # None where each program has one
    shared: Shared | None = None  # None where programs have whole tiles

    @property
    def loaded(self) -> LoadedKernel:
        return self.versions[0].loaded


def families_of(versions: Sequence[KernelVersion], pool: HelperPool) -> list[Family]:
    """One family per kernel, in the order of the launches; their helpers go into the pool."""
    by_kernel: dict[tuple, list[KernelVersion]] = {}
    for version in versions:
        by_kernel.setdefault((version.loaded.path, version.loaded.qualname), []).append(version)
    in_order = [version for group in by_kernel.values() for version in group]
    functions, helpers = pool.place_all([version.emitted for version in in_order])
    placed = {id(v): (function, own) for v, function, own in zip(in_order, functions, helpers)}
    return [_family([(v, *placed[id(v)]) for v in group], pool) for group in by_kernel.values()]


def _family(placed: Sequence[tuple[KernelVersion, GluonFunction, list[Helper]]], pool: HelperPool) -> Family:
    """The public kernel for the launches of one kernel, each with its function and the helpers that this calls."""
    versions = [version for version, _, _ in placed]
    name = versions[0].emitted.kernel.name
    groups: list[_Group] = []
    for version, function, own in placed:
        for number, (known, members, helpers) in enumerate(groups):
            if members[0].limits == version.limits and (joined := merge.merge(known, function)) is not None:
                groups[number] = (joined, [*members, version], [*helpers, *own])
                break
        else:
            groups.append((function, [version], own))
    notes: list[str] = []
    groups, untold = _told_apart(groups)
    if untold:
        notes.append(
            f"{name}: device code cannot tell {', '.join(v.spec.id for v in untold)} from earlier launches, whose translation serves it"
        )
    ranged = len({v.limits for v in versions}) > 1
    keys = () if ranged else distinguishing_keys([[v.configuration for v in members] for _, members, _ in groups]) or ()
    members = [Member(function, tuple(v), tuple(helpers)) for function, v, helpers in groups]
    contract = RunTimeContract.of([v.emitted.record for v in versions]) if ranged else _contract(members, keys)
    known = {key for v in versions for key in v.configuration} - (
        {CTAS} - set(common_keys(v.configuration for v in versions))
    )
    if len(members) == 1:
        before, function = (), members[0].checked(name)
    elif ranged:
        ranges = [m.ranged(name) for m in members]
        before, function = picked_by_ranges(name, ranges, pool.taken, versions[0].emitted.tiles)
    elif len(alike := _alike(members)) == 1:
        ((_, function),) = alike
        before, function = (), with_assertions(function, _told(name, members, keys))
    else:
        before, function = _dispatcher(name, alike, keys, pool.taken)
    served = tuple(
        {key: value for key, value in c.items() if key in keys or key in known and member.needs.wants(key)}
        for member in members
        for c in member.configurations
    )
    ids = tuple(v.spec.id for v in untold)
    if (tiles := versions[0].emitted.tiles) is not None:
        one, function = persistent(function, tiles, pool.taken)
        before = (*before, one)
    shared = together([v.emitted.shared for v in versions], versions[0].loaded)
    return Family(name, tuple(versions), tuple(before), function, contract, served, tuple(notes), ids, tiles, shared)


def _contract(members: Sequence[Member], keys: Sequence[Key]) -> RunTimeContract:
    """What the launches of all members are asked for; alignment, only of those whose own text rests on it."""
    texts = [([v.emitted.record for v in m.versions], [dict(zip(keys, row)) for row in m.rows(keys)]) for m in members]
    return contract_of_texts(texts, _asserted(members, keys))


def _asserted(members: Sequence[Member], keys: Sequence[Key]) -> dict[str, list[int]]:
    """The values of each constexpr argument whose values the kernel asserts."""
    every = [c for member in members for c in member.configurations]
    asserted = [
        key
        for key in common_keys(every)
        if key.kind == "constexpr" and (key in keys or all(member.needs.wants(key) for member in members))
    ]
    values = {key.name: [c[key] for c in every] for key in asserted}
    return {name: found for name, found in values.items() if {*map(type, found)} == {int}}


_Group = tuple[GluonFunction, list[KernelVersion], list[Helper]]


def _told_apart(groups: Sequence[_Group]) -> tuple[list[_Group], list[KernelVersion]]:
    """The texts that device code can choose between, and the launches of those that differ from an earlier one in nothing that it
    sees, such as the number of stages."""
    kept: list[_Group] = []
    untold: list[KernelVersion] = []
    for group in groups:
        tried = [*kept, group]
        if distinguishing_keys([[v.configuration for v in members] for _, members, _ in tried]) is None:
            untold += group[1]
        else:
            kept = tried
    return kept, untold


def texts_of(versions: Sequence[KernelVersion]) -> int:
    """How many texts launches have that differ in more than layouts and the defaults of added parameters."""
    plain = [(version, version.emitted.kernel.function.plain) for version in versions]
    return len({function.without_parameters(added_parameters(v, function))[0].text for v, function in plain})


def added_parameters(version: KernelVersion, function: GluonFunction) -> set[str]:
    """Parameters such as `NUM_BUFFERS`, which the source does not have."""
    return {p.name.value for p in function.parameters} - {p.name for p in version.loaded.fn.params}


@dataclass(frozen=True)
class Member:
    """One distinct translation and the launches it serves."""

    function: GluonFunction
    versions: tuple[KernelVersion, ...]
    helpers: tuple[Helper, ...]

    @property
    def configurations(self) -> list[Configuration]:
        return [v.configuration for v in self.versions]

    def rows(self, keys: Sequence[Key]) -> list[tuple]:
        return list(dict.fromkeys(tuple(c[key] for key in keys) for c in self.configurations))

    @property
    def read(self) -> set[str]:
        return {name for version in self.versions for name in version.emitted.record.reads}

    @property
    def functions(self) -> list[GluonFunction]:
        return [self.function, *(h.function for h in self.helpers)]

    @functools.cached_property
    def needs(self) -> contracts.Needs:
        version = self.versions[0]
        needed = contracts.needs(version.loaded.fn, self.functions, self.read, self.configurations)
        laid_out = version.emitted.kernel.laid_out
        if laid_out is None or not any(isinstance(layout, Called) for _, layout in laid_out.constants):
            return needed
        # What a function of the output gives may be of any class, that of a product too.
        return replace(needed, elements=True, shapes=contracts.shape_parameters(version.loaded.fn))

    def checked(self, kernel: str) -> GluonFunction:
        """The function with its contract at the top."""
        return with_assertions(self.function, contracts.within(kernel, self.versions[0].limits) + self._others(kernel))

    def ranged(self, kernel: str) -> Ranged:
        """The function for what picks among several by sizes, with the rest of its contract at the top."""
        function = with_assertions(self.function, self._others(kernel))
        return Ranged(function, self.versions[0].limits, added_parameters(self.versions[0], function))

    def _others(self, kernel: str) -> list[str]:
        """What is asserted beside limits of sizes."""
        ranges, every = self.versions[0].holds_for, self.configurations
        elsewhere = [key for key in common_keys(every) if key.name in {size.name for size in ranges}]
        asserted = contracts.assertions(kernel, self.needs, every, elsewhere)
        return asserted + contracts.bits_refused([self.needs], every)


def with_assertions(function: GluonFunction, assertions: Sequence[str]) -> GluonFunction:
    """The function with statements before its layout constants, or before its body if it has none."""
    if not assertions:
        return function
    begun = function.constants or isinstance(function.body[0], cst.If) and is_layout(function.body[0].body.body[0])
    body = function.body if begun else first_after_gap(function.body)
    return function.with_statements(_written(assertions, function.indent), function.constants, body)


def _written(lines: Sequence[str], indent: int) -> tuple[Statement, ...]:
    return statements(wrapped("\n".join(lines), indent)) if lines else ()


def _alike(members: list[Member]) -> list[tuple[list[Member], GluonFunction]]:
    """Groups of members that one text serves, with it."""
    variants = dict(zip(map(id, members), _variants(members)))

    def together(group: Sequence[Member]) -> GluonFunction | None:
        own = [variants[id(m)] for m in group]
        return one_text(own) if len(own) > 1 else group[0].function

    if (every := together(members)) is not None:
        return [(members, every)]
    groups: list[tuple[list[Member], GluonFunction]] = []
    for member in members:
        for number, (group, _) in enumerate(groups):
            if (function := together([*group, member])) is not None:
                groups[number] = [*group, member], function
                break
        else:
            groups.append(([member], member.function))
    return groups


def _variants(members: list[Member]) -> list[Variant]:
    """The members as one text takes them: added parameters that have not all of them with one default are constants."""
    added = [added_parameters(m.versions[0], m.function) for m in members]
    defaults = [m.function.without_parameters(names)[1] for m, names in zip(members, added)]
    differing = {name for own in defaults for name in own if len({d.get(name) for d in defaults}) > 1}
    out = []
    for member in members:
        function, own = member.function.without_parameters(differing)
        if own:
            lines = [f"{name}: gl.constexpr = {value}" for name, value in sorted(own.items())]
            function = function.with_statements(function.constants, _written(lines, function.indent), function.body)
        out.append(Variant(function, tuple(member.configurations)))
    return out


def _told(name: str, members: list[Member], keys: tuple[Key, ...]) -> list[str]:
    """What one text of several members refuses."""
    every = [c for member in members for c in member.configurations]
    functions = [function for member in members for function in member.functions]
    read = {name for member in members for name in member.read}
    needed = contracts.needs(members[0].versions[0].loaded.fn, functions, read, every)
    # Layouts fit the tile and the number of warps that they were made for, not those of another launch.
    keys = tuple(key for key in common_keys(every) if key in keys or _decides_layouts(key, needed, every))
    asserted = contracts.assertions(name, needed, every, keys) + contracts.bits_refused([needed], every)
    rows = list(dict.fromkeys(row for member in members for row in member.rows(keys)))
    if len(keys) == 1 and sorted(map(repr, (row[0] for row in rows))) == ["False", "True"]:
        return asserted
    return asserted + contracts.one_of(name, keys, rows)


def _decides_layouts(key: Key, needed: contracts.Needs, every: list[Configuration]) -> bool:
    return (
        key.kind in ("constexpr", "num_warps", "num_ctas")
        and needed.wants(key)
        and len({repr(c[key]) for c in every}) > 1
    )


def _dispatcher(
    name: str, groups: list[tuple[list[Member], GluonFunction]], keys: tuple[Key, ...], taken: set[str]
) -> tuple[list[Block], GluonFunction]:
    """Private kernels, one for each group, and the public one that picks among them by compile-time conditions."""
    members = [member for group, _ in groups for member in group]
    every = [c for member in members for c in member.configurations]
    needed = [member.needs for member in members]
    shared = [
        key
        for key in common_keys(every)
        if len({repr(c[key]) for c in every}) == 1 and all(need.wants(key) for need in needed)
    ]
    before: list[Block] = []
    public, own = _public(members)
    tiles = members[0].versions[0].emitted.tiles
    asserted = contracts.assertions(name, needed[0], every, [key for key in common_keys(every) if key not in shared])
    asserted += contracts.bits_refused(needed, every)
    lines = formatted("\n".join(asserted), public.indent).splitlines() if asserted else []
    # All of the contract is here: autotuning passes over a configuration only if the kernel itself refuses it.
    tested = [
        key
        for key in common_keys(every)
        if key in keys or (key not in shared and any(need.wants(key) for need in needed))
    ]
    rows = [row for member in members for row in member.rows(tested)]
    both = len(tested) == 1 and sorted(map(repr, (row[0] for row in rows))) == ["False", "True"]
    for number, (group, function) in enumerate(groups):
        private = _private_name(name, keys, [row for member in group for row in member.rows(keys)], taken)
        taken.add(private)
        before.append((for_tiles(function.called(private), tiles).defined(JIT),))
        test = condition(any_of(tested, [row for member in group for row in member.rows(tested)]), public.indent)
        lines += [
            ("else:" if both else f"el{test}") if number else test,
            call_in_block(private, for_tiles(function, tiles).handed_on(own)),
        ]
    if not both:
        message = contracts.quoted(contracts.translated_for(name, tested, rows))
        lines += refused(message, public.indent)
    return before, public.with_statements(statements("\n".join(lines) + "\n"))


def _public(members: list[Member]) -> tuple[GluonFunction, set[str]]:
    """A function with the signature of the public kernel, and the arguments that it does not have.

    Arguments that the translation added (`NUM_BUFFERS`) are public only if all translations have the same.
    """
    first = members[0].function
    if all(same(m.function.node.params, first.node.params) for m in members):
        return first, set()
    own = set().union(*(added_parameters(m.versions[0], m.function) for m in members))
    return first.without_parameters(own)[0], own


def _private_name(name: str, keys: Sequence[Key], rows: Sequence[tuple], taken: set[str]) -> str:
    """A name that says what the configurations of a private kernel have in common."""
    common = [i for i in range(len(keys)) if len({repr(row[i]) for row in rows}) == 1]
    tags = list(dict.fromkeys(keys[i].tag(rows[0][i]) for i in common))
    return numbered("_".join(["", name.lstrip("_"), *(tags or ["1"])]), taken.__contains__)
