"""Source locations in printed Triton IR: `loc(#loc12)` and the table of `#loc` aliases behind the module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

PLACE = re.compile(r'"([^"]*)":(\d+):(\d+)')
ALIAS = re.compile(r"#loc\d*")
NAMED = re.compile(r'"([^"]*)"\((.*)\)$')
CALL = re.compile(r"callsite\((#loc\d*) at (#loc\d*)\)$")
DEPTH_LIMIT = 32  # of aliases in aliases; MLIR prints nothing near


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
    only = line.find("loc(")
    if line.startswith("loc(#", only) and line.find(")", only) == len(line) - 1 and line[only - 1 : only] == " ":
        return line[:only].rstrip(), line[only + 4 : -1]
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


@dataclass(frozen=True, eq=False)
class Locations:
    """The `#loc` table: alias -> what stands inside its `loc(...)`. `file` is preferred where helpers were inlined."""

    table: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    _places: dict[str, Place] = field(default_factory=dict, repr=False)
    _paths: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, lines: list[str], file: str = "") -> "Locations":
        """The table that the lines of a module define."""
        table = {}
        for line in lines:
            if line.startswith("#loc"):
                name, _, rest = line.partition(" = loc(")
                if rest:
                    table[name.strip()] = rest.rstrip()[:-1]
        return cls(table, file)

    def resolve(self, text: str) -> Place:
        """The place that `text`, the inside of a `loc(...)`, denotes.

        Names, call sites and fusions are followed to a file and line. For a call site (an inlined helper) the place in
        `file` is taken when the callee is in another one.
        """
        if text not in self._places:
            places = self._all_places(text, "", 0)
            chosen = next((p for p in places if self.file and p.file == self.file), places[0] if places else UNKNOWN)
            self._places[text] = chosen
        return self._places[text]

    def innermost(self, text: str) -> Place:
        """Where the text of the operation stands: of an inlined helper the place in the helper, whatever its file."""
        places = self._all_places(text, "", 0)
        return places[0] if places else UNKNOWN

    def outermost(self, text: str, within: int = 0) -> Place:
        """Where the outermost call stands that the operation comes from. within: the line of a call that all of a kernel is in, which is
        passed over."""
        places = self._all_places(text, "", 0)
        kept = places[:-1] if len(places) > 1 and places[-1].line == within else places
        return kept[-1] if kept else UNKNOWN

    def _all_places(self, text: str, name: str, depth: int) -> list[Place]:
        if depth > DEPTH_LIMIT:
            return []
        text = text.strip()
        if text.startswith("#"):
            alias = ALIAS.match(text)
            return self._all_places(self.table.get(alias.group(), ""), name, depth + 1) if alias else []
        found = PLACE.match(text)
        if found:
            return [Place(found.group(1), int(found.group(2)), int(found.group(3)), name)]
        named = NAMED.match(text)
        if named:
            return self._all_places(named.group(2), name or named.group(1), depth + 1)
        # call sites `callsite(#a at #b)` and `fused[#a, #b]`: innermost first
        places = []
        for alias in ALIAS.findall(text):
            places += self._all_places(alias, name, depth + 1)
        return places

    def path(self, text: str, file: str) -> tuple[int, ...]:
        """The lines of `file` that lead to `text`, the inside of a `loc(...)`: of the outermost call first, () outside of `file`.

        Of a fusion the first location counts.
        """
        key = (text, file)
        if key not in self._paths:
            self._paths[key] = ()  # of a location that is defined by itself
            self._paths[key] = self._path(text, file)
        return self._paths[key]

    def _path(self, text: str, file: str) -> tuple[int, ...]:
        if text in self.table:
            return self.path(self.table[text], file)
        if found := PLACE.match(text):
            return (int(found.group(2)),) if found.group(1) == file else ()
        if found := CALL.match(text):
            return self.path(found.group(2), file) + self.path(found.group(1), file)
        if found := NAMED.match(text):
            return self.path(found.group(2), file)
        if text.startswith("fused") and (first := ALIAS.search(text, text.rfind("["))):
            return self.path(first.group(), file)
        return ()
