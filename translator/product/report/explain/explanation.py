"""An explanation as data: what was decided where, why, and what it costs. Travels from the child that traced the kernel."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from gluonize.facts.obligations import Obligation

# What can be asked for, in the order of the pipeline; `rewrite` is everything.
STAGES = ("trace", "layout", "staging", "pipeline", "rewrite")


@dataclass(frozen=True)
class Choice:
    """One decision about one place of the source.

    kind: `value`, `operation` (a placed operation), `conversion`, `access`, `matrix`, `staged`, `loop` or `builtin`.
    what: what is decided about. choice: what was chosen. origin: where that comes from: `anchor` (Triton's own compiler settled it
    for this operation), `rule` (a row of a rule table), `solver` (what its uses or operands need), `default` (nothing asks for anything
    else), `source` (which says so). why: in words. cost: in words, "" when free. bytes: what a conversion moves or a tile occupies, per program and time. depth: loops around it.
    """

    line: int
    kind: str
    what: str
    choice: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    origin: str = ""
    why: str = ""
    cost: str = ""
    bytes: int = 0
    depth: int = 0
    function: str = ""
    file: str = ""

    def as_json(self) -> dict:
        return {**asdict(self), "shape": list(self.shape)}


@dataclass(frozen=True)
class Explanation:
    """One launch of one kernel. layouts: (name, constructor) of the kernel's layout constants. stage: the last one shown.

    obligations: what the whole translation rests on.
    """

    kernel: str
    launch: str
    target: str
    stage: str
    num_warps: int
    choices: tuple[Choice, ...]
    layouts: tuple[tuple[str, str], ...] = ()
    obligations: tuple[Obligation, ...] = ()

    def at(self, line: int) -> "Explanation":
        """Only what concerns one line of the source."""
        kept = tuple(c for c in self.choices if c.line == line)
        rests = tuple(o for o in self.obligations if o.line == line)
        return replace(self, choices=kept, obligations=rests)

    def as_json(self) -> dict:
        return {
            "id": self.launch,
            "kernel": self.kernel,
            "target": self.target,
            "after": self.stage,
            "num_warps": self.num_warps,
            "layouts": [{"name": name, "constructor": text} for name, text in self.layouts],
            "choices": [c.as_json() for c in self.choices],
            "obligations": [o.as_json() for o in self.obligations],
        }
