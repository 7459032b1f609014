"""What registers hold while one wave runs, as far as its number and the code alone decide it.

A scalar register is an int, or None: unknown, but the same in all lanes. A vector register is `Lanes`, or None: unknown. Addresses
in LDS come from lane numbers and constants; what is added to them from unknown scalars (a slot, a base) moves all
lanes by the same amount, so they are known up to that: `exact` is False then. A mask is an int with a bit per lane, or a `Choice`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gluonize.judge.cycles.code.assembly import Line, Operand, Registers
from gluonize.judge.cycles.code.integers import COMPARE, MOVED, PURE, SCALAR_ONLY, VECTOR_ONLY, WORD, short, signed


@dataclass(frozen=True)
class Lanes:
    """A 32-bit value per lane; not `exact`: up to an unknown amount that is the same in all of them."""

    values: tuple[int, ...]
    exact: bool = True


@dataclass(frozen=True)
class Choice:
    """A mask that nothing here decides: the `number`-th such, or what it leaves out when `inverted`."""

    number: int
    inverted: bool = False


Mask = int | Choice | None


_ENCODINGS = ("_e32", "_e64", "_dpp", "_sdwa")
# What says in scc whether its result is other than zero.
_SAYS_ZERO = ("and", "or", "xor", "not", "abs", "lshl", "lshr", "ashr", "bfe")
_MASKS = ("vcc", "vcc_lo", "exec", "exec_lo")


@dataclass
class Registry:
    """The registers of one wave. scalars, vectors: known values by register; masks: of scalar registers and of vcc and exec."""

    lanes: int
    scalars: dict[int | str, int] = field(default_factory=dict)
    vectors: dict[tuple[str, int], Lanes] = field(default_factory=dict)
    masks: dict[int | str, Mask] = field(default_factory=dict)
    scc: bool | None = None
    choices: int = 0

    @property
    def everyone(self) -> int:
        return (1 << self.lanes) - 1

    def scalar(self, operand: Operand) -> int | None:
        """The value of a scalar operand; None when unknown."""
        if isinstance(operand, int):
            return operand & WORD
        if isinstance(operand, Registers):
            return self.scalars.get(operand.first) if operand.file == "s" else None
        return self.scalars.get(operand)

    def vector(self, operand: Operand) -> Lanes | None:
        return self.vectors.get((operand.file, operand.first)) if isinstance(operand, Registers) else None

    def mask(self, operand: Operand) -> Mask:
        if isinstance(operand, Registers):
            return self.masks.get(operand.first)
        if operand == -1:
            return self.everyone
        if isinstance(operand, int):
            return operand & self.everyone
        return self.masks.get(_mask_name(operand), self.everyone if operand.startswith("exec") else None)

    def unknown_mask(self) -> Choice:
        self.choices += 1
        return Choice(self.choices)

    def settle(self, choice: Choice, all_lanes: bool) -> None:
        """From here on the lanes of `choice` are all (or none) of them, wherever the mask is kept."""
        for name, mask in list(self.masks.items()):
            if isinstance(mask, Choice) and mask.number == choice.number:
                chosen = all_lanes == (mask.inverted == choice.inverted)
                self.masks[name] = self.everyone if chosen else 0

    def execute(self, line: Line) -> None:
        """What an instruction that is no branch leaves in registers."""
        if line.pair is not None:
            self._execute_beside(line.pair, line)
            return
        op = line.op
        if not line.arguments:
            return
        for encoding in _ENCODINGS:
            op = op.removesuffix(encoding)
        if op.startswith("v_cmp"):
            self._compare_lanes(op, line)
        elif op == "v_readfirstlane_b32":
            found = self.vector(line.arguments[1])
            self._set_scalar(line.arguments[0], found.values[0] if found and found.exact else None)
        elif op.startswith("v_"):
            self._vector_operation(op.removeprefix("v_").removeprefix("dual_"), line)
        elif op.startswith("s_cmp"):
            self._compare_scalars(op, line)
        elif op.startswith("s_"):
            self._scalar_operation(op.removeprefix("s_"), line)
        elif op.startswith("scratch_"):
            self._spill(line)
        elif _returns_value(line):
            self._forget(line.arguments[0])  # what memory returns is not known

    def _execute_beside(self, second: Line, first: Line) -> None:
        """Both halves of a dual-issue line read what was there before."""
        before = dict(self.vectors)
        self.execute(second)
        target = second.arguments[0]
        written = self.vectors.get((target.file, target.first)) if isinstance(target, Registers) else None
        self.vectors = before
        self.execute(replace(first, pair=None))
        if isinstance(target, Registers):
            self._forget(target)
            if written is not None:
                self.vectors[target.file, target.first] = written

    def _spill(self, line: Line) -> None:
        """Registers that go to scratch memory come back as they were."""
        store = "_store_" in line.op
        kept = line.arguments[1] if store else line.arguments[0]
        if not isinstance(kept, Registers):
            return
        first = line.number("offset") or 0
        for n in range(kept.count):
            place, register = ("spilled", first + 4 * n), (kept.file, kept.first + n)
            source, target = (register, place) if store else (place, register)
            if source in self.vectors:
                self.vectors[target] = self.vectors[source]
            else:
                self.vectors.pop(target, None)

    def _forget(self, target: Registers) -> None:
        for n in range(target.first, target.first + target.count):
            if target.file == "s":
                self.scalars.pop(n, None)
                self.masks.pop(n, None)
            else:
                self.vectors.pop((target.file, n), None)

    def _set_scalar(self, target: Operand, value: int | None) -> None:
        name = target.first if isinstance(target, Registers) else target
        self.masks.pop(_mask_name(name), None)
        if value is None:
            self.scalars.pop(name, None)
        else:
            self.scalars[name] = value & WORD

    def _set_mask(self, target: Operand, mask: Mask) -> None:
        name = target.first if isinstance(target, Registers) else _mask_name(target)
        self.masks[name] = mask
        self.scalars.pop(name, None)

    def _vector_operation(self, op: str, line: Line) -> None:
        target, *sources = line.arguments
        if not isinstance(target, Registers):
            return
        if "_co_" in op or op.startswith(
            "div_scale"
        ):  # v_add_co_u32 v0, vcc, v1, v2: the carry of each lane is written
            carry, *sources = sources
            if isinstance(carry, Registers) or carry in _MASKS:
                self._set_mask(carry, self.unknown_mask())
        value = None
        if target.count == 1 and (function := VECTOR_ONLY.get(op) or PURE.get(op)):
            if op.startswith("bitop"):
                sources = [*sources, *([0] * (op == "bitop2_b32")), line.number("bitop3") or 0]
            value = self._per_lane(op, function, sources)
        elif target.count == 1 and op == "cndmask_b32":
            value = self._selected(sources)
        self._forget(target)
        if value is not None:
            self.vectors[target.file, target.first] = value

    def _selected(self, sources: list[Operand]) -> Lanes | None:
        """The second source where the mask is set, else the first."""
        mask = self.mask(sources[2] if len(sources) > 2 else "vcc")
        if not isinstance(mask, int):
            return None
        chosen = Lanes(tuple(mask >> n & 1 for n in range(self.lanes)))
        self.vectors["selected", 0] = chosen
        columns = [Registers("selected", 0), sources[0], sources[1]]
        return self._per_lane("", lambda c, a, b: b if c else a, columns)

    def _per_lane(self, op: str, function: Callable[..., int], sources: list[Operand]) -> Lanes | None:
        columns, exact = [], True
        moved = MOVED.get(op, ())
        if op.startswith("mad_") and not any(isinstance(x, Registers) and x.file != "s" for x in sources[:2]):
            moved = (0, 1, 2)  # a product of scalars
        for position, operand in enumerate(sources):
            if isinstance(operand, Registers) and operand.file != "s":
                found = self.vector(operand)
                if found is None:
                    return None
                columns.append(found.values)
                exact &= found.exact
            elif (number := self.scalar(operand)) is not None:
                columns.append((number,) * self.lanes)
            elif position in moved:
                columns.append((0,) * self.lanes)
                exact = False
            else:
                return None
        return Lanes(tuple(x & WORD for x in map(function, *columns)), exact)

    def _scalar_operation(self, op: str, line: Line) -> None:
        target, *sources = line.arguments
        if "saveexec" in op:
            self._save_exec(op, target, sources[0])
        elif op.startswith("cselect") and self.scc is not None and self._is_mask_operation(op, line):
            self._set_mask(target, self.mask(sources[not self.scc]))
        elif op.partition("_")[0] in ("and", "or", "xor", "andn2", "not", "mov") and self._is_mask_operation(op, line):
            masks = [self.mask(x) for x in sources]
            self._set_mask(target, combined(op.partition("_")[0], masks, self.everyone))
            self.scc = None
        elif isinstance(target, Registers) or target in ("m0", *_MASKS):
            function = SCALAR_ONLY.get(op) or PURE.get(op)
            if op in ("mulk_i32", "addk_i32", "addk_co_i32"):
                sources = [target, *sources]
            values = [self.scalar(x) for x in sources]
            single = not isinstance(target, Registers) or target.count == 1
            known = function is not None and single and None not in values
            if isinstance(target, Registers):
                self._forget(target)
            value = function(*values) if known else None
            if op == "cselect_b32" and single and self.scc is not None:
                value = values[0] if self.scc else values[1]
            self._set_scalar(target, value)
            if op not in ("mov_b32", "movk_i32", "cselect_b32"):
                self.scc = (value & WORD) != 0 if known and op.partition("_")[0] in _SAYS_ZERO else None

    def _is_mask_operation(self, op: str, line: Line) -> bool:
        if op.endswith("_b64") and self.lanes == 64:
            return True
        names = [x for x in line.arguments if isinstance(x, str) and x in _MASKS]
        kept = [x for x in line.arguments[1:] if isinstance(x, Registers) and x.first in self.masks]
        return op.endswith("_b32") and self.lanes == 32 and bool(names or kept)

    def _save_exec(self, op: str, target: Operand, source: Operand) -> None:
        before = self.mask("exec")
        given = self.mask(source)
        name = op.partition("_saveexec")[0]
        if name in ("andn2", "and_not1"):
            after = combined("andn2", [given, before], self.everyone)
        else:
            after = combined(name, [before, given], self.everyone)
        self._set_mask(target, before)
        self.masks["exec"] = after if after is not None else self.unknown_mask()

    def _compare_lanes(self, op: str, line: Line) -> None:
        """v_cmp_lt_u32 and the like -> a mask; v_cmpx writes exec."""
        kind, _, type_name = op.removeprefix("v_cmpx_").removeprefix("v_cmp_").partition("_")
        target, *sources = line.arguments
        if op.startswith("v_cmpx"):
            target, sources = "exec", list(line.arguments[-2:])
        function = COMPARE.get(kind)
        mask: Mask = None
        if function and type_name in ("i32", "u32") and len(sources) == 2:
            test = (lambda a, b: function(signed(a), signed(b))) if type_name == "i32" else function
            bits = self._per_lane("", lambda a, b: int(test(a, b)), sources)
            if bits is not None and bits.exact:
                mask = sum(bit << n for n, bit in enumerate(bits.values))
        self._set_mask(target, mask if mask is not None else self.unknown_mask())

    def _compare_scalars(self, op: str, line: Line) -> None:
        """s_cmp_lt_u32, s_cmpk_lg_u32 -> scc."""
        kind, _, type_name = op.removeprefix("s_cmpk_").removeprefix("s_cmp_").partition("_")
        values = [self.scalar(x) for x in line.arguments[:2]]
        if op.startswith("s_cmpk_") and type_name == "i32" and values[1] is not None:
            values[1] = short(values[1]) & WORD
        function = COMPARE.get(kind)
        if function is None or None in values or type_name not in ("i32", "u32"):
            self.scc = None
        else:
            self.scc = function(*map(signed, values)) if type_name == "i32" else function(*values)


def _returns_value(line: Line) -> bool:
    """Whether a memory instruction writes its first operand: no store, prefetch or copy to LDS does."""
    kept = ("store", "write", "prefetch", "async", "tensor")
    return isinstance(line.arguments[0], Registers) and line.word("lds") is None and not any(x in line.op for x in kept)


def combined(op: str, masks: list[Mask], everyone: int) -> Mask:
    """and, or, xor, andn2, not and mov of masks; None when it is neither known nor one of the choices or its complement."""
    if op in ("not", "mov"):
        return masks[0] if op == "mov" else _inverse(masks[0], everyone)
    first, second = masks[0], masks[1]
    if op == "andn2":
        op, second = "and", _inverse(second, everyone)
    if first is None or second is None:
        return None
    if isinstance(first, int) and isinstance(second, int):
        return {"and": first & second, "or": first | second, "xor": first ^ second}[op]
    if isinstance(first, Choice) and isinstance(second, Choice):
        if first.number != second.number:
            return None
        same = first == second
        return {"and": first if same else 0, "or": first if same else everyone, "xor": 0 if same else everyone}[op]
    known, choice = (first, second) if isinstance(first, int) else (second, first)
    if known == 0:
        return 0 if op == "and" else choice
    if known == everyone:
        return {"and": choice, "or": everyone, "xor": _inverse(choice, everyone)}[op]
    return None


def _inverse(mask: Mask, everyone: int) -> Mask:
    if isinstance(mask, Choice):
        return Choice(mask.number, not mask.inverted)
    return None if mask is None else mask ^ everyone


def _mask_name(name: int | str) -> int | str:
    return name.removesuffix("_lo") if isinstance(name, str) else name
