"""Whether two modules compute the same under a contract.

verdict = prove(source, output, contract)      # modules of the typed model
verdict.word, verdict.why, verdict.first, verdict.second
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import gcd, prod
from typing import Any

from gluonize.judge.prove.access_proofs import Fact, holding, misplaced
from gluonize.judge.prove.first_difference import Difference, difference
from gluonize.judge.prove.loops import induction
from gluonize.judge.prove.loops.rolled import rolled
from gluonize.judge.prove.ops import integers, memory, opaque, shapes, shared, sums
from gluonize.judge.prove.proof_values import Hazard, NeedCase, NeedConstant, NotProved, StoresTo, Tensor
from gluonize.judge.prove.stated_bounds import Contract, bounds_of, ranges_of
from gluonize.judge.prove.symbolic_program import Machine
from gluonize.judge.prove.terms.elements import Term, Terms, bits, is_integer
from gluonize.judge.prove.terms.small_values import apart
from gluonize.judge.prove.terms.summed import in_any_order
from gluonize.judge.prove.terms.term import TooMuch, conjuncts, subterms
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import PROMISES, Op
from gluonize.trace.model.undefined import first_undefined

# They fill the table of operations.
assert induction and integers and memory and opaque and shapes and shared and sums

PROVED, REORDERED, REFUTED, NOT = "proved", "proved up to the order of sums", "refuted", "not proved"
MOST_PARTS = 32  # of a tile that are looked at each by itself


@dataclass(frozen=True)
class Verdict:
    """word: one of the four. why: what is wrong or not known, "" of what is proved. first, second: the operations of both sides at which that
    shows. seconds: of processor time. values: of integer arguments at which what could not be
    equated differs, the smallest first; of a proof without a limit alone. limits: of what is not proved, arguments whose number of
    tiles may overflow and numbers of programs whose rows may, and the greatest numbers for which they do not."""

    word: str
    why: str = ""
    first: Op | None = None
    second: Op | None = None
    seconds: float = 0.0
    assumed: tuple[str, ...] = field(default=())
    values: tuple[dict[str, int], ...] = field(default=(), hash=False)
    limits: tuple[tuple[str, int], ...] = ()

    @property
    def holds(self) -> bool:
        return self.word in (PROVED, REORDERED)


def prove(source: Module, output: Module, contract: Contract = Contract(), most: int | None = None) -> Verdict:
    """What is known of `output` computing what `source` computes, for every launch that the contract admits. most: terms that may be asked for
    before it is given up, which is the same on every machine; None: without end."""
    begin = time.process_time()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))
    try:
        verdict = _prove(source, output, contract, most)
    except TooMuch:
        verdict = Verdict(NOT, f"it takes more than {most:,} steps")
    except RecursionError:
        verdict = Verdict(NOT, "its terms are too deep")
    finally:
        sys.setrecursionlimit(limit)
    return Verdict(**{**vars(verdict), "seconds": time.process_time() - begin})


def _prove(source: Module, output: Module, contract: Contract, most: int | None) -> Verdict:
    for module, side in ((source, "the source"), (output, "the kernel")):
        if module.clusters > 1:
            return Verdict(NOT, f"{side} runs as a cluster of workgroups")
        if (found := first_undefined(module)) is not None:
            ops = (found[0], None) if side == "the source" else (None, found[0])
            return Verdict(NOT, f"{found[1]} is used where it is not defined", *ops)
    first = verdict = _attempted(source, output, contract, most)
    headed = contract.near is not None
    told: tuple[str, ...] = ()
    # What a proof needs beyond the header is told: launches that do not promise it are served, too.
    small = ", ".join(sorted(promised(source, output) - (contract.near or set())))
    if verdict.word == NOT and headed and small:
        told, contract = (f"storage of {small} is within 2 GiB",), replace(contract, near=None)
        verdict = _attempted(source, output, contract, most)
    if verdict.word == NOT and verdict.limits:
        told = (*told, *(f"{name} <= {limit}" for name, limit in verdict.limits))
        contract = replace(contract, most=(*contract.most, *verdict.limits))
        verdict = _attempted(source, output, contract, most)
    return replace(verdict, assumed=(*told, *verdict.assumed)) if verdict.holds else first


def promised(*modules: Module) -> set[str]:
    """Pointers whose storage is within 2 GiB by the launch that all the modules are specialized for."""
    found = [
        {n for n, a in zip(m.entry.argument_names, m.entry.argument_attributes) if a.get("tt.pointer_range") == 32}
        for m in modules
    ]
    return set.intersection(*found)


def _attempted(source: Module, output: Module, contract: Contract, most: int | None) -> Verdict:
    attempt = _Attempt(source, output, contract, most)
    try:
        found = attempt.run()
    except _Sided as error:
        ops = (error.op, None) if error.side == 0 else (None, error.op)
        return Verdict(REFUTED if error.hazard else NOT, error.why, *ops)
    if found is not None:
        values = attempt.apart(found) if most is None else ()
        return Verdict(NOT, found.why, found.first, found.second, values=values, limits=attempt.limits())
    return Verdict(REORDERED if attempt.reordered else PROVED, assumed=tuple(attempt.assumed))


class _Sided(Exception):
    """One of the sides is not understood, or does what no correct kernel does."""

    def __init__(self, side: int, why: str, op: Op | None, hazard: bool):
        super().__init__(why)
        self.side, self.why, self.op, self.hazard = side, why, op, hazard


class _Attempt:
    def __init__(self, source: Module, output: Module, contract: Contract, most: int | None):
        self.modules, self.contract = (source, output), contract
        self.terms = Terms()
        self.terms.left = -1 if most is None else most
        self.machines: list[Machine] = []
        self.assumed: dict[str, None] = {}
        self.reordered = False

    def run(self) -> Difference | None:
        t, source = self.terms, self.modules[0]
        arguments = self._arguments()
        effects = []
        for side, module in enumerate(self.modules):
            given = [arguments[self._names(side)[i]] for i in range(len(module.entry.arguments))]
            machine = Machine(module, t, side, given)
            machine.copies_end = self.contract.copies_end
            if side == 1 and self.contract.tiles:
                most = self.terms.programs[0]
                own = (t.node("worker", 0, (), "i32", 0, most - 1), t.node("workers", 0, (), "i32", 1, most))
                machine.tiles = (*map(t.integer_of, own), t.number_of_programs(0))
            machine.barriers = source.has("ttg.barrier", "gpu.barrier")
            if self.machines:
                machine.promises, machine.released = self.machines[0].promises, self.machines[0].released
                for (*key, _), apart in self.machines[0].apart.items():
                    machine.known_apart[tuple(key)] = apart or machine.known_apart.get(tuple(key), False)
            self.machines.append(machine)
            try:
                effects.append(machine.run())
            except NotProved as error:
                raise _Sided(side, error.why, error.op or t.at, False) from None
            except NeedConstant as error:
                raise _Sided(side, "an index of slots that is not known", error.op, False) from None
            except NeedCase as error:
                raise _Sided(
                    side, "slots that are read behind a loop whose number of iterations is not known", error.op, False
                ) from None
            except StoresTo:
                why = "a while loop that stores: programs that wait for each other are not modelled"
                raise _Sided(side, why, t.at, False) from None
            except Hazard as error:
                raise _Sided(side, error.why, error.op or t.at, side == 1) from None
        effects = split(t, *effects)
        found = self._difference(effects)
        if found is None:
            found = misplaced(t, *self.machines, self.assumed)
        facts = list(self.machines[1].given)
        if found is None or not facts:
            return found
        self.assumed.clear()
        self.reordered = False
        if (again := self._difference([[where(t, x, facts) for x in side] for side in effects])) is not None:
            return again
        self.assumed |= {f"no tile of {name} begins before it": None for name in self.machines[1].given.values()}
        return misplaced(t, *self.machines, self.assumed, facts)

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Arguments of 32 bits whose number of tiles, `(K + 63) / 64`, is computed so that it may overflow, with the greatest numbers for which it
        does not; and, where the kernel has rows in 32 bits that may, numbers of programs and sizes that these are computed from.
        """
        t, more = self.terms, {}
        for x in t.all("div"):
            whole, size = t._atom(x.args[0]), x.args[1].constant
            if whole is None or whole.op != "wrap" or whole.data != 32 or size is None:
                continue
            atom = t._atom(t.add(whole.args[0], t.integer(1 - size)))
            if atom is not None and atom.op == "argument":
                more[atom.data[0]] = (1 << 31) - size
        for x in t.all("wrap"):
            for monomial, n in x.args[0].poly.items() if x.data == 32 and 0 not in x.made_by else ():
                atom = monomial[0] if len(monomial) == 1 and n > 1 else None
                if atom is not None and atom.op == "program":
                    name = f"grid[{atom.data}]"
                    more[name] = min(more.get(name, 1 << 31), (1 << 30) // n)
                for size in sizes(t.counted[atom]) if atom in t.counted else ():
                    more.setdefault(size, 1 << 30)
        return tuple(sorted(more.items()))

    def apart(self, found: Difference) -> tuple[dict[str, int], ...]:
        """Small values of arguments at which what could not be equated differs."""
        attributes = zip(self._names(0), self.modules[0].entry.argument_attributes)
        multiples = {name: step for name, a in attributes if type(step := a.get("tt.divisibility")) is int}
        return next(filter(None, (tuple(apart(a, b, multiples)) for a, b in found.pairs)), ())

    def _difference(self, effects: list[list[Term]]) -> Difference | None:
        """The first difference; None where the effects are the same, if need be for each part of a tile, with sums in another order, or
        with several iterations in one."""
        found = self._first(effects)
        if found is not None:
            again, zeros = rolled(self.terms, *effects)
            if again != effects:
                effects = again
                found = self._first(effects)
                self.reordered |= zeros
        if found is None or not (parts := list(in_parts(self.terms, effects))):
            return found
        return None if all(self._first(part) is None for part in parts) else found

    def _first(self, effects: list[list[Term]]) -> Difference | None:
        found = difference(*effects)
        if found is not None and difference(*(in_any_order(self.terms, x) for x in effects)) is None:
            self.reordered, found = True, None
        return found

    def _names(self, side: int) -> list[str]:
        entry = self.modules[side].entry
        return list(entry.argument_names)

    def _arguments(self) -> dict[str, Any]:
        """The arguments of both sides by name. Raises: _Sided where they are not the same."""
        t, out = self.terms, {}
        kinds: dict[str, tuple] = {}
        for side, module in enumerate(self.modules):
            for name, (_, kind) in zip(self._names(side), module.entry.arguments):
                said = (kind.kind, kind.element)
                if kinds.setdefault(name, said) != said:
                    raise _Sided(side, f"the argument {name} is of two types", None, False)
        if more := hints_of(self.modules[1]) - hints_of(self.modules[0]):
            raise _Sided(1, f"what it promises of {min(more)[0]} is not what the launch does", None, False)
        widths = {n: bits(e) for n, (k, e) in kinds.items() if k == "int" and is_integer(e)}
        grid = {f"grid[{axis}]": 32 for axis in range(3)}
        ranges = ranges_of(self.contract, widths | grid)
        t.programs = [ranges[name][1] for name in grid]
        near = promised(*self.modules) & (kinds.keys() if self.contract.near is None else self.contract.near)
        for name, (kind, element) in kinds.items():
            if kind == "ptr":
                base = t.node("argument", (name, name in near), (), "ptr")
                out[name] = Tensor(t.pointer(base, t.integer(0)), (), "ptr", element)
            elif name in widths:
                atom = t.node("argument", (name,), (), element, *ranges[name])
                out[name] = Tensor(t.integer_of(atom), (), element)
            elif kind in ("int", "float"):
                out[name] = Tensor(t.node("argument", (name,), (), element), (), element)
            else:
                raise _Sided(0, f"the argument {name} is neither a number nor a pointer", None, False)
        if self.contract.tiles in out:
            out[self.contract.tiles] = Tensor(t.number_of_programs(0), (), "i32")
        programs = {i: t.program(i) for i in range(3)}
        numbers = {n: x.term for n, x in out.items() if n in widths}
        t.bounds = bounds_of(self.contract, t, numbers, programs)
        floats = {n: x.term for n, x in out.items() if x.element == "f32" and kinds[n][0] != "ptr"}
        t.positive = frozenset(floats[name] for name in self.contract.positive & floats.keys())
        return out


def sizes(trips: Term) -> set[str]:
    """Arguments that a number of iterations is computed from."""
    found, todo = set(), [trips]
    while todo:
        x = todo.pop()
        if x.op == "argument":
            found.add(x.data[0])
        todo += x.args if x.op in ("poly", "div", "max", "min", "wrap") else ()
    return found


def hints_of(module: Module) -> set[tuple[str, str, int]]:
    """What is promised of arguments, by what they are multiples of: (argument, promise, number)."""
    entry = module.entry
    told = [(n, x, a.get(x)) for n, a in zip(entry.argument_names, entry.argument_attributes) for x in PROMISES]
    known = [(n, x, most) for n, x, most in told if isinstance(most, int)]
    return {(n, x, 1 << bit) for n, x, most in known for bit in range(1, most.bit_length()) if most % (1 << bit) == 0}


def split(t: Terms, source: list[Term], other: list[Term]) -> list[list[Term]]:
    """Effects of both sides; where all that the other one does is done on a condition, or on its contrary, the source's in two, too."""
    if [x.op for x in other] != ["branch"] or [x.op for x in source] == ["branch"]:
        return [source, other]
    (way,) = other
    on, effects = way.args[0], way.args[1:]
    ways = (on, source, effects[: way.data]), (t.no(on), source, effects[way.data :])
    sides = zip(*([[t.assuming(x, [c]) for x in side] for side in both] for c, *both in ways))
    return [[t.node("branch", len(first), (on, *first, *second), "effect")] for first, second in sides]


def in_parts(t: Terms, effects: list[list[Term]]) -> Iterator[list[list[Term]]]:
    """Effects with indices of tiles in parts, where these are computed in parts: all that a tile is, if there are few; else none."""
    cuts: dict[Term, int] = {}
    for x in subterms(x for side in effects for x in side):
        if x.op in ("div", "rem") and (index := t._atom(x.args[0])) is not None and index.op == "idx":
            size = x.args[1].constant
            if size is not None and 0 < size <= index.high and (index.high + 1) % size == 0:
                cuts[index] = gcd(cuts.get(index, 0), size)
    numbers = [range((index.high + 1) // size) for index, size in cuts.items()]
    if not cuts or prod(map(len, numbers)) > MOST_PARTS:
        return
    at = [t.integer_of(t.fresh("idxf", "int", 0, size - 1)) for size in cuts.values()]
    for chosen in product(*numbers):
        by = {i: t.add(x, t.integer(n * size)) for (i, size), x, n in zip(cuts.items(), at, chosen)}
        yield [[t.substitute(x, by) for x in side] for side in effects]


def where(t: Terms, effect: Term, facts: Sequence[Fact], known: tuple[Term, ...] = ()) -> Term:
    """An effect where facts hold, each where its conditions do, in the loops that it was found in. known: what holds around the effect."""
    if effect.op == "store":
        mask = effect.args[1]
        conditions = [*known, *conjuncts(mask)]
        conditions += holding(t, facts, conditions)
        place, value = (t.assuming(x, conditions) for x in (effect.args[0], effect.args[2]))
        return t.store(effect.data, place, mask, value)
    if effect.op == "branch":
        first, second = ((*known, x) for x in (effect.args[0], t.no(effect.args[0])))
        own = [known] + [first] * effect.data + [second] * (len(effect.args) - 1 - effect.data)
        return t.rebuilt(effect, [where(t, x, facts, holds) for x, holds in zip(effect.args, own)])
    if effect.op == "loop":
        trips, group = effect.args
        _, count, inner = t.open_group(group)
        inside = [_inside(t, x, t.integer_of(count)) for x in facts if x[2] and x[2][0][1] is trips]
        facts = [x for x in facts if not x[2]] + inside
        group = t.group([], count, [where(t, x, facts, known) for x in inner])
        return t.node("loop", effect.data, (trips, group), "effect")
    return effect


def _inside(t: Terms, fact: Fact, iteration: Term) -> Fact:
    """A fact of a loop in one of its iterations."""
    said, needs, ((count, _), *loops) = fact
    by = {count: iteration}
    again = tuple((x, t.substitute(trips, by)) for x, trips in loops)
    return t.substitute(said, by), frozenset(t.substitute(x, by) for x in needs), again
