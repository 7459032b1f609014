"""What the translation of one kernel gives: functions as text, and what they rely on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from translator.rewrite.unit import Record

LINE_LENGTH = 120


@dataclass
class EmittedFunction:
    name: str
    text: str
    fn: Any
    noinline: bool = False


@dataclass
class EmittedKernel:
    """A translated kernel: its function, the helpers it needs (callees first), and what they rely on."""

    kernel: EmittedFunction
    helpers: list[EmittedFunction]
    record: Record = field(default_factory=Record)
    moving: dict[tuple[str, str], bool] = field(default_factory=dict)  # as in Unit
