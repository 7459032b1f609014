"""Nests of loops that walk pointers, offsets and masks, rewind them, and use what is left of them afterwards.

Everything that a loop may change is defined at the top (`Cursor`s, integers, a mask, an accumulator) and stored at the end, so
that no wrong value goes unseen. Addresses stay within the margins of their buffers for the values in use.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.draw import Draw, RandomKernel
from kernelgen.scalars import Arguments

ROW = 64  # elements from one row of a tile to the next


@dataclass(frozen=True)
class Cursor:
    """A variable that says which tile of a buffer is next. `down`: it moves from row to row, else along the columns.

    form: `pointers` and `pointer` are walked addresses, `offset` a scalar, `index` a vector of rows or columns.
    """

    name: str
    form: str
    base: str
    down: bool
    tile: bool  # two dimensions

    def _address(self, index: str) -> str:
        if not self.tile:
            return f"{self.base} + {index}"
        if self.down:
            return f"{self.base} + ({index})[:, None] * ROW + r[None, :]"
        return f"{self.base} + (r[:, None] * ROW + ({index})[None, :])"

    def start(self) -> str:
        """The statement that defines it."""
        spread = "r[:, None] * ROW + r[None, :]" if self.tile else "r"
        value = {"pointers": f"{self.base} + ({spread})", "pointer": self.base, "offset": "0", "index": "r"}[self.form]
        return f"{self.name} = {value}"

    def address(self) -> str:
        spread = "(r[:, None] * ROW + r[None, :])" if self.tile else "r"
        if self.form == "pointers":
            return self.name
        if self.form == "pointer":
            return f"{self.name} + {spread}"
        return self._address(self.name if self.form == "index" else f"{self.name} + r")

    def stride(self) -> str:
        """What one element of its direction is in its own units."""
        return "ROW" if self.down and self.tile and self.form in ("pointers", "pointer") else "1"

    def moved(self, count: str) -> str:
        return count if self.stride() == "1" else f"{count} * {self.stride()}"

    def at(self, index: str) -> list[str]:
        """Statements that set it to a place counted from the start, `index` in elements."""
        if self.form == "index":
            return [f"{self.name} = {index} + r"]
        if self.form == "offset":
            return [f"{self.name} = {index} + 0"]
        return [self.start(), f"{self.name} += {self.moved(f'({index})')}"]


class Nest:
    """Writes the body of one kernel."""

    def __init__(self, draw: Draw, kind: str):
        self.draw = draw
        self.tile = kind != "vectors"
        self.size = 32 if self.tile and draw.chance(0.4) else 16 if self.tile else draw.pick(32, 64)
        self.arguments = Arguments(draw, self.size)
        self.arguments.fixed("B", self.size)
        self.element = "*fp32" if not self.tile else draw.pick("*fp16", "*fp16", "*fp16", "*bf16", "*fp32")
        if self.tile and draw.chance(0.15):
            self.element, self.size = draw.pick("*i8", "*fp8e5"), 32
            self.arguments.size, self.arguments.constexprs["B"] = 32, 32
        self.total = "tl.int32" if self.element == "*i8" else "tl.float32"
        shift = "pid * 8"
        span = (-8, 8) if self.element == "*i8" else (None, None)
        self.cursors = []
        for name, letter, down in (("ap", "a_ptr", False), ("bp", "b_ptr", True)):
            base = f"{self.arguments.pointer(letter, self.element, *span)} + {shift}"
            form = draw.pick("pointers", "pointers", "pointer", "offset", "index")
            variable = {"pointers": name, "pointer": name, "offset": f"{name}_off", "index": f"{name}_i"}[form]
            self.cursors.append(Cursor(variable, form, base, down, self.tile))
        if self.tile:
            self.arguments.fixed("ROW", ROW)
        self.integers = ["count", "last"]
        self.loops = 0
        self.depth = 0
        self.budget = draw.number(6, 14)  # statements beside those that a loop needs

    # --- pieces -------------------------------------------------------------------------------------------------

    def wide(self, vector: str) -> str:
        """A vector of B as a summand of the accumulator."""
        return f"{vector}[None, :]" if self.tile else vector

    def mask(self, cursor: Cursor) -> str:
        if not self.draw.chance(0.35):
            return ""
        zero = "0" if self.element == "*i8" else "0.0"
        keep = "keep" if self.draw.chance(0.5) else self.fresh_mask()
        where = f"({keep})[:, None]" if cursor.down else f"({keep})[None, :]"
        return f", mask={where if self.tile else keep}, other={zero}"

    def fresh_mask(self) -> str:
        index = self.draw.pick("r", "r + last", "r + count", *(["r + " + self.index] if self.depth else []))
        return f"({index}) < {self.arguments.scalar('n')}"

    @property
    def index(self) -> str:
        """The innermost loop's place in elements."""
        return self.places[-1]

    def walk(self, cursor: Cursor) -> list:
        """One way of moving on; sometimes only under a condition, sometimes in two steps."""
        draw, name = self.draw, cursor.name
        by = cursor.moved(draw.pick("B", "B", "B", "B // 2", "8"))
        plain = [f"{name} += {by}"]
        kind = draw.number(0, 9)
        if kind == 0:
            return [f"{name} += {by}", f"{name} -= {cursor.moved('4')}"]
        if kind == 1:
            return [(f"if {self.condition()}:", plain)]
        if kind == 2:
            return [(f"if {self.condition()}:", plain, "else:", [f"{name} += {cursor.moved('2')}"])]
        if kind == 3:
            return [f"{name} = {name} + {by}"]
        if kind == 4 and self.depth:
            return cursor.at(self.index)
        if kind == 5:
            return [f"{name} -= {by}"]
        return plain

    def condition(self) -> str:
        pick = [
            "count > 2",
            f"{self.arguments.scalar('mode')} == 2",
            f"{self.arguments.scalar('mode')} > 0",
            "pid == 0",
        ]
        if self.depth:
            pick += [f"({self.index}) % 3 == 0", f"{self.index} > B"]
        return self.draw.pick(*pick)

    def change_integer(self) -> list:
        draw = self.draw
        name = draw.pick(*self.integers)
        other = draw.pick(*self.integers, "pid", *([self.index] if self.depth else []))
        by = draw.pick("1", "B", "3", other)
        forms = [f"{name} += {by}", f"{name} += {by}", f"{name} = {name} + {by}", f"{name} -= {by}"]
        forms += [f"{name} = {other} + 1", f"{name} //= 2", "count, last = last, count", f"{name} = {name} % 37"]
        if self.depth:
            forms += [f"{name} = {self.index} + 0"]
        chosen = [draw.pick(*forms)]
        return [(f"if {self.condition()}:", chosen)] if draw.chance(0.25) else chosen

    def change_mask(self) -> list:
        return [
            self.draw.pick(
                f"keep = {self.fresh_mask()}", "keep = keep & (r != last)", f"keep = keep | ({self.fresh_mask()})"
            )
        ]

    def use(self) -> list:
        """A statement that adds what some variable is to the accumulator."""
        draw, cursor = self.draw, self.draw.pick(*self.cursors)
        to = ".to(tl.int32)" if self.element == "*i8" else ".to(tl.float32)"
        forms = [f"acc += {draw.pick(*self.integers)}", f"acc += tl.load({cursor.address()}{self.mask(cursor)}){to}"]
        forms += [f"acc = tl.where({self.wide('keep')}, acc, acc + 1)"]
        if cursor.form == "index":
            forms += [f"acc += {self.wide(cursor.name)}"] * 3
        return [draw.pick(*forms)]

    def store(self) -> list:
        """Write the accumulator to the next place of the log."""
        at = "r[:, None] * B + r[None, :]" if self.tile else "r"
        step = "B * B" if self.tile else "B"
        log = self.arguments.pointer("d_ptr", "*i32" if self.element == "*i8" else "*fp32")
        moves = f"entries += {step}"
        return [f"tl.store({log} + pid * 8192 + entries % 4096 + ({at}), acc)", moves]

    def extra(self) -> list:
        kind = self.draw.number(0, 5)
        if kind <= 1:
            return self.change_integer()
        return [self.change_mask, self.use, self.store, lambda: self.walk(self.draw.pick(*self.cursors))][kind - 2]()

    # --- loops --------------------------------------------------------------------------------------------------

    def header(self) -> tuple[str, str, list, list]:
        """-> head, the place in elements, statements before, statements at the end of the body."""
        draw, i = self.draw, self.loops
        self.loops += 1
        k, trips = "K", "trips"
        stages = draw.pick("", "", f", num_stages={draw.number(1, 4)}")
        forms = {
            f"for k{i} in range(0, {k}, B):": f"k{i}",
            f"for k{i} in tl.range(0, {k}, B{stages}):": f"k{i}",
            f"for t{i} in range({trips}):": f"t{i} * B",
            f"for t{i} in range(0, tl.cdiv({k}, B)):": f"t{i} * B",
            f"for t{i} in tl.range({trips}, 0, step=-1):": f"t{i} * B",
            f"for t{i} in tl.range({trips} - 1, -1, -1{stages}):": f"t{i} * B",
            f"for k{i} in range({k} - B, -B, -B):": f"k{i}",
            f"for t{i} in tl.static_range(2):": f"t{i} * B",
            f"for t{i} in range(3):": f"t{i} * B",
            f"for t{i} in range(last % 4, {trips}):": f"t{i} * B",
        }
        head = draw.pick(*forms)
        place = forms[head]
        before: list = []
        after: list = []
        if draw.chance(0.08):
            head, place = f"while w{i} < {trips}:", f"w{i} * B"
            before, after = [f"w{i} = 0"], [f"w{i} += 1"]
        for name in (k, trips):
            if name in head:
                self.arguments.scalar(name)
        return head, place, before, after

    def loop(self) -> list:
        draw = self.draw
        head, place, before, after = self.header()
        self.places.append(place)
        self.depth += 1
        body = self.loads()
        for _ in range(min(self.budget, draw.number(0, 2))):
            self.budget -= 1
            at = draw.number(0, len(body))
            body[at:at] = self.extra()
        if self.depth < 2 and self.loops < 3 and draw.chance(0.3):
            at = draw.number(0, len(body))
            body[at:at] = [*self.loop(), *self.rewinds()]
        if draw.chance(0.12):
            other = ("else:", self.use()) if draw.chance(0.4) else ()
            body = [(f"if {self.condition()}:", body, *other)]
        self.depth -= 1
        self.places.pop()
        return [*before, (head, body + after)]

    def loads(self) -> list:
        """The loads of an iteration with the walks around them, and what becomes of the values."""
        draw = self.draw
        to = "" if self.tile else ".to(tl.float32)"
        order = [0, 1] if draw.chance(0.8) else [1, 0]
        body: list = []
        late: list = []
        for which in order:
            cursor = self.cursors[which]
            fresh = self.recomputed(cursor)
            load = f"{'ab'[which]} = tl.load({cursor.address()}{self.mask(cursor)}){to}"
            steps = [] if fresh else self.walk(cursor)
            if draw.chance(0.25) and not fresh:
                body += [*steps, load]
            else:
                body += [*fresh, load]
                (late if draw.chance(0.6) else body).extend(steps)
        if self.tile:
            total = f", out_dtype={self.total}" if self.element == "*i8" else ""
            body.append(draw.pick(f"acc = tl.dot(a, b, acc{total})", f"acc += tl.dot(a, b{total})"))
        else:
            body.append(draw.pick("acc = acc * 0.5 + a + b", "acc += a - b * 0.25", "acc = tl.maximum(acc, a) + b"))
        return body + late

    def recomputed(self, cursor: Cursor) -> list:
        """Statements that set it anew in this iteration, or none: then it is walked."""
        if not self.draw.chance(0.35 if cursor.form in ("index", "offset") else 0.12):
            return []
        return cursor.at(
            self.draw.pick(self.index, self.index, f"{self.index} + last % 8", f"last % 16 + {self.index}")
        )

    def rewinds(self) -> list:
        """What happens to the cursors after a loop, in place more often than not."""
        draw = self.draw
        out: list = []
        for cursor in draw.some(self.cursors, 0, 2):
            name = cursor.name
            back = draw.pick("K", "3 * B", "B", "2 * B", "count")
            if back == "K":
                self.arguments.scalar("K")
            forms = [f"{name} -= {cursor.moved(back)}"] * 3 + [f"{name} += {cursor.moved('1')}"]
            forms += [
                f"{name} = {name} - {cursor.moved(back)}",
                *(["; ".join(cursor.at("count % 16"))] if draw.chance(0.3) else []),
            ]
            if cursor.form in ("offset", "index"):
                forms += [f"{name} //= 2", f"{name} *= 2", f"{name} = -{name}", f"{name} %= 64"]
            lines = draw.pick(*forms).split("; ")
            out += [(f"if {self.condition()}:", lines)] if draw.chance(0.15) else lines
        for _ in range(min(self.budget, draw.number(0, 2))):
            self.budget -= 1
            out += self.extra()
        return out

    # --- the kernel ---------------------------------------------------------------------------------------------

    def kernel(self, kind: str) -> RandomKernel:
        draw = self.draw
        self.places: list[str] = []
        shape = "(B, B)" if self.tile else "(B,)"
        body: list = ["pid = tl.program_id(0)", "r = tl.arange(0, B)", "keep = r < B - 1"]
        body += [
            f"count = {draw.pick('0', '3', 'pid', 'pid + 5')}",
            f"last = {draw.pick('0', 'pid', 'B')}",
            "entries = 0",
        ]
        body += [cursor.start() for cursor in self.cursors]
        body += [f"acc = tl.zeros({shape}, dtype={self.total})"]
        for _ in range(draw.number(1, 2)):
            body += [*self.loop(), *self.rewinds()]
            if draw.chance(0.3):
                body += self.use()
        if draw.chance(0.25):
            body += self.branched()
        body += self.final()
        grids = [(draw.number(1, 3),), (1,), (2,)]
        return self.arguments.kernel(body, kind, grids)

    def branched(self) -> list:
        """A loop that only some launches run, with changes behind it."""
        mode = self.arguments.scalar("mode")
        test = self.draw.pick(f"{mode} == 2", f"{mode} != 0", f"{mode} > 1")
        other = ("else:", [*self.rewinds(), *self.use()]) if self.draw.chance(0.4) else ()
        return [(f"if {test}:", [*self.loop(), *self.rewinds(), *self.use()], *other)]

    def final(self) -> list:
        """Store all that is left."""
        at = "r[:, None] * B + r[None, :]" if self.tile else "r"
        out = self.arguments.pointer("c_ptr", "*i32" if self.element == "*i8" else "*fp32")
        whole = self.arguments.pointer("i_ptr", "*i32", -100, 100)
        lines = self.use() + [f"acc = tl.where({self.wide('keep')}, acc, acc + 1)"]
        for cursor in self.cursors:
            to = ".to(tl.int32)" if self.element == "*i8" else ".to(tl.float32)"
            if self.draw.chance(0.6):
                lines.append(f"acc += tl.load({cursor.address()}){to}")
            if cursor.form == "index":
                lines.append(f"tl.store({whole} + pid * 512 + {256 if cursor.down else 384} + r, {cursor.name})")
        lines.append(f"tl.store({out} + pid * 4096 + ({at}), acc)")
        lines += [f"tl.store({whole} + pid * 512 + {i}, {name})" for i, name in enumerate((*self.integers, "entries"))]
        return lines


def products(draw: Draw) -> RandomKernel:
    """Loops with matrix products."""
    return Nest(draw, "products").kernel("loops of products")


def vectors(draw: Draw) -> RandomKernel:
    """Loops over vectors."""
    return Nest(draw, "vectors").kernel("loops of vectors")
