"""Take the warp-specialized loops of a finished function apart: a producer, a consumer, and the call that runs both.

Before, the loop reads as if one set of warps did everything:

    for k in range(n):
        slot = k % NUM_BUFFERS
        phase = (k // NUM_BUFFERS) & 1
        async_copy.global_to_shared(a_smem.index(slot), a_ptr + a_offs)
        async_copy.mbarrier_arrive(ready.index(slot))
        acc = wmma(a_smem.index(slot).load(a_operand), b, acc)
        a_offs += BLOCK_K

After, the copies and what they need are in a function of their own, which waits until the slot is empty, and to which
the statements that compute its tensors move too (other warps cannot be handed tensors); the rest is in another, which
waits for `ready` before it reads a slot and arrives at `empty` after; and

    acc = gl.warp_specialize([(consumer, (...)), (producer, (...))], [4])

stands for the loop. Statements move as text, with the comments above them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from translator.rewrite.gluon_function import GluonFunction
from translator.rewrite.loop_split import CannotSplit, Split
from translator.rewrite.merge import name_of
from translator.rewrite.partition_text import (
    IMPURE,
    Lines,
    call_lines,
    copies_into,
    docstring,
    header_of,
    is_copy,
    is_hint,
    renamed_lines,
)
from translator.facts.syntax import (
    blocks_of,
    called,
    free_names,
    inside,
    is_constexpr,
    loads,
    own_loads,
    own_stores,
    stores,
)

_BUILTINS = ("min", "max", "range", "len", "int", "float", "bool", "abs", "print")


def take_apart(function: GluonFunction, split: Split, name: str, suffix: str = "") -> tuple[str, list[tuple[str, str]]]:
    """The function with its first specialized loop taken apart, and (name, text) of the two partitions.

    Raises: CannotSplit.
    """
    return _Splitter(function, split, f"{name}_producer{suffix}", f"{name}_consumer{suffix}").result()


class _Splitter:
    def __init__(self, function: GluonFunction, split: Split, producer: str, consumer: str):
        self.split, self.producer_name, self.consumer_name = split, producer, consumer
        self.lines = Lines(function.text)
        (self.tree,) = ast.parse(function.text).body
        copying = [n for n in self.statements() if isinstance(n, ast.For) and copies_into(n, split.rings)]
        self.loop = next(n for n in copying if not any(x in copying for x in inside(n.body)))
        layouts = {name_of(s) for s in function.constants}
        self.constants = {n: s for s in self.tree.body for n in stores(s) & layouts}
        self.parameters = [p.name.value for p in function.parameters]
        self.constexprs = {
            a.arg
            for a in ast.walk(self.tree.args)
            if isinstance(a, ast.arg) and a.annotation is not None and is_constexpr(a.annotation)
        }
        for s in self.statements():
            if isinstance(s, ast.AnnAssign) and is_constexpr(s.annotation) and isinstance(s.target, ast.Name):
                self.constexprs.add(s.target.id)
        self.locals = set(self.parameters) | {n for s in self.tree.body for n in stores(s)}
        self.tensors = self.all_tensors()

    def statements(self) -> Iterator[ast.stmt]:
        return inside(self.tree.body)

    # Facts ----------------------------------------------------------------------------------------------------------

    def all_tensors(self) -> set[str]:
        """Names that are tensors: known ones, and those computed from tensors or with a layout."""
        found = set(self.split.tensors)
        while True:
            before = len(found)
            for s in self.statements():
                value = getattr(s, "value", None)
                if (
                    isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign))
                    and value is not None
                    and self.is_tensor(value, found)
                ):
                    found |= stores(s)
            if len(found) == before:
                return found - set(self.constants)

    def is_tensor(self, value: ast.expr, tensors: set[str]) -> bool:
        if called(value) in ("make_tensor_descriptor", "update_tensor_descriptor", "allocate_shared_memory"):
            return False
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and node.attr in ("dtype", "shape", "type"):
                return False
            if isinstance(node, ast.Name) and node.id in tensors:
                return True
            if isinstance(node, ast.Call) and any(k.arg == "layout" for k in node.keywords):
                return True
        return False

    def blocks_around(self) -> list[tuple[list[ast.stmt], int]]:
        """The blocks that the loop is in, outermost first, with the index of the statement that holds it."""
        out: list[tuple[list[ast.stmt], int]] = []

        def visit(body: list[ast.stmt]) -> bool:
            for i, s in enumerate(body):
                if s is self.loop:
                    out.append((body, i))
                    return True
                for inner in blocks_of(s):
                    if visit(inner):
                        out.append((body, i))
                        return True
            return False

        visit(self.tree.body)
        return out[::-1]

    def before(self) -> list[ast.stmt]:
        """The statements that run before the loop, on the way to it."""
        return [s for body, i in self.blocks_around() for s in body[:i]]

    def enclosing_loops(self) -> list[ast.stmt]:
        return [
            body[i]
            for body, i in self.blocks_around()
            if isinstance(body[i], (ast.For, ast.While)) and body[i] is not self.loop
        ]

    # Slices ---------------------------------------------------------------------------------------------------------

    def copying(self) -> set[ast.stmt]:
        """The statements of the body that the copies are, or need."""
        chosen = {s for s in inside(self.loop.body) if is_copy(s)}
        while True:
            needed = {n for s in chosen for n in loads(s)} | {self.split.slot, self.split.phase}
            more = {
                s
                for s in inside(self.loop.body)
                if s not in chosen and not blocks_of(s) and not is_hint(s) and stores(s) & needed
            }
            if not more:
                return chosen
            chosen |= more

    def computing(self, copying: set[ast.stmt]) -> set[ast.stmt]:
        """The statements of the body that are not for the copies alone."""
        simple = [s for s in inside(self.loop.body) if not blocks_of(s)]
        chosen = {s for s in simple if s not in copying and not is_hint(s)}
        tests = {n for s in inside(self.loop.body) if blocks_of(s) for n in own_loads(s)}
        while True:
            needed = {n for s in chosen for n in loads(s)} | {self.split.slot, self.split.phase} | tests | self.after()
            more = {s for s in simple if s not in chosen and not is_copy(s) and not is_hint(s)}
            more = {s for s in more if stores(s) & (needed - self.moved(copying))}
            if not more:
                return chosen
            chosen |= more

    def moved(self, copying: set[ast.stmt]) -> set[str]:
        """Variables of the copies alone: what moves from tile to tile, and is not read by anything else."""
        outside = [s for s in inside(self.loop.body) if s not in copying and not blocks_of(s)]
        moving = {n for s in copying if isinstance(s, ast.AugAssign) for n in stores(s)}
        return moving - {n for s in outside for n in loads(s)}

    def after(self) -> set[str]:
        """Names that are read after the loop."""
        names = {n for s in self.statements() if s.lineno > self.loop.end_lineno for n in own_loads(s)}
        for outer in self.enclosing_loops():
            names |= loads(outer)
        return names

    def outside(self, names: set[str]) -> tuple[list[ast.stmt], set[ast.stmt]]:
        """The statements on the way to the loop that are or hold one that computes tensors among `names`; and all of these.

        Raises: CannotSplit.
        """
        chosen: set[ast.stmt] = set()
        path = self.before()
        todo = names & self.tensors
        done: set[str] = set()
        while todo:
            name = todo.pop()
            done.add(name)
            if name in self.parameters:
                raise CannotSplit(f"the tensor `{name}`, which an address needs, is an argument")
            makers = [
                s for s in self.statements() if name in stores(s) and s.lineno < self.loop.lineno and not blocks_of(s)
            ]
            for s in makers:
                holder = next((p for p in path if s is p or s in set(inside([p]))), None)
                if holder is None or isinstance(holder, (ast.For, ast.While)):
                    raise CannotSplit(f"`{name}`, which an address needs, is made by another loop or branch")
                for call in ast.walk(s):
                    if called(call) in IMPURE or (
                        isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id not in _BUILTINS
                    ):
                        raise CannotSplit(f"`{name}`, which an address needs, comes from memory or a function")
                if s not in chosen:
                    chosen.add(s)
                    todo |= (loads(s) & self.tensors) - done
                self.check_unchanged(s)
            for outer in self.enclosing_loops():
                if any(name in stores(s) and s.lineno > self.loop.lineno for s in inside(outer.body)):
                    raise CannotSplit(f"`{name}`, which an address needs, is carried by the loop around")
        return [s for s in path if s in chosen or any(x in chosen for x in inside([s]))], chosen

    def check_unchanged(self, s: ast.stmt) -> None:
        """Scalars that `s` uses are handed over as they are at the loop: they must not have changed in between."""
        for name in loads(s) - self.tensors - set(self.constants):
            for other in self.statements():
                if name not in own_stores(other):
                    continue
                between = s.lineno < other.lineno < self.loop.lineno
                carried = any(
                    outer.lineno <= other.lineno <= outer.end_lineno and not outer.lineno < s.lineno < outer.end_lineno
                    for outer in self.enclosing_loops()
                )
                if between or (carried and other.lineno > s.lineno):
                    raise CannotSplit(f"`{name}`, which an address needs, changes before the loop")

    # Functions ------------------------------------------------------------------------------------------------------

    def result(self) -> tuple[str, list[tuple[str, str]]]:
        every = list(self.statements())
        if any(a.end_lineno == b.lineno for a, b in zip(every, every[1:]) if not blocks_of(a)):
            raise CannotSplit("several of its statements share a line")
        copying = self.copying()
        computing = self.computing(copying)
        body = self.loop.body
        iterator = {n for n in loads(self.loop.iter)}
        needed = {n for s in copying for n in loads(s)} | iterator
        made = {n for s in copying for n in stores(s)}
        path, chosen = self.outside(needed | made)
        copying |= {
            s for s in inside(body) if is_hint(s) and loads(s) & self.locals <= needed | made | {self.split.index}
        }
        computing |= {s for s in inside(body) if is_hint(s)}

        results = self.results(computing)
        consumer_body = self.lines.rendered(body, computing, " " * 8, self.reads(computing))
        counting = [f"    {self.split.counter} = 0"] if self.split.counter else []
        consumer_lines = [*counting, f"    {self.for_line()}", *consumer_body]
        if results:
            consumer_lines.append(f"    return {', '.join(results)}")
        tiles = " and ".join(f"`{n}`" for group in self.split.rings for n in group)
        consumer, consumer_args = self.function(
            self.consumer_name,
            f"The loop over `{self.split.index}`: waits until a slot is ready, and says when it is empty again.",
            consumer_lines,
        )
        producer_lines = [
            *self.lines.rendered(path, chosen, " " * 4, {}),
            *([""] if path else []),
            *counting,
            f"    {self.for_line()}",
            *self.lines.rendered(body, copying, " " * 8, self.waits()),
        ]
        producer, producer_args = self.function(
            self.producer_name,
            f"Fills {tiles}: copies a tile into each slot as soon as it is empty.",
            producer_lines,
            alone=True,
        )
        if given := [name for name in producer_args if name in self.tensors]:
            raise CannotSplit(f"the tensor `{given[0]}`, which an address needs, cannot be handed to other warps")
        call = [
            "gl.warp_specialize(",
            "    [",
            *call_lines(self.consumer_name, consumer_args),
            *call_lines(self.producer_name, producer_args),
            "    ],",
            f"    [{self.split.producer_warps}],",
            ")",
        ]
        if results:
            call[0] = f"{', '.join(results)} = {call[0]}"
        text = self.without(call, chosen)
        return text, [(self.producer_name, producer), (self.consumer_name, consumer)]

    def for_line(self) -> str:
        lines = self.lines.lines[self.loop.lineno - 1 : self.loop.iter.end_lineno]
        return "\n".join([lines[0].strip(), *lines[1:]])

    def results(self, computing: set[ast.stmt]) -> list[str]:
        """What the consumer computes that is used after the loop, in the order of the first assignments."""
        there = {n for s in self.statements() if s.lineno < self.loop.lineno for n in own_stores(s)} | set(
            self.parameters
        )
        used = self.after()
        assigned = {n for s in computing for n in stores(s)}
        order = dict.fromkeys([*self.parameters, *(n for s in self.statements() for n in own_stores(s))])
        return [n for n in order if n in assigned and n in there and n in used]

    def reads(self, computing: set[ast.stmt]) -> dict[ast.stmt, tuple[list[str], list[str]]]:
        """The consumer's waits and arrivals, by the statements of the body that first and last read a group's slots."""
        module, slot, phase = self.split.barrier_module, self.split.slot, self.split.phase
        extra: dict[ast.stmt, tuple[list[str], list[str]]] = {}
        for rings, (ready, empty) in zip(self.split.rings, self.split.barriers):
            views = set(rings)
            touching = []
            for s in self.loop.body:
                inner = [x for x in inside([s]) if x in computing]
                reading = [x for x in inner if loads(x) & views]
                if reading:
                    touching.append(s)
                for x in reading:  # a name for the tile as it lies in LDS
                    if isinstance(x, ast.Assign) and called(x.value) in ("index", "permute", "reshape", "slice"):
                        views |= stores(x)
            assert touching, f"bug in gluonize: nothing reads {rings}"
            extra.setdefault(touching[0], ([], []))[0].append(f"{module}.wait({ready}.index({slot}), {phase})")
            extra.setdefault(touching[-1], ([], []))[1].append(f"{module}.arrive({empty}.index({slot}))")
        return extra

    def waits(self) -> dict[ast.stmt, tuple[list[str], list[str]]]:
        """The producer's waits, by the statements that first copy into a group's slots."""
        module, slot, phase = self.split.barrier_module, self.split.slot, self.split.phase
        extra = {}
        for rings, (_, empty) in zip(self.split.rings, self.split.barriers):
            first = next(s for s in inside(self.loop.body) if is_copy(s) and loads(s) & set(rings))
            extra[first] = ([f"{module}.wait({empty}.index({slot}), {phase} ^ 1)"], [])
        return extra

    def function(self, name: str, doc: str, lines: list[str], alone: bool = False) -> tuple[str, list[str]]:
        """The text of a partition, and the arguments that it takes. alone: shared variables get their own names back."""
        body = ast.parse("def f():\n" + "\n".join(lines)).body[0].body  # type: ignore[attr-defined]
        renamed = {}
        if alone:
            bound = {n for s in body for n in stores(s) | loads(s)}
            for twin, own in self.split.twins:
                for n in sorted(bound):
                    if (n == twin or n.startswith(twin + "_")) and (new := own + n.removeprefix(twin)) not in bound:
                        renamed[n] = new
            lines = renamed_lines(lines, renamed)
            body = ast.parse("def f():\n" + "\n".join(lines)).body[0].body  # type: ignore[attr-defined]
        free = free_names(body)
        needed = self.closure(free)
        constants = [c for c in self.constants if c in needed]
        order = [*self.parameters, *dict.fromkeys(n for s in self.statements() for n in own_stores(s))]
        arguments = [n for n in dict.fromkeys(order) if n in free and n not in self.constants]
        spelled = [f"{n}: gl.constexpr" if n in self.constexprs else n for n in arguments]
        out = [header_of(name, spelled), *docstring(doc)]
        for constant in constants:
            out += self.lines.of(self.constants[constant], "    ")
        out += ["", *lines] if constants else lines
        return "\n".join(out) + "\n", arguments

    def closure(self, names: set[str]) -> set[str]:
        """Layout constants among `names`, with those they are made of."""
        found = names & set(self.constants)
        while True:
            more = {n for c in found for n in loads(self.constants[c].value)} & set(self.constants) - found
            if not more:
                return found
            found |= more

    def without(self, call: list[str], moved: set[ast.stmt]) -> str:
        """The function with `call` for the loop, and without what only the producer needs."""
        given = set(re.findall(r"\w+", " ".join(call)))
        gone: set[ast.stmt] = set()
        while True:
            used = given | self.used_outside(gone)
            dead = {s for s in moved - gone if not stores(s) & used}
            # A variable that only moves itself is not used.
            for name in {n for s in moved - gone for n in stores(s)}:
                makers = {s for s in moved - gone if name in stores(s)}
                if name not in given | self.used_outside(gone | makers):
                    dead |= makers
            if not dead:
                break
            gone |= dead
        constants = self.closure(used)
        gone |= {s for name, s in self.constants.items() if name not in constants}
        return self.lines.without(gone, self.loop, call)

    def used_outside(self, gone: set[ast.stmt]) -> set[str]:
        """Names that are read outside the loop, by statements that are not in `gone`."""
        return {
            n
            for s in self.statements()
            if s not in gone and not self.loop.lineno <= s.lineno <= self.loop.end_lineno
            for n in own_loads(s)
        }
