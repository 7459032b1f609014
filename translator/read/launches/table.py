"""What was guessed for the launches of a kernel, as plain data: it travels between processes, and needs no Triton."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.read.launches.bound.binding import LaunchBinding
from gluonize.read.spec.launch import LaunchSpec


@dataclass(frozen=True)
class Row:
    """One line of the table: an argument, what it is taken to be, why, and how much that is worth (`CONFIDENCE`)."""

    name: str
    value: str
    why: str
    confidence: str

    @property
    def is_guess(self) -> bool:
        """Whether it was neither given nor read."""
        return self.confidence not in ("given", "read")


@dataclass(frozen=True)
class Derivation:
    """The launches of one kernel, the first being the default; `rows` say what the first one has, `others` how each further one
    differs, `notes` what could not be read or was passed over, `bindings` what is known of its launches in host code.
    """

    kernel: str
    launches: tuple[LaunchSpec, ...]
    rows: tuple[Row, ...]
    others: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    bindings: tuple[LaunchBinding, ...] = ()

    @property
    def guesses(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.is_guess)

    def lines(self) -> list[str]:
        """The guesses in short, for the header of the output: `k: x, y *bf16 (use), n = 1024 (name)`."""
        together: dict[tuple[str, str], list[str]] = {}
        for row in self.guesses:
            together.setdefault((row.value, row.confidence), []).append(row.name)
        parts = [f"{', '.join(names)} = {value} ({confidence})" for (value, confidence), names in together.items()]
        out = [f"{self.kernel}: {', '.join(parts)}"] if parts else []
        return out + [f"{self.kernel}: also {text}" for text in self.others if text]

    def set_words(self) -> list[str]:
        """The guesses as arguments of `--set`, each ready to be changed: `k.n=1024`."""
        return [f"{self.kernel}.{row.name}={row.value}" for row in self.guesses]
