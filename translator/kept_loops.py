"""Loops that Triton's compiler pipelines and a translation leaves as they are: each is named, with its reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class KeptLoop:
    """line: of the file. index: of the loop, as the source has it. reason: why it, or a load of it, is not pipelined."""

    line: int
    index: str
    reason: str

    def __str__(self) -> str:
        return f"`for {self.index}` in line {self.line} is not pipelined as Triton's compiler does it: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
