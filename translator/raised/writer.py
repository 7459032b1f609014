"""One function of a module as statements of Gluon: values become expressions where they are used once, else variables."""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from gluonize.decide.layouts.inferred import NoLayout, infer
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.gluon.imports import Import
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.own_builtins import BUILTIN
from gluonize.gluon.trees.references import References
from gluonize.raised.naming.constexprs import Constexprs
from gluonize.raised.naming.names import Names, part_of, plain
from gluonize.raised.naming.origins import Origins
from gluonize.raised.naming.roles import UNSURE, suggest_roles
from gluonize.raised.naming.source import Source, Sources
from gluonize.raised.table import COPIES, ORDERS, PING_PONG, PROMISES, ROWS, Row
from gluonize.raised.text import ANY, ATOM, COMPARISON, OPERATORS, SUM, UNARY, Written, dtype
from gluonize.raised.waits import AnotherBlock, Groups
from gluonize.rules.gluon import MODULES
from gluonize.rules.targets import target
from gluonize.trace.model.layouts import Layout, Opaque, SharedLayout, Slice, lists
from gluonize.trace.model.module import Function, Module
from gluonize.trace.model.op import Block, Op
from gluonize.trace.model.op_text import VALUES
from gluonize.trace.model.types import Type

LONGEST = 90  # characters of an expression that is written where it is used
_WORD = re.compile(r"[^\W\d]\w*")
_CAST = re.compile(r"(?:(?P<name>[a-zA-Z]\w*)|gl\.program_id\((?P<axis>\d)\))\.to\(gl\.\w+\)$")
_OPERATOR = re.compile(r"\{0\} (\S+) \{1\}")
AMD_MODULES = tuple(sorted(m.name for m in MODULES.values() if "{family}" in m.path))
RESERVED = frozenset((*keyword.kwlist, *dir(builtins), "tl", "triton", "math", "float", *MODULES))


@dataclass
class Pending:
    """An expression that waits for its use."""

    value: str
    written: Written
    op: Op


@dataclass
class Line:
    """One line of the text. number: of the source, 0 where it is not known."""

    depth: int
    text: str
    number: int = 0


@dataclass
class Shared:
    """What the functions of a file have in common. helpers: text of the body -> (name, lines). functions: of the module -> name."""

    module: Module
    taken: set[str] = field(default_factory=lambda: set(RESERVED))
    helpers: dict[tuple[str, ...], tuple[str, list[str]]] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)
    target: str = ""
    numbers: bool = False  # whether constexprs of the source stay numbers
    trees: References = field(default_factory=References)

    @cached_property
    def sources(self) -> Sources:
        return Sources(self.module)

    @property
    def source(self) -> Source:
        """The file that the kernel is in."""
        return self.sources.of(self.module.entry.place.file)


Handler = Callable[["Writer", Op], None]


class Writer:
    """The statements of a function, or of the function that a reduction combines elements with."""

    def __init__(
        self,
        shared: Shared,
        function: Function | None,
        handlers: Mapping[str, Handler],
        layouts: LayoutNames | None = None,
    ):
        self.shared, self.module, self.function, self.handlers = shared, shared.module, function, handlers
        self.layouts, self.trees = layouts or LayoutNames(slices=True), shared.trees
        origins = Origins(function)
        if layouts is None and function is not None:
            suggest_roles(self.layouts, shared.module, function, origins)
        self.constexprs = (
            None
            if layouts or function is None or shared.numbers
            else Constexprs(shared.module, function, origins, shared.sources, shared.taken)
        )
        self.op: Op | None = None  # what is being written
        self.values: dict[str, Written] = {}
        self.pending: list[Pending] = []
        self.lines: list[Line] = []
        self.depth = 1
        self.warps = self.module.warps
        self.names: set[str] = set(self.constexprs.values if self.constexprs else ())
        self.carried: set[str] = set()
        self.called = Names(shared.module, function, self.layouts, origins)
        self.own: dict[str, int] = {}  # variables that are written once, where their value is -> the loop around that
        # The line where a variable begins, None for parameters.
        self.first: dict[str, Line | None] = dict.fromkeys(self.names)
        self.loop = self.loops = 0  # the innermost one that is being written, 0 outside; how many there were
        self.homes: dict[str, str] = {}
        # What a loop carries on with, where it cannot take the place of what is there at once -> what that is called.
        self.following: dict[str, str] = {}
        self.left_out: set[Op] = set()  # of which nothing comes
        self.uses: Counter[str] = Counter()
        self.place = 0
        self.taken = False  # whether what is being written has something in it that waited
        self._groups: dict[str, Groups] = {}

    # Names and values

    def parameters(self) -> dict[str, int]:
        """The constexprs of the source that the statements name, each with its number."""
        words = {word for line in self.lines for word in _WORD.findall(line.text)}
        return {
            name: number
            for name, number in (self.constexprs.values if self.constexprs else {}).items()
            if name in words
        }

    def fresh(self, base: str) -> str:
        """A name that nothing has yet."""
        base = re.sub(r"\W", "_", base) or "x"
        base = base if not base[0].isdigit() else f"x{base}"
        name, number = base, 1
        while name in self.shared.taken or name in self.names:
            number += 1
            name = f"{base}_{number}"
        self.names.add(name)
        return name

    def helper(self, base: str, body: tuple[str, ...], lines: Callable[[str], list[str]]) -> str:
        """What a function of the file is called. body: what tells it from others; lines: its text under a name."""
        known = self.shared.helpers
        if body not in known:
            name, number = base, 1
            while name in self.shared.taken:
                number += 1
                name = f"{base}_{number}"
            self.shared.taken.add(name)
            known[body] = (name, lines(name))
        return known[body][0]

    def builtin(self, name: str, text: str) -> str:
        """What a builtin is called that the file brings along."""
        if BUILTIN not in self.shared.imports:
            self.shared.imports.append(BUILTIN)
        return self.helper(name, (text,), lambda own: text.replace(f"def {name}(", f"def {own}(").rstrip().splitlines())

    @staticmethod
    def amd(family: str) -> str:
        """Gluon's module of a family; the file imports it (`function_text.py`)."""
        return f"gl.amd.{family}"

    @property
    def copies(self) -> str:
        """Gluon's module of asynchronous copies to LDS."""
        buffers = target(self.shared.target).copies_take_buffers
        return "gl.amd.cdna4.async_copy" if buffers else "gl.amd.cdna5.async_copy"

    def refuse(self, op: Op, why: str) -> TranslationError:
        """What to raise for an operation that Gluon cannot say."""
        at = op.place
        message = f"{op.name} in line {op.line} of the module: {why}"
        help = "--stage loops raises the kernel without the schedule that this is a part of" * (op.name in PING_PONG)
        return TranslationError(Diagnostic("raise-unsupported", message, at.file, at.line, at.column, help=help))

    def read(self, value: str) -> Written:
        """The expression for an operand."""
        for at, item in enumerate(self.pending):
            if item.value == value:
                del self.pending[at]
                self.taken = True
                return item.written
        return self.as_constexpr(self.values[value])

    def as_constexpr(self, written: Written) -> Written:
        """A number as the constexpr that it is in the source, where it is one."""
        if self.constexprs and written.literal and written.text.isdigit():
            text = self.constexprs.number(self.op, int(written.text)) or written.text
            return replace(written, text=text, level=written.level if text.isidentifier() or text.isdigit() else SUM)
        return written

    def named(self, value: str) -> Written:
        """The expression for a value that may be read several times: a number, or a variable."""
        waits = next((item for item in self.pending if item.value == value), None)
        if waits is not None:
            self.pending.remove(waits)
            self.assign(value, waits.written, waits.op)
        return self.values[value]

    def variable(self, value: str) -> Written:
        """The variable for a value, which gets one here where it has none."""
        found = self.named(value)
        if not found.text.isidentifier():
            name = self.fresh(self.called.origins.name(value) or "x")
            self.line(f"{name} = {self.typed(found).text}")
            self.first[name] = self.lines[-1]
            found = self.values[value] = Written(name, found.type)
        return found

    def waiting(self, value: str) -> Written:
        """The expression of a value that waits for its use."""
        return next(item.written for item in self.pending if item.value == value)

    def count_uses(self, block: Block) -> None:
        """Add the uses in a block and in those in it."""
        for op in block.ops:
            self.uses.update(op.values)
            if op.name == "scf.for":
                self.uses.subtract([op.for_loop.variable, *(argument for argument, _ in op.for_loop.bindings)])
            if op.name == "scf.while":
                self.uses.subtract(argument for argument, _ in op.bindings)
            for region in op.regions:
                for inner in region.blocks:
                    self.count_uses(inner)

    def is_reduced(self, op: Op) -> bool:
        """Whether a reshape may change the order of elements, and reductions of all of them are all that uses it."""
        if "allow_reorder" not in op.body or self.function is None:
            return False
        uses = [each for each in self.function.walk() if op.results[0] in each.operands]
        return all(each.name == "tt.reduce" and len(each.operands) == 1 for each in uses) and len(op.type.shape) == 1

    def groups(self, commit: str) -> Groups:
        """The groups of copies that operations of this name end."""
        if commit not in self._groups:
            assert self.function is not None
            self._groups[commit] = Groups(self.function, commit)
        return self._groups[commit]

    def groups_since(self, commit: str, op: Op) -> int:
        """The groups that may be under way at a wait."""
        try:
            return self.groups(commit).after(op.operands, op)
        except AnotherBlock:
            raise self.refuse(op, "it waits for what another block of the function copies") from None

    @contextmanager
    def in_loop(self) -> Iterator[None]:
        """What is written inside stands in a loop of its own."""
        around = self.loop
        self.loops += 1
        self.loop = self.loops
        yield
        self.loop = around

    # Statements

    def line(self, text: str, number: int = -1) -> None:
        self.lines.append(Line(self.depth, text, self.place if number < 0 else number))

    def flush(self) -> None:
        """Give what waits a variable."""
        waiting, self.pending = self.pending, []
        for item in waiting:
            self.assign(item.value, item.written, item.op)

    def only(self, operands: Sequence[str]) -> None:
        """Before something that is no operation is written with these operands: nothing else waits."""
        self.ready(operands)
        kept = [item for item in self.pending if item.value in operands]
        self.pending = [item for item in self.pending if item.value not in operands]
        self.flush()
        self.pending = kept

    def ready(self, operands: Sequence[str]) -> None:
        """Before an operation is written with these operands, in the order in which its text evaluates them: what waits stays an expression
        where that is the order of the module too, which is that of the machine's instructions."""
        waiting = [item.value for item in self.pending]
        first = len(waiting)
        while first and _in_order(waiting[first - 1 :], operands):
            first -= 1
        named = [i for i in range(first) if waiting[i] in operands]
        if named:
            count = named[-1] + 1
            out, self.pending = self.pending[:count], self.pending[count:]
            for item in out:
                self.assign(item.value, item.written, item.op)

    def assign(self, value: str, written: Written, op: Op) -> None:
        """Make a variable of a value."""
        name = self.homes.get(value) or self.fresh(self._called(value, written, op))
        if value not in self.homes:
            self.own[name] = self.loop
        self.line(f"{name} = {self.typed(written).text}", op.place.line)
        self.first.setdefault(name, self.lines[-1])
        self.values[value] = Written(name, written.type)

    def _called(self, value: str, written: Written, op: Op) -> str:
        if self.called.goes_on(value, op):
            before = self.values.get(op.operands[2])
            if before is not None and before.text in self.carried:
                return plain(before.text)
        found = self._usual(value, written, op)
        return f"next_{found}" if self.following.get(value) == found else found

    def _usual(self, value: str, written: Written, op: Op) -> str:
        if value in self.called.ahead:
            return f"next_{plain(self.values[op.operands[0]].text)}"
        found = self.called.of(value, op, written.type)
        if found in ("tile", "desc") and op.operands:
            source = self.values.get(op.operands[0])
            if source is not None and source.type.kind == written.type.kind and source.text.isidentifier():
                return part_of(source.text, "slot" if found == "tile" else "desc")
        if found == "x" and written.text.startswith("gl.cdiv("):
            return "tiles"
        cast = _CAST.match(written.text)
        if cast is None:
            return found
        if found == "x":
            return plain(cast["name"]) if cast["name"] else f"pid_{cast['axis']}".removesuffix("_0")
        # A parameter in a statement of the source that casts it on the way.
        given = cast["name"] in self.first and self.first[cast["name"]] is None
        return f"{cast['name']}_{written.type.element}" if given and not self.called.is_alone(value) else found

    def typed(self, written: Written) -> Written:
        """What a variable gets: of the whole shape, and of its own type where a number says another one."""
        if written.full:
            return written.whole
        if written.literal and not self._is_own(written):
            return replace(
                written, text=f"gl.full([], {written.text}, {dtype(written.type)})", level=ATOM, literal=False
            )
        return written

    def _is_own(self, written: Written) -> bool:
        return written.type.element in ("i32", "f32", "i1")

    def keep(self, op: Op, written: Written, pure: bool) -> None:
        """Take the expression of an operation's result. pure: it need not be written where nothing uses it."""
        value = op.results[0]
        count = self.uses[value]
        if count == 0 and pure:
            return
        if op.has_promises:
            written = self._promised(op, written)
        if count == 1 and len(written.text) <= LONGEST and "\n" not in written.text:
            self.pending.append(Pending(value, written, op))
        else:
            self.flush()
            self.assign(value, written, op)

    def _promised(self, op: Op, written: Written) -> Written:
        """The expression with what is promised of its numbers."""
        text = written.whole.text
        for name, function in PROMISES.items():
            if values := op.promises.get(name):
                text = f"gl.{function}({text}, {lists(values)})"
        return replace(written, text=text, full="", level=ATOM, shape=None, literal=False)

    def keep_or_say(self, op: Op, written: Written) -> None:
        """Take the expression of an operation that does something, whether its result is used or not."""
        if op.results and self.uses[op.results[0]]:
            self.keep(op, written, False)
        else:
            self.statement(op, written.text)

    def always(self, value: str, written: Written, op: Op) -> None:
        """Take a value that is written out at each use, unless it stands for what changes or is long."""
        changes = self.carried & set(_WORD.findall(written.text))
        if self.taken or changes or len(written.text) > LONGEST // 2:
            self.keep(op, written, True)
        else:
            self.values[value] = written

    # Operations

    def block(self, ops: Sequence[Op]) -> None:
        """Write operations, but for the last one of a region."""
        for op in ops:
            if op in self.left_out:
                continue
            if op.place.line:
                self.place = op.place.line
            if "fastmath<" in op.text:
                raise self.refuse(op, "it may round in another way than Gluon's")
            self.op = op
            operands = VALUES.findall(op.text)
            if op.name in ORDERS:
                operands = ORDERS[op.name](operands)
            self.ready(operands)
            self.taken = False
            if op.name in COPIES or op.results and all(kind.kind == "token" for kind in op.result_types):
                self.values |= {value: Written("", Type("token")) for value in op.results}
            if op.name in self.handlers:
                self.handlers[op.name](self, op)
            elif op.name in ROWS:
                self.by_row(op, ROWS[op.name])
            else:
                raise self.refuse(op, PING_PONG.get(op.name, "Gluon has no spelling for it that is known here"))
        self.op = None

    def by_row(self, op: Op, row: Row, operands: Sequence[Written] = ()) -> None:
        """Write an operation as its row says. operands: those of it that have been read."""
        operands = list(operands) or [self.read(value) for value in op.operands]
        kinds = op.result_types
        if not any(kind.kind != "token" for kind in kinds):
            self.statement(op, self.filled(op, row, operands, None).text)
            return
        written = self.filled(op, row, operands, kinds[0])
        moved = self.moved(op, row.inferred, operands[0].type) if row.inferred else ""
        if len(kinds) > 1:
            for name in self.several(op, written.text):
                if moved:
                    self.line(f"{name} = gl.convert_layout({name}, {moved})", op.place.line)
        elif moved:
            self.keep(op, replace(written, text=f"gl.convert_layout({written.text}, {moved})", level=ATOM), row.pure)
        else:
            self.keep(op, written, row.pure)

    def statement(self, op: Op, text: str) -> None:
        """Write an operation without a result."""
        self.flush()
        self.line(text, op.place.line or self.place)

    def several(self, op: Op, text: str, called: Sequence[str] = ()) -> list[str]:
        """Write an operation with several results. called: what they are called, where that is not what the module says."""
        self.flush()
        called = called or self.shared.source.targets(op.place.line, len(op.results))
        called = called or [self.called.of(value, op, kind) for value, kind in zip(op.results, op.result_types)]
        names = [self.fresh(name) for name in called]
        self.line(f"{', '.join(names)} = {text}", op.place.line)
        self.first |= dict.fromkeys(names, self.lines[-1])
        for value, name, kind in zip(op.results, names, op.result_types):
            self.values[value] = Written(name, kind)
        return names

    def filled(self, op: Op, row: Row, operands: list[Written], kind: Type | None) -> Written:
        """The expression that a row gives."""
        if row.broadcasts and kind is not None:
            operands = self.broadcast(operands, kind.shape)
        else:
            operands = [operand.whole for operand in operands]
        if row.unsigned:
            operands = [self.without_sign(operand) for operand in operands]
        assert kind is not None or not row.unsigned
        written = self.operator(row.template, operands) if _OPERATOR.fullmatch(row.template) else None
        if written is None:
            level = UNARY if row.template.startswith("-") else ATOM
            parts = {}
            for number, operand in enumerate(operands):
                hole = f"{{{number}}}"
                bound = f"{hole}." in row.template or f"-{hole}" in row.template
                if bound and operand.literal:
                    operand = replace(
                        operand, text=f"gl.full([], {operand.text}, {dtype(operand.type)})", literal=False
                    )
                parts[number] = operand.at(ATOM if bound else ANY)
            text = re.sub(r"\{(\w+)\}", lambda found: self._part(op, found.group(1), parts, kind), row.template)
            written = Written(text, kind or Type("none"), level)
        if row.unsigned and kind is not None:
            written = replace(written, text=f"{written.at(ATOM)}.to({dtype(kind)})", level=ATOM)
        return replace(written, type=kind or written.type, shape=None)

    def _part(self, op: Op, name: str, operands: dict[int, str], kind: Type | None) -> str:
        if name.isdigit():
            return operands[int(name)]
        if name == "order":
            return f"[{', '.join(map(str, op.integers('order')))}]"
        if name == "copies":
            return self.copies
        if name == "end" and op.attribute("start") == 0:
            return self.size(op.results[0], op.type, 0)
        if name == "axis" and op.word in ("x", "y", "z"):
            return str("xyz".index(op.word))
        if name in ("dtype", "unsigned", "shape", "layout"):
            assert kind is not None
            return {"dtype": self.dtype, "unsigned": self.unsigned, "shape": self.shape, "layout": self.layout}[name](
                op, kind
            )
        return str(op.attribute(name))

    def dtype(self, op: Op, kind: Type) -> str:
        found = dtype(kind)
        if found is None:
            raise self.refuse(op, f"Gluon has no type for {kind.element}")
        return found

    def unsigned(self, op: Op, kind: Type) -> str:
        return self.dtype(op, kind).replace("gl.int", "gl.uint")

    def shape(self, op: Op, kind: Type) -> str:
        """The shape of an operation's result, with the constexprs of the source."""
        return f"[{', '.join(self.size(op.results[0], kind, at) for at in range(len(kind.shape or ())))}]"

    def size(self, value: str, kind: Type, dimension: int) -> str:
        """A dimension of a value: the constexpr of the source that it is, else a number."""
        assert kind.shape is not None
        number = kind.shape[dimension]
        name = self.constexprs.size(value, dimension - len(kind.shape), number) if self.constexprs else ""
        return name or str(number)

    def layout(self, op: Op, kind: Type) -> str:
        return self.spell(self.layout_of(op, kind), op)

    def spell(self, layout: Layout, op: Op) -> str:
        """The expression for a layout, which is called after what an operation makes where the module has no use that says more."""
        if op.place.name:
            kind = "shared" if isinstance(layout, SharedLayout) else "layout"
            self.layouts.suggest(
                layout, f"{op.place.name.lower()}_{kind}", UNSURE + isinstance(layout, Slice), op.place.line
            )
        return self.trees.text(self.layouts.spell(layout).code)

    def layout_of(self, op: Op, kind: Type) -> Layout:
        """The layout of a tensor. Raises for one without a constructor."""
        layout = self.module.layout(kind)
        if isinstance(layout.root, Opaque):
            raise self.refuse(op, f"Gluon has no constructor for the layout {kind.layout}")
        return layout

    def operator(self, template: str, operands: list[Written]) -> Written:
        sign = _OPERATOR.fullmatch(template).group(1)  # type: ignore[union-attr]
        level = OPERATORS[sign]
        # Beside operators on bits, and in what is compared, brackets say what Python's precedence is.
        apart = SUM if level == COMPARISON else UNARY if level < SUM else level
        left = operands[0].at(level if operands[0].level == level != COMPARISON else apart)
        return Written(f"{left} {sign} {operands[1].at(max(apart, level + 1))}", operands[0].type, level)

    def without_sign(self, operand: Written) -> Written:
        if operand.literal and operand.text.lstrip("-").isdigit():
            value = int(operand.text)
            bits = int(operand.type.element[1:])
            return replace(operand, text=str(value % (1 << bits)))
        if operand.literal or operand.type.element == "i1":  # a constexpr, which is not negative, or a truth
            return operand
        kind = (dtype(operand.type) or "").replace("gl.int", "gl.uint")
        return replace(operand, text=f"{operand.at(ATOM)}.to({kind})", level=ATOM)

    def broadcast(self, operands: list[Written], shape: tuple[int, ...] | None) -> list[Written]:
        """Operands that give a tensor of `shape` (None: a scalar) where they meet."""
        operands = list(operands)
        for at in (None, *sorted(range(len(operands)), key=lambda i: operands[i].literal)):
            if at is not None:
                operands[at] = self.typed(operands[at]) if shape is None else operands[at].whole
            if self._meets(operands, shape):
                break
        return operands

    def _meets(self, operands: list[Written], shape: tuple[int, ...] | None) -> bool:
        if sum(not operand.literal for operand in operands[-2:]) == 0:
            return False
        if shape is None:
            return True
        shapes = [operand.type.shape if operand.shape is None else operand.shape for operand in operands]
        given = [found for found in shapes if found]
        return bool(given) and tuple(map(max, zip(*given))) == shape

    def moved(self, op: Op, name: str, source: Type) -> str:
        """The layout that a change of shape has in the module, "" where Gluon finds the same."""
        kind = op.result_types[0]
        wanted, given = self.layout_of(op, kind), self.layout_of(op, source)
        detail = {"reshape": kind.shape, "permute": op.integers("order")}.get(name, ())
        try:
            found = infer(target(self.shared.target), self.warps, name, source.shape or (), given, detail)
        except (NoLayout, ValueError) as error:
            raise self.refuse(op, f"Gluon finds no layout for its result ({error})") from None
        return "" if found == wanted else self.spell(wanted, op)


def _in_order(some: Sequence[str], all_of_them: Sequence[str]) -> bool:
    rest = iter(all_of_them)
    return all(value in rest for value in some)
