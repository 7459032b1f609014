"""What all functions of one translated kernel share: the trace, Triton's placed operations, imports, helpers, notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.integers.host_bounds import Condition
from gluonize.facts.kernel import KernelFacts
from gluonize.facts.obligations import Obligation, checked, conditions
from gluonize.gluon.imports import Import
from gluonize.gluon.trees.function import GluonFunction
from gluonize.gluon.trees.references import References, references
from gluonize.gluon.written import Written
from gluonize.kept_loops import KeptLoop


@dataclass(frozen=True)
class Synthesized:
    """A function of the output that has no source of its own."""

    name: str
    text: str

    def called(self, name: str) -> Synthesized:
        """The same function under another name."""
        return replace(self, name=name, text=self.text.replace(f"def {self.name}(", f"def {name}(", 1))


@dataclass(frozen=True)
class Tiles:
    """Of a kernel whose programs do one tile of the grid after another. tile, count: the variables with the number of a tile, and how many
    there are; per_unit: programs for each compute unit."""

    tile: str
    count: str
    per_unit: int


@dataclass
class Record:
    """What writing one function used; walks that look for layouts each have their own, which counts for nothing.

    target_module: which of Gluon's modules for AMD GPUs has those of the target.
    """

    target_module: str = ""
    imports: set[Import] = field(default_factory=set)
    globals_needed: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # name -> (value, user's function)
    obligations: set[Obligation] = field(default_factory=set)  # all that the code rests on
    descriptor_tuples: set[str] = field(default_factory=set)  # kernel parameters that take (base, shape, strides)
    image_tuples: set[str] = field(default_factory=set)  # those that take the parts of a descriptor of images
    choices: list[str] = field(default_factory=list)
    kept_loops: list[KeptLoop] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)  # lines for the header: what a reader would miss in the code
    reads: set[str] = field(default_factory=set)  # kernel parameters whose values the code that ran depends on
    filled: set[Any] = field(default_factory=set)  # loops in which operands are put into LDS
    # (layout, statement) -> an expression for it that the statement can make (gluonize.write.calls.instance_layouts)
    instance_layouts: dict[Any, Written] = field(default_factory=dict)
    helpers: list[int] = field(default_factory=list)  # versions called, by index in Unit.helper_versions

    @property
    def buffer_pointers(self) -> set[str]:
        """Kernel parameters that 32-bit offsets must reach."""
        return checked(self.obligations, "storage")

    @property
    def non_negative(self) -> set[str]:
        """Kernel parameters that must not be negative."""
        return checked(self.obligations, "not-negative")

    @property
    def multiples(self) -> set[str]:
        """Kernel parameters, and strides of descriptors (`desc.strides.0`), that must be multiples of 16."""
        return {o.expression for o in self.obligations if o.kind == "multiple"}

    @property
    def aligned(self) -> set[str]:
        """Kernel parameters whose tensors must start at multiples of 16 bytes."""
        return checked(self.obligations, "aligned")

    @property
    def positive(self) -> set[str]:
        """Kernel parameters that must be positive floats."""
        return checked(self.obligations, "positive")

    def is_multiple(self, name: str, rewrite: str) -> None:
        """`name` (`K`, `desc.strides.0`) is a multiple of 16, as Triton finds it in the launches of the translation."""
        self.obligations.add(Obligation(0, name, "multiple", rewrite, "launch", (name.partition(".")[0],)))

    def is_aligned(self, pointer: str, rewrite: str) -> None:
        """The tensor of `pointer` starts at a multiple of 16 bytes, as Triton is told in the launches of the translation."""
        self.obligations.add(Obligation(0, pointer, "aligned", rewrite, "launch", (pointer,)))

    @property
    def conditions(self) -> dict[Condition, str]:
        """What of arguments and programs is checked before a launch, each with an expression that it is for."""
        return conditions(self.obligations)

    @property
    def rests_on(self) -> tuple[Obligation, ...]:
        """All that the code rests on, in the order of the source."""
        rewrite = "a descriptor that the kernel makes"
        made = {Obligation(0, name, "descriptor", rewrite, "launch", (name,)) for name in self.descriptor_tuples}
        promised = {o.expression for o in self.obligations if o.kind == "start" and o.discharge == "contract"}
        every = (
            o
            for o in self.obligations | made
            if o.kind != "start" or o.discharge == "contract" or o.expression not in promised
        )
        return tuple(sorted(every))

    def reaches(self, pointer: str) -> None:
        """32-bit offsets from a kernel parameter, or from a base in its storage, reach what is read."""
        rewrite = "32-bit offsets from a scalar base"
        self.obligations.add(Obligation(0, pointer, "storage", rewrite, "launch", (pointer,)))

    def starts_at(self, pointer: str, proven: bool) -> None:
        """Nothing before a kernel parameter is accessed by offsets from it: proven, or as `tt.pointer_range = 32` has it."""
        rewrite, discharge = "unsigned offsets from an argument", "proven" if proven else "contract"
        self.obligations.add(Obligation(0, pointer, "start", rewrite, discharge))

    def amd(self, module: str, of: str = "") -> str:
        """The name of a module of Gluon's for AMD GPUs, or of one in its module `of`."""
        self.imports.add(Import(f"triton.experimental.gluon.language.amd{of and f'.{of}'}", module))
        return module

    def of_target(self, module: str) -> str:
        """The name of a module of Gluon's for the target."""
        return self.amd(module, self.target_module)

    def need(self, function: Synthesized, user: Any) -> None:
        """A helper that the translation adds, for the function `user`."""
        self.globals_needed[function.name] = (function, user)

    def explain(self, text: str) -> None:
        if text not in self.explained:
            self.explained.append(text)

    def keep_loop(self, line: int, index: str, reason: str) -> None:
        if (kept := KeptLoop(line, index, reason)) not in self.kept_loops:
            self.kept_loops.append(kept)

    def choose(self, text: str) -> None:
        if text not in self.choices:
            self.choices.append(text)


@dataclass(frozen=True)
class Decided:
    """What is decided of a kernel before it is written.

    strategy: a name of gluonize.loops.plan.strategies, None for what the source asks for. plain_descriptors: those that stay
    bounds-masked, by path of the visit or name of the argument, with the reason. cannot: what a loop, by path and line, turned out not to be
    able to have when it was written, with the reason. moved: pointer variables, as (function, variable), whose base moves
    from tile to tile in any case. xcds: among how many the numbers of programs are dealt anew. tiles: None where each program has one.
    handed: the kernel's parameter with what programs have summed for each other, "" for none.
    """

    choices: Choices = Choices()
    strategy: str | None = None
    plain_descriptors: Mapping[tuple[int | str, ...], str] = field(default_factory=dict)
    cannot: Mapping[tuple[tuple[int, ...], int, str], str] = field(default_factory=dict)
    moved: frozenset[tuple[str, str]] = frozenset()
    xcds: int = 1
    tiles: Tiles | None = None
    handed: str = ""

    @property
    def given_names(self) -> frozenset[str]:
        """Names of what a kernel is given that its source does not have."""
        return frozenset({self.tiles.tile, self.tiles.count}) if self.tiles is not None else frozenset()


@dataclass(frozen=True)
class Version:
    """What a call of a helper calls: one of the versions that are made of it, which are named when all are."""

    index: int


@dataclass(frozen=True)
class Unit:
    """What all functions of one kernel share while it is written: its facts, what was decided, and the helpers made so far.

    moving: whether the base of a pointer variable, as (function, variable), moves from tile to tile. versions: finished helper
    versions by (frame, path, wants); helper_versions: every version made; made_of: a version that is the
    function of several -> these.
    """

    kernel: KernelFacts
    decided: Decided = Decided()
    moving: dict[tuple[str, str], bool] = field(default_factory=dict)
    versions: dict[Any, Any] = field(default_factory=dict)
    helper_versions: list[Any] = field(default_factory=list)  # WrittenFunction
    in_progress: list[Any] = field(default_factory=list)
    made_of: dict[int, tuple[int, ...]] = field(default_factory=dict)
    references: References = field(default_factory=References)

    def add_helper(self, written: Any) -> int:
        """A version of a helper; -> its index."""
        self.helper_versions.append(written)
        return len(self.helper_versions) - 1

    def called_by(self, function: GluonFunction) -> list[int]:
        """The versions of helpers that a function calls, in the order in which they come first."""
        return [of.index for of in references(function.node.body) if isinstance(of, Version)]
