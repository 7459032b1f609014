"""What the translation of one kernel gives: functions, and what they rely on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gluonize.gluon.trees.function import GluonFunction
from gluonize.read.launches.sites.persistent import Shared
from gluonize.trace.model.layouts import Layout
from gluonize.write.state.unit import Record, Tiles


@dataclass(frozen=True)
class FewestBuffers:
    """The parameter `name` holds a depth that is no less than `least`; why: in words."""

    name: str
    least: int
    why: str

    @property
    def text(self) -> str:
        return f'gl.static_assert({self.name} >= {self.least}, "{self.name}: {self.why}")'


@dataclass(frozen=True)
class LaidOut:
    """A function before its layouts are written out. function: all else; constants: names and layouts, parents first; added:
    further lines for the top of its body; depths: what is asserted of those of its rings."""

    function: GluonFunction
    constants: tuple[tuple[str, Layout], ...] = ()
    added: tuple[str, ...] = ()
    depths: tuple[FewestBuffers, ...] = ()


@dataclass(frozen=True)
class EmittedFunction:
    function: GluonFunction
    fn: Any
    noinline: bool = False
    laid_out: LaidOut | None = None  # None where its text was made of more than that

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def text(self) -> str:
        return self.function.text


@dataclass(frozen=True)
class EmittedKernel:
    """A translated kernel: its function, the helpers it needs (callees first), and what they rely on."""

    kernel: EmittedFunction
    helpers: list[EmittedFunction]
    record: Record = field(default_factory=Record)
    moving: dict[tuple[str, str], bool] = field(default_factory=dict)  # as in Unit
    tiles: Tiles | None = None  # None where each program has one
    shared: Shared | None = None  # None where programs have whole tiles
