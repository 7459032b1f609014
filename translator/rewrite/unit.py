"""What all functions of one translated kernel share: the trace, Triton's placed operations, imports, helpers, notes."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rules.builtins import BUILTINS
from rules.rows import RuleSet
from rules.targets import Target
from translator.diagnostics import Diagnostic, TranslationError
from translator.facts.obligations import Obligation, checked
from translator.frontend.anchors import Anchors
from translator.frontend.trace import Frame, Trace
from translator.numbered import numbered
from translator.choices.chosen import Choices
from translator.source.moved_lines import file_line

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter


@dataclass(frozen=True)
class Synthesized:
    """A function of the output that has no source of its own."""

    name: str
    text: str

    def called(self, name: str) -> Synthesized:
        """The same function under another name."""
        return replace(self, name=name, text=self.text.replace(f"def {self.name}(", f"def {name}(", 1))


@dataclass
class Record:
    """What one round of rewriting one function used; made anew each round, so only the last round counts."""

    imports: set[str] = field(default_factory=set)
    globals_needed: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # name -> (value, user's function)
    obligations: set[Obligation] = field(default_factory=set)  # all that the code rests on
    descriptor_tuples: set[str] = field(default_factory=set)  # kernel parameters that take (base, shape, strides)
    choices: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)  # lines for the header: what a reader would miss in the code
    reads: set[str] = field(default_factory=set)  # kernel parameters whose values the code that ran depends on
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
    def offsets(self) -> set[str]:
        """Offsets of descriptors' tiles that are taken as not negative without a proof."""
        return {o.expression for o in self.obligations if o.kind == "index"}

    @property
    def rests_on(self) -> tuple[Obligation, ...]:
        """All that the code rests on, in the order of the source."""
        rewrite = "a descriptor that the kernel makes"
        made = {Obligation(0, name, "descriptor", rewrite, "launch", (name,)) for name in self.descriptor_tuples}
        return tuple(sorted(self.obligations | made))

    def reaches(self, pointer: str) -> None:
        """32-bit offsets from a kernel parameter, or from a base in its storage, reach what is read."""
        rewrite = "32-bit offsets from a scalar base"
        self.obligations.add(Obligation(0, pointer, "storage", rewrite, "launch", (pointer,)))

    def amd(self, module: str) -> str:
        self.imports.add(f"from triton.experimental.gluon.language.amd import {module}")
        return module

    def need(self, function: Synthesized, user: Any) -> None:
        """A helper that the translation adds, for the function `user`."""
        self.globals_needed[function.name] = (function, user)

    def explain(self, text: str) -> None:
        if text not in self.explained:
            self.explained.append(text)

    def choose(self, text: str) -> None:
        if text not in self.choices:
            self.choices.append(text)


@dataclass
class Unit:
    trace: Trace
    anchors: Anchors
    target: Target
    num_warps: int
    small_pointers: frozenset[str]  # kernel parameters whose storage is known to be within 2 GiB
    staging: dict[tuple[int, ...], Any] = field(default_factory=dict)  # Triton's staged loads by path of visits
    buffer_atomics: frozenset[tuple[int, ...]] = frozenset()
    operands_in_lds: dict[tuple[int, ...], Any] = field(
        default_factory=dict
    )  # initialised LDS buffers by path of visits
    choices: Choices = Choices()
    # Of tensor descriptors' tiles in LDS, and those that stay bounds-masked: by path of the visit or name of the argument.
    descriptor_layouts: dict[tuple[int | str, ...], Any] = field(default_factory=dict)
    plain_descriptors: frozenset[tuple[int | str, ...]] = frozenset()
    divisible: frozenset[str] = frozenset()  # integer parameters of the kernel that are multiples of 16
    rows: dict[tuple[int, ...], Any] = field(default_factory=dict)  # gathers and scatters of the data mover, by path
    loops: bool = True  # whether Triton's final module has one
    rules: RuleSet = BUILTINS
    strategy: str | None = None  # a name of translator.pipeline.strategies; None: what the source asks for
    kept_whole: dict[tuple[tuple[int, ...], int], str] = field(
        default_factory=dict
    )  # loops, by path and line, that cannot be split
    lds_bytes: int = 0  # of Triton's kernel, where that matters (translator.pipeline.lds_room and planner)
    loop_lds: dict[tuple[int, ...], int] = field(
        default_factory=dict
    )  # of Triton's loops beside rings, by path of loads
    ringed: frozenset[tuple[tuple[int, ...], int]] = frozenset()  # loops that one slot does not serve
    # (function, pointer variable) -> whether its base moves from tile to tile, not its offsets; and those that must
    moving: dict[tuple[str, str], bool] = field(default_factory=dict)
    moved: frozenset[tuple[str, str]] = frozenset()
    versions: dict[Any, Any] = field(default_factory=dict)  # finished helper versions by (frame, path, wants)
    helper_versions: list[Any] = field(default_factory=list)  # (rewriter, text) of every version made
    in_progress: list[Any] = field(default_factory=list)

    @functools.cached_property
    def multiplies(self) -> bool:
        """Whether the kernel has matrix products."""
        return any(op.name in ("tt.dot", "tt.dot_scaled") for op in self.anchors.ops)

    @property
    def only_multiplies(self) -> bool:
        """Whether the kernel has matrix products and no loop."""
        return not self.loops and self.multiplies

    @functools.cached_property
    def words(self) -> frozenset[str]:
        """Every word of the files that the kernel's functions are in: what the output adds gets another name."""
        return frozenset().union(*(_words(frame.fn.file_name or "", frame.fn.src) for frame in self.trace.frames))

    @property
    def buffer_module(self) -> str:
        """The Gluon module whose buffer operations serve this target."""
        return self.target.buffer_module

    @property
    def dot_module(self) -> str:
        return self.target.gluon_module


def added(rw: "FunctionRewriter", function: Synthesized) -> str:
    """Put a function into the output, for calls of `rw`; -> its name, which is none of the source's."""
    own = function.called(numbered(function.name, rw.unit.words.__contains__))
    rw.record.need(own, rw.frame.fn)
    return own.name


@functools.lru_cache(maxsize=64)
def _words(path: str, source: str) -> frozenset[str]:
    text = ""
    if os.path.isfile(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    return frozenset(re.findall(r"\w+", text) + re.findall(r"\w+", source))


def refuse(frame: Frame, node: Any, code: str, message: str, why: str = "", help: str = "") -> TranslationError:
    """A located refusal for a node of a traced function."""
    fn = frame.fn
    line = file_line(fn, node.lineno) if hasattr(node, "lineno") else fn.def_file_line_number
    column = getattr(node, "col_offset", 0) + 1
    return TranslationError(Diagnostic(code, message, fn.file_name or "", line, column, why, help))
