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

stands for the loop. Statements move with the comments above them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
from gluonize.gluon.trees.function import GluonFunction, Statement, constant, parsed, statements
from gluonize.gluon.trees.statements import blocks_of, call_of, free_names, inside, is_constexpr, own_loads, own_stores
from gluonize.gluon.trees.walk import called, loads, names, stores, walk
from gluonize.loops.specialized.partition_text import (
    after_a_blank_line,
    alone,
    call_lines,
    copies_into,
    docstring,
    header_of,
    is_copy,
    is_hint,
    rendered,
    without,
)
from gluonize.loops.specialized.split import CannotSplit, Split
from gluonize.rules import gluon
from gluonize.write.function.merge import name_of

_BUILTINS = ("min", "max", "range", "len", "int", "float", "bool", "abs", "print")
_NO_TENSORS = gluon.named(gluon.Effect.ALLOCATES | gluon.Effect.DESCRIBES)


def _is_pure(call: cst.Call) -> bool:
    """Whether other warps that make a call too get the same value, and nothing else comes of it."""
    if isinstance(call.func, cst.Name):
        return call.func.value in _BUILTINS
    return gluon.is_pure(called(call))


def take_apart(
    function: GluonFunction, split: Split, name: str, suffix: str = ""
) -> tuple[GluonFunction, list[GluonFunction]]:
    """The function with its first specialized loop taken apart, and the two partitions.

    Raises: CannotSplit.
    """
    return _Splitter(function, split, f"{name}_producer{suffix}", f"{name}_consumer{suffix}").result()


class _Splitter:
    def __init__(self, function: GluonFunction, split: Split, producer: str, consumer: str):
        self.split, self.producer_name, self.consumer_name = split, producer, consumer
        self.function = function
        every = list(self.statements())
        self.place = {s: i for i, s in enumerate(every)}
        copying = [s for s in every if isinstance(s, cst.For) and copies_into(s, split.rings)]
        self.loop = next(s for s in copying if not any(x in copying for x in inside(s.body.body)))
        self.in_loop = set(inside([self.loop]))
        self.constants = {name_of(s): s for s in function.constants}
        self.parameters = [p.name.value for p in function.parameters]
        self.constexprs = {p.name.value for p in function.parameters if is_constexpr(p.annotation)}
        self.constexprs |= {found.target.value for s in every if (found := constant(s)) is not None}
        self.locals = set(self.parameters) | {n for s in function.statements for n in stores(s)}
        self.tensors = self.all_tensors()

    def statements(self) -> Iterator[Statement]:
        return inside(self.function.statements)

    def is_before(self, s: Statement) -> bool:
        return self.place[s] < self.place[self.loop]

    def is_after(self, s: Statement) -> bool:
        return not self.is_before(s) and s not in self.in_loop

    # Facts ----------------------------------------------------------------------------------------------------------

    def all_tensors(self) -> set[str]:
        """Names that are tensors: known ones, and those computed from tensors or with a layout."""
        found = set(self.split.tensors)
        while True:
            before = len(found)
            for s in self.statements():
                value = call_of(s)
                if value is not None and stores(s) and self.is_tensor(value, found):
                    found |= stores(s)
            if len(found) == before:
                return found - set(self.constants)

    def is_tensor(self, value: cst.CSTNode, tensors: set[str]) -> bool:
        if called(value) in _NO_TENSORS:
            return False
        every = list(walk(value))
        if any(isinstance(a, cst.Arg) and a.keyword is not None and a.keyword.value == "layout" for a in every):
            return True
        asked = [n for n in every if isinstance(n, cst.Attribute) and n.attr.value in ("dtype", "shape", "type")]
        scalars = {n for attribute in asked for n in walk(attribute)}
        return any(isinstance(n, cst.Name) and n.value in tensors and n not in scalars for n in every)

    def blocks_around(self) -> list[tuple[Sequence[Statement], int]]:
        """The blocks that the loop is in, outermost first, with the index of the statement that holds it."""
        out: list[tuple[Sequence[Statement], int]] = []
        body: Sequence[Statement] | None = self.function.statements
        while body is not None:
            i = next(i for i, s in enumerate(body) if self.loop in inside([s]))
            out.append((body, i))
            body = next((inner for inner in blocks_of(body[i]) if self.loop in inside(inner)), None)
        return out

    def before(self) -> list[Statement]:
        """The statements that run before the loop, on the way to it."""
        return [s for body, i in self.blocks_around() for s in body[:i]]

    def enclosing_loops(self) -> list[Statement]:
        every = (body[i] for body, i in self.blocks_around())
        return [s for s in every if isinstance(s, (cst.For, cst.While)) and s is not self.loop]

    # Slices ---------------------------------------------------------------------------------------------------------

    def copying(self) -> set[Statement]:
        """The statements of the body that the copies are, or need."""
        chosen = {s for s in inside(self.loop.body.body) if is_copy(s, self.split.rings)}
        while True:
            needed = {n for s in chosen for n in loads(s)} | {self.split.slot, self.split.phase}
            more = {
                s
                for s in inside(self.loop.body.body)
                if s not in chosen and not blocks_of(s) and not is_hint(s) and stores(s) & needed
            }
            if not more:
                return chosen
            chosen |= more

    def computing(self, copying: set[Statement]) -> set[Statement]:
        """The statements of the body that are not for the copies alone."""
        simple = [s for s in inside(self.loop.body.body) if not blocks_of(s)]
        chosen = {s for s in simple if s not in copying and not is_hint(s)}
        tests = {n for s in inside(self.loop.body.body) if blocks_of(s) for n in own_loads(s)}
        while True:
            needed = {n for s in chosen for n in loads(s)} | {self.split.slot, self.split.phase} | tests | self.after()
            more = {s for s in simple if s not in chosen and not is_copy(s, self.split.rings) and not is_hint(s)}
            more = {s for s in more if stores(s) & (needed - self.moved(copying))}
            if not more:
                return chosen
            chosen |= more

    def moved(self, copying: set[Statement]) -> set[str]:
        """Variables of the copies alone: what moves from tile to tile, and is not read by anything else."""
        outside = [s for s in inside(self.loop.body.body) if s not in copying and not blocks_of(s)]
        moving = {n for s in copying if _is_augmented(s) for n in stores(s)}
        return moving - {n for s in outside for n in loads(s)}

    def after(self) -> set[str]:
        """Names that are read after the loop."""
        names = {n for s in self.statements() if self.is_after(s) for n in own_loads(s)}
        for outer in self.enclosing_loops():
            names |= loads(outer)
        return names

    def outside(self, names: set[str]) -> tuple[list[Statement], set[Statement]]:
        """The statements on the way to the loop that are or hold one that computes tensors among `names`; and all of these.

        Raises: CannotSplit.
        """
        chosen: set[Statement] = set()
        path = self.before()
        todo = names & self.tensors
        done: set[str] = set()
        while todo:
            name = todo.pop()
            done.add(name)
            if name in self.parameters:
                raise CannotSplit(f"the tensor `{name}`, which an address needs, is an argument")
            makers = [s for s in self.statements() if name in stores(s) and self.is_before(s) and not blocks_of(s)]
            for s in makers:
                holder = next((p for p in path if s is p or s in set(inside([p]))), None)
                if holder is None or isinstance(holder, (cst.For, cst.While)):
                    raise CannotSplit(f"`{name}`, which an address needs, is made by another loop or branch")
                for call in walk(s):
                    if isinstance(call, cst.Call) and not _is_pure(call):
                        raise CannotSplit(f"`{name}`, which an address needs, comes from memory or a function")
                if s not in chosen:
                    chosen.add(s)
                    todo |= (loads(s) & self.tensors) - done
                self.check_unchanged(s)
            for outer in self.enclosing_loops():
                if any(name in stores(s) and not self.is_before(s) for s in inside(outer.body.body)):
                    raise CannotSplit(f"`{name}`, which an address needs, is carried by the loop around")
        return [s for s in path if s in chosen or any(x in chosen for x in inside([s]))], chosen

    def check_unchanged(self, s: Statement) -> None:
        """Scalars that `s` uses are handed over as they are at the loop: they must not have changed in between."""
        for name in loads(s) - self.tensors - set(self.constants):
            for other in self.statements():
                if name not in own_stores(other):
                    continue
                between = self.place[s] < self.place[other] < self.place[self.loop]
                carried = any(
                    other in set(inside([outer])) and s not in set(inside(outer.body.body))
                    for outer in self.enclosing_loops()
                )
                if between or (carried and self.place[other] > self.place[s]):
                    raise CannotSplit(f"`{name}`, which an address needs, changes before the loop")

    # Functions ------------------------------------------------------------------------------------------------------

    def result(self) -> tuple[GluonFunction, list[GluonFunction]]:
        if any(isinstance(s, cst.SimpleStatementLine) and len(s.body) > 1 for s in self.statements()):
            raise CannotSplit("several of its statements share a line")
        copying = self.copying()
        computing = self.computing(copying)
        body = self.loop.body.body
        iterator = {n for n in loads(self.loop.iter)}
        needed = {n for s in copying for n in loads(s)} | iterator
        made = {n for s in copying for n in stores(s)}
        path, chosen = self.outside(needed | made)
        copying |= {
            s for s in inside(body) if is_hint(s) and loads(s) & self.locals <= needed | made | {self.split.index}
        }
        computing |= {s for s in inside(body) if is_hint(s)}

        results = self.results(computing)
        counting = list(statements(f"{self.split.counter} = 0")) if self.split.counter else []
        returned = list(statements(f"return {', '.join(results)}")) if results else []
        consumer_body = [*counting, self.looping(rendered(body, computing, self.reads(computing))), *returned]
        tiles = " and ".join(f"`{n}`" for group in self.split.rings for n in group)
        consumer, consumer_args = self.partition(
            self.consumer_name,
            f"The loop over `{self.split.index}`: waits until a slot is ready, and says when it is empty again.",
            consumer_body,
        )
        filling = [*counting, self.looping(rendered(body, copying, self.waits()))]
        addresses = rendered(path, chosen, {})
        producer, producer_args = self.partition(
            self.producer_name,
            f"Fills {tiles}: copies a tile into each slot as soon as it is empty.",
            [*addresses, *(after_a_blank_line(filling) if path else filling)],
            unshared=True,
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
        return self.without(call, chosen), [producer, consumer]

    def looping(self, body: list[Statement]) -> Statement:
        """The loop with another body."""
        return self.loop.with_changes(leading_lines=(), body=self.loop.body.with_changes(body=body, footer=()))

    def results(self, computing: set[Statement]) -> list[str]:
        """What the consumer computes that is used after the loop, in the order of the first assignments."""
        there = {n for s in self.statements() if self.is_before(s) for n in own_stores(s)} | set(self.parameters)
        used = self.after()
        assigned = {n for s in computing for n in stores(s)}
        order = dict.fromkeys([*self.parameters, *(n for s in self.statements() for n in own_stores(s))])
        return [n for n in order if n in assigned and n in there and n in used]

    def reads(self, computing: set[Statement]) -> dict[Statement, tuple[list[str], list[str]]]:
        """The consumer's waits and arrivals, by the statements of the body that first and last read a group's slots."""
        module, slot, phase = self.split.barrier_module, self.split.slot, self.split.phase
        extra: dict[Statement, tuple[list[str], list[str]]] = {}
        for rings, (ready, empty) in zip(self.split.rings, self.split.barriers):
            views = set(rings)
            touching = []
            for s in self.loop.body.body:
                inner = [x for x in inside([s]) if x in computing]
                reading = [x for x in inner if loads(x) & views]
                if reading:
                    touching.append(s)
                for x in reading:  # a name for the tile as it lies in LDS
                    if stores(x) and called(call_of(x)) in ("index", "permute", "reshape", "slice"):
                        views |= stores(x)
            assert touching, f"bug in gluonize: nothing reads {rings}"
            extra.setdefault(touching[0], ([], []))[0].append(f"{module}.wait({ready}.index({slot}), {phase})")
            extra.setdefault(touching[-1], ([], []))[1].append(f"{module}.arrive({empty}.index({slot}))")
        return extra

    def waits(self) -> dict[Statement, tuple[list[str], list[str]]]:
        """The producer's waits, by the statements that first copy into a group's slots."""
        module, slot, phase = self.split.barrier_module, self.split.slot, self.split.phase
        extra = {}
        for rings, (_, empty) in zip(self.split.rings, self.split.barriers):
            first = next(
                s for s in inside(self.loop.body.body) if is_copy(s, self.split.rings) and loads(s) & set(rings)
            )
            extra[first] = ([f"{module}.wait({empty}.index({slot}), {phase} ^ 1)"], [])
        return extra

    def partition(
        self, name: str, doc: str, body: list[Statement], unshared: bool = False
    ) -> tuple[GluonFunction, list[str]]:
        """A partition, and the arguments that it takes. unshared: shared variables get their own names back."""
        written = parsed("def f():\n    pass\n").with_statements(body)
        if unshared:
            renamed = {}
            for twin, own in self.split.twins:
                for n in sorted(written.variables):
                    if n == twin or n.startswith(twin + "_"):
                        new = own + n.removeprefix(twin)
                        renamed |= {n: new} if new not in written.variables else {}
            written = written.exchanging(renamed)
        free = free_names(written.statements)
        needed = self.closure(free)
        constants = [alone(s) for c, s in self.constants.items() if c in needed]
        order = [*self.parameters, *dict.fromkeys(n for s in self.statements() for n in own_stores(s))]
        arguments = [n for n in dict.fromkeys(order) if n in free and n not in self.constants]
        spelled = [f"{n}: gl.constexpr" if n in self.constexprs else n for n in arguments]
        shell = parsed("\n".join([header_of(name, spelled), *docstring(doc)]) + "\n")
        own = list(written.statements)
        return shell.with_statements(constants, after_a_blank_line(own) if constants else own), arguments

    def closure(self, names: set[str]) -> set[str]:
        """Layout constants among `names`, with those they are made of."""
        found = names & set(self.constants)
        while True:
            more = {n for c in found for n in loads(self.constants[c])} & set(self.constants) - found
            if not more:
                return found
            found |= more

    def without(self, call: list[str], moved: set[Statement]) -> GluonFunction:
        """The function with `call` for the loop, and without what only the producer needs."""
        given = names(statements("\n".join(call))[0])
        gone: set[Statement] = set()
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
        return without(self.function, gone, self.loop, call)

    def used_outside(self, gone: set[Statement]) -> set[str]:
        """Names that are read outside the loop, by statements that are not in `gone`."""
        return {n for s in self.statements() if s not in gone and s not in self.in_loop for n in own_loads(s)}


def _is_augmented(s: Statement) -> bool:
    return isinstance(s, cst.SimpleStatementLine) and isinstance(s.body[0], cst.AugAssign)
