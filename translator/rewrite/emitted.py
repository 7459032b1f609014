"""What the translation of one kernel gives: functions as text, and what they rely on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from translator.rewrite.unit import Record
from translator.ttgir.layouts import Layout

LINE_LENGTH = 120


@dataclass(frozen=True)
class LaidOut:
    """A function before its layouts are written out. text: all else; constants: names and layouts, parents first; added: further
    lines for the top of its body."""

    text: str
    constants: tuple[tuple[str, Layout], ...] = ()
    added: tuple[str, ...] = ()


@dataclass
class EmittedFunction:
    name: str
    text: str
    fn: Any
    noinline: bool = False
    laid_out: LaidOut | None = None  # None where its text was made of more than that


@dataclass
class EmittedKernel:
    """A translated kernel: its function, the helpers it needs (callees first), and what they rely on."""

    kernel: EmittedFunction
    helpers: list[EmittedFunction]
    record: Record = field(default_factory=Record)
    moving: dict[tuple[str, str], bool] = field(default_factory=dict)  # as in Unit
