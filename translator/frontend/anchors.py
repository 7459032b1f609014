"""Read back, per traced visit, the operations and layouts that Triton's passes settled on.

The trace gave each visit its own location, so a line of the printed TTGIR names the visit that made it, and for
inlined functions the chain of calls. `read_anchors` parses the text (one operation a line) into `Anchors`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from translator.frontend.trace import LOC_FILE
from translator.ttgir.layouts import AttributeReader, Layout

Path = tuple[int, ...]


@dataclass(frozen=True)
class TensorType:
    """`tensor<128x64xf16, #blocked>`: shape, element type as MLIR spells it, layout."""

    shape: tuple[int, ...]
    element: str
    layout: Layout


@dataclass(frozen=True)
class PlacedOp:
    """One operation after the passes: its name and the tensor types it mentions, in textual order.

    `types` are those after the last top-level colon: operands first, results last, as MLIR prints them; `operands`
    and `results` split them where the operation has a functional type.
    """

    name: str
    path: Path
    operands: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    text: str

    @property
    def types(self) -> tuple[TensorType, ...]:
        return self.operands + self.results


@dataclass
class Anchors:
    """All placed operations by the path of visits that made them."""

    ops: list[PlacedOp] = field(default_factory=list)
    by_path: dict[Path, list[PlacedOp]] = field(default_factory=dict)
    by_prefix: dict[Path, list[PlacedOp]] = field(default_factory=dict)

    def add(self, op: PlacedOp) -> None:
        self.ops.append(op)
        self.by_path.setdefault(op.path, []).append(op)
        for n in range(1, len(op.path) + 1):
            self.by_prefix.setdefault(op.path[:n], []).append(op)

    @classmethod
    def of(cls, ops: Iterable[PlacedOp]) -> "Anchors":
        out = cls()
        for op in ops:
            out.add(op)
        return out

    def with_types(self, swaps: dict[TensorType, TensorType]) -> "Anchors":
        """The same operations, each tensor type of `swaps` replaced."""
        made = []
        for op in self.ops:
            operands, results = (tuple(swaps.get(ty, ty) for ty in types) for types in (op.operands, op.results))
            made.append(replace(op, operands=operands, results=results))
        return Anchors.of(made)

    def at(self, path: Path, name: str | None = None, inner: bool = True) -> list[PlacedOp]:
        """Operations made by the visit at the end of `path` (and, with `inner`, by functions it called)."""
        found = (self.by_prefix if inner else self.by_path).get(path, [])
        return [op for op in found if name is None or op.name == name]

    def layouts(self, path: Path, shape: tuple[int, ...]) -> list[Layout]:
        """Layouts that results of this shape got, in program order, conversions left out."""
        out: list[Layout] = []
        # A scaled dot also makes the operations that upcast its operands.
        own = [op for op in self.at(path, inner=False) if op.name in ("tt.dot", "tt.dot_scaled")]
        for op in own or self.at(path):
            if op.name == "ttg.convert_layout":
                continue
            for ty in op.results:
                if ty.shape == shape and ty.layout not in out:
                    out.append(ty.layout)
        return out


_ALIAS = re.compile(r"^(#\w+) = (#ttg\..*)$")
_LOC_DEF = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_TRAILING_LOC = re.compile(r" loc\((#loc\d*)\)$")
_OP = re.compile(r'^\s*(?:%[\w$.#]+(?::\d+)?(?:, %[\w$.#]+(?::\d+)?)* = )?"?([a-z_]+\.[a-z_.0-9]+)"?')
_OPEN = re.compile(r"\{\s*(?:loc\(#loc\d*\))?$")


def _definitions(lines: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The attribute aliases (`#blocked = ...`) and the locations (`#loc1 = ...`) that a printed module defines."""
    aliases: dict[str, str] = {}
    locs: dict[str, str] = {}
    for line in lines:
        if m := _ALIAS.match(line):
            aliases[m.group(1)] = m.group(2)
        elif m := _LOC_DEF.match(line):
            locs[m.group(1)] = m.group(2)
    return aliases, locs


def read_anchors(text: str) -> Anchors:
    """Parse the text of a TTGIR module printed with locations."""
    lines = text.splitlines()
    aliases, locs = _definitions(lines)
    reader = AttributeReader(aliases)
    paths: dict[str, Path] = {}
    anchors = Anchors()
    stack: list[tuple[str, str] | None] = []
    for line in lines:
        if line.startswith("#"):
            continue
        stripped = line.strip()
        loc = _TRAILING_LOC.search(line)
        if stripped.startswith("}"):
            opened = stack.pop() if stack else None
            reopened = stripped.endswith("{")
            if reopened:
                stack.append(opened)
            elif opened and loc:
                name, header = opened
                body = _strip_loc(stripped.lstrip("}) "))
                signature = body if name in ("tt.reduce", "tt.scan") else header
                _record(anchors, reader, name, signature, _path(loc.group(1), locs, paths), stripped)
            continue
        m = _OP.match(line)
        if stripped.endswith("{") or stripped.endswith("({"):
            stack.append((m.group(1), line) if m else None)
            continue
        if m and loc:
            _record(anchors, reader, m.group(1), _strip_loc(line), _path(loc.group(1), locs, paths), line)
    return anchors


def layout_reader(aliases: dict[str, str]) -> AttributeReader:
    """A reader of the layouts of tensors; those of LDS are read by `translator.ttgir.shared_layouts`."""
    return AttributeReader({k: v for k, v in aliases.items() if not k.startswith("#shared")})


@functools.lru_cache(maxsize=1)  # several readers ask for the same module, one after the other
def locations_of(text: str) -> tuple[dict[str, str], list[tuple[Path, str]]]:
    """Attribute aliases of a module printed with locations, and its located one-line operations by visit path."""
    lines = text.splitlines()
    aliases, locs = _definitions(lines)
    memo: dict[str, Path] = {}
    located: list[tuple[Path, str]] = []
    for line in lines:
        loc = None if line.startswith("#") else _TRAILING_LOC.search(line)
        if loc and (path := _path(loc.group(1), locs, memo)):
            located.append((path, _strip_loc(line)))
    return aliases, located


def locations(text: str) -> Callable[[str], Path]:
    """A function from location names (`#loc12`) of a printed module to paths of visits."""
    locs = dict(m.groups() for line in text.splitlines() if (m := _LOC_DEF.match(line)))
    paths: dict[str, Path] = {}
    return lambda name: _path(name, locs, paths)


def _strip_loc(line: str) -> str:
    return re.sub(r" loc\(.*?\)", "", line)


def _path(loc: str, locs: dict[str, str], memo: dict[str, Path]) -> Path:
    if loc in memo:
        return memo[loc]
    text = locs.get(loc, "")
    memo[loc] = ()
    if m := re.match(r'^"([^"]*)":(\d+):\d+', text):
        found: Path = (int(m.group(2)),) if m.group(1) == LOC_FILE else ()
    elif m := re.match(r"^callsite\((#loc\d*) at (#loc\d*)\)$", text):
        found = _path(m.group(2), locs, memo) + _path(m.group(1), locs, memo)
    elif m := re.match(r'^"[^"]*"\((#loc\d*)\)$', text):
        found = _path(m.group(1), locs, memo)
    elif m := re.match(r"^fused(?:<.*?>)?\[(.*)\]$", text):
        parts = re.findall(r"#loc\d*", m.group(1))
        found = _path(parts[0], locs, memo) if parts else ()
    else:
        found = ()
    memo[loc] = found
    return found


def tensor_types(text: str, reader: AttributeReader) -> list[TensorType]:
    """Every `tensor<...>` in `text` that carries a layout, in order."""
    out, at = [], 0
    while (at := text.find("tensor<", at)) >= 0:
        depth, end = 0, at + 6
        while True:
            if text[end] == "<":
                depth += 1
            elif text[end] == ">":
                depth -= 1
                if not depth:
                    break
            end += 1
        inner = text[at + 7 : end]
        at = end
        m = re.match(r"((?:\d+x)+)(.*)$", inner)
        if not m:
            continue
        element, comma, encoding = _split_encoding(m.group(2))
        if comma:
            shape = tuple(int(d) for d in m.group(1)[:-1].split("x"))
            out.append(TensorType(shape, element, reader.layout(encoding)))
    return out


def _split_encoding(text: str) -> tuple[str, str, str]:
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "<") - (c == ">")
        if c == "," and depth == 0:
            return text[:i].strip(), ",", text[i + 1 :]
    return text, "", ""


def _record(anchors: Anchors, reader: AttributeReader, name: str, text: str, path: Path, line: str) -> None:
    if not path or name in ("tt.func", "scf.yield", "tt.return", "tt.reduce.return", "tt.scan.return"):
        return
    colon = _type_colon(text)
    signature = text[colon + 1 :] if colon >= 0 else text
    if name in ("scf.for", "scf.while", "scf.if"):
        arrow = text.find("-> (")
        signature = text[arrow:] if arrow >= 0 else ""
    arrow = _top_level_arrow(signature)
    if arrow >= 0:
        operands = tensor_types(signature[:arrow], reader)
        results = tensor_types(signature[arrow:], reader)
    else:
        types = tensor_types(signature, reader)
        if name in ("tt.store", "amdg.buffer_store", "ttg.local_store"):
            operands, results = types, []
        elif name in ("scf.for", "scf.while", "scf.if"):
            operands, results = [], types
        elif name == "tt.load":
            operands = types
            results = [TensorType(t.shape, re.sub(r"^!tt.ptr<(.*)>$", r"\1", t.element), t.layout) for t in types]
        elif name == "arith.cmpi" or name == "arith.cmpf":
            operands, results = types, [TensorType(t.shape, "i1", t.layout) for t in types]
        else:
            operands, results = types, types[:1]
    anchors.add(PlacedOp(name, path, tuple(operands), tuple(results), line))


def _type_colon(text: str) -> int:
    """The colon that starts the operation's type, outside of every bracket."""
    depth, found = 0, -1
    for i, c in enumerate(text):
        if c in "<([{":
            depth += 1
        elif c in ">)]}":
            if c == ">" and text[i - 1] == "-":
                continue
            depth -= 1
        elif c == ":" and depth == 0 and text[i - 1 : i] == " ":
            found = i
            break
    return found


def _top_level_arrow(text: str) -> int:
    depth = 0
    for i, c in enumerate(text):
        if c == ">" and text[i - 1] == "-":
            if depth == 0:
                return i + 1
            continue
        depth += (c in "<([{") - (c in ">)]}")
    return -1
