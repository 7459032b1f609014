"""Source locations in printed Triton IR: `loc(#loc12)` and the table of `#loc` aliases behind the module."""

from __future__ import annotations

import re
from dataclasses import dataclass

PLACE = re.compile(r'"([^"]*)":(\d+):(\d+)')
ALIAS = re.compile(r"#loc\d*")


@dataclass(frozen=True)
class Place:
    """A line of the user's file; `name` is the variable that the value was assigned to, "" when there is none."""

    file: str = ""
    line: int = 0
    column: int = 0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else "(unknown line)"


UNKNOWN = Place()


def strip_locations(line: str) -> tuple[str, str]:
    """Remove every `loc(...)` from a line of IR; the last one is the op's own."""
    last, out, start = "", [], 0
    while True:
        i = line.find("loc(", start)
        if i < 0 or (i and line[i - 1] not in " )"):
            break
        depth, j, quoted = 0, i + 3, False
        while j < len(line):
            c = line[j]
            if c == '"':
                quoted = not quoted
            elif not quoted and c == "(":
                depth += 1
            elif not quoted and c == ")":
                depth -= 1
                if depth == 0:
                    break
            j += 1
        out.append(line[start:i].rstrip())
        last = line[i + 4 : j]
        start = j + 1
    out.append(line[start:])
    return "".join(out), last


class Locations:
    """The `#loc` table. `resolve` follows names, call sites and fusions to a file and line.

    For a call site (an inlined helper) the place inside the kernel file is taken when the callee is in another file.
    """

    def __init__(self, text: str):
        self.table: dict[str, str] = {}
        for line in text.splitlines():
            if line.startswith("#loc"):
                name, _, rest = line.partition(" = loc(")
                if rest:
                    self.table[name.strip()] = rest.rstrip()[:-1]
        self.resolved: dict[tuple[str, str], Place] = {}

    def resolve(self, text: str, prefer: str = "") -> Place:
        """The place that `text`, the inside of a `loc(...)`, denotes."""
        key = (text, prefer)
        if key not in self.resolved:
            places = self._places(text, "", 0)
            chosen = next((p for p in places if prefer and p.file == prefer), places[0] if places else UNKNOWN)
            self.resolved[key] = chosen
        return self.resolved[key]

    def _places(self, text: str, name: str, depth: int) -> list[Place]:
        if depth > 32:
            return []
        text = text.strip()
        if text.startswith("#"):
            alias = ALIAS.match(text)
            return self._places(self.table.get(alias.group(), ""), name, depth + 1) if alias else []
        found = PLACE.match(text)
        if found:
            return [Place(found.group(1), int(found.group(2)), int(found.group(3)), name)]
        named = re.match(r'"([^"]*)"\((.*)\)$', text)
        if named:
            return self._places(named.group(2), name or named.group(1), depth + 1)
        # call sites `callsite(#a at #b)` and `fused[#a, #b]`: innermost first
        places = []
        for alias in ALIAS.findall(text):
            places += self._places(alias, name, depth + 1)
        return places
