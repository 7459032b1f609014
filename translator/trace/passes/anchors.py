"""Per traced visit, the operations and layouts that Triton's passes settled on.

The trace gave each visit its own location, so an operation of Triton's TTGIR names the visit that made it, and for
inlined functions the chain of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from gluonize.trace.front.trace import LOC_FILE
from gluonize.trace.model.layouts import Layout
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type

Path = tuple[int, ...]


@dataclass(frozen=True)
class TensorType:
    """`tensor<128x64xf16, #blocked>`: shape, element type as MLIR spells it, layout."""

    shape: tuple[int, ...]
    element: str
    layout: Layout


@dataclass(frozen=True)
class PlacedOp:
    """One operation after the passes: its name, the visits that made it, and the types of its tensors.

    `operands` are the tensor types that are printed before those of the results, offsets in brackets included. `op`: as it was
    read, None of one that a test makes.
    """

    name: str
    path: Path
    operands: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    op: Op | None = None

    @property
    def types(self) -> tuple[TensorType, ...]:
        return self.operands + self.results

    def retyped(self, change: Callable[[TensorType], TensorType]) -> PlacedOp:
        """The operation on tensors of other types."""
        return replace(self, operands=tuple(map(change, self.operands)), results=tuple(map(change, self.results)))


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


_TERMINATORS = frozenset({"scf.yield", "tt.return", "tt.reduce.return", "tt.scan.return"})
_CONTROL = frozenset({"scf.for", "scf.while", "scf.if"})


def read_anchors(module: Module) -> Anchors:
    """The operations of a TTGIR module whose visits are known."""
    made: dict[Type, TensorType] = {}

    def placed(types: Iterable[Type]) -> tuple[TensorType, ...]:
        out = []
        for ty in types:
            if ty.is_tensor and ty.layout:
                if ty not in made:
                    made[ty] = tensor_type(module, ty)
                out.append(made[ty])
        return tuple(out)

    anchors = Anchors()
    for op in module.walk(inner_first=True):
        if op.name in _TERMINATORS or not (path := path_of(op)):
            continue
        anchors.add(PlacedOp(op.name, path, placed(_operands(op)), placed(op.result_types), op))
    return anchors


def _operands(op: Op) -> tuple[Type, ...]:
    """The tensor types that are not of results; a store may be printed with an arrow before that of its value."""
    if op.name in _CONTROL:
        return ()
    return op.given_tensors


def tensor_type(module: Module, ty: Type) -> TensorType:
    """A tensor type of `module` with the layout that it names."""
    return TensorType(ty.shape, ty.printed_element, module.layout(ty))


def path_of(op: Op) -> Path:
    """The visits that made an operation, of the outermost call first; () where they are not known."""
    return op.path(LOC_FILE)
