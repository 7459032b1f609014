"""Random kernels of integers, for `narrow_kernels.py`: a seed is a kernel for ever."""

from __future__ import annotations

import random

# {0}, {1}: expressions; {s}: a scalar; {n}: a small number; {v}: a variable.
SCALARS = ("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} * {n}", "{0} + {n}", "{0} - {n}", "{0} // {n}", "{0} % {n}", "{0} // ({1} + {n})", "{0} % ({1} + {n})", "tl.cdiv({0}, {n})", "tl.cdiv({0}, C)", "tl.cdiv({0}, {1})", "tl.minimum({0}, {1})", "tl.maximum({0}, {1})", "tl.maximum({0}, 0)", "tl.minimum({0}, {n})", "min({0}, {1})", "{0} & {n}", "{0} & {1}", "{0} | {1}", "{0} ^ {1}", "{0} >> {k}", "{0} << {k}", "-{0}", "~{0}", "tl.abs({0})", "{0} if {1} > {n} else {n}", "{0}.to(tl.int64)", "{0}.to(tl.int8).to(tl.int32)", "{0}.to(tl.int32)", "({0}.to(tl.uint32) - {n}).to(tl.int32)", "({0}.to(tl.int64) * {1}).to(tl.int32)", "{0}.to(tl.int16)", "tl.where({0} > {1}, {0}, {1})", "({0} < {1}).to(tl.int32)", "apart({0}, {1})", "behind({0})", "behind({0}, by={1})", "chosen({0}, {1})", "inner({0}, {1})", "minimum({0}, {1})", "({0} + {1}) % {n}", "({0} * {1}) // {n}", "({0} // {n}) * {n}", "tl.program_id({x}) * {0}", "({0} + {n}) // {n} * {n}", "tl.sum(o * {0}, 0)", "tl.max(o - {0}, 0)")  # fmt: skip
TENSORS = ("o * {0}", "o + {0}", "o - {0}", "{0} + o * {1}", "tl.where(o < {0}, o, {1})", "tl.where(o < {0}, {0} - o, 0)", "(o + {0}) % {n}", "tl.minimum(o, {0})", "tl.maximum(o - {0}, 0)", "tl.cumsum(o * {0}, 0)", "tl.full((C,), {n}, tl.int32) * {0}", "o[:, None] * {0} + o[None, :]", "tl.flip(o) * {0}", "(o.to(tl.int64) * {0})", "tl.load(p + o) & {n}", "(o * {0}).to(tl.int64) + {1}")  # fmt: skip
LEAVES = ("a", "b", "a", "b", "w", "c.to(tl.int32)", "tl.program_id(0)", "tl.program_id(1)", "tl.num_programs(0)", "(a & 3)", "h.to(tl.int32)", "C * a", "b", "u.to(tl.int32)")  # fmt: skip
RANGES = ("range({0})", "range({n}, {0})", "range(0, {0}, {n})", "range({0}, {1})", "tl.range(0, {0}, step={n})", "range({0}, -1, -1)", "tl.range({n}, {0}, step=-2)", "range({0}, {1}, C)", "range(tl.program_id(0), {0}, {n})", "range({0}, {0} + {n})", "tl.static_range({n})", "tl.static_range({n}, -1, -1)", "range(tl.cdiv({0}, C))", "range({0}, {1}, MINUS)", "range(tl.minimum({0}, {1}))")  # fmt: skip
TESTS = ("{0} >= {1}", "{0} > {n}", "{0} >= 0", "{n} <= {0}", "({0} >= 0) & ({0} < {1})", "{0} < {1}", "({0} >= {1}) & ({1} >= 0)", "({0} > 0) | ({1} > 0)", "{0} != {1}", "0 <= {0} and {0} <= {1}", "not ({0} >= 0)", "{0} % 2 == 0", "({0} >= 1) & ({1} >= 1)")  # fmt: skip


class _Body:
    """Statements of a kernel, one after another."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.known = ["a", "b"]
        self.made = 0

    def expression(self, depth: int) -> str:
        pick = self.random
        if depth == 0 or pick.random() < 0.15:
            leaf = pick.choice([*LEAVES, *(self.known[-4:] * 3)])
            return self.filled(leaf, 0)
        found = self.filled(pick.choice(SCALARS), depth)
        return f"({found})"

    def filled(self, form: str, depth: int) -> str:
        pick = self.random
        parts = {
            "n": str(pick.choice([1, 2, 3, 4, 5, 7])),
            "k": str(pick.randrange(4)),
            "x": str(pick.randrange(3)),
            "e": "",
        }
        count = sum("{%d}" % i in form for i in range(2))
        return form.format(*(self.expression(depth - 1) for _ in range(count)), **parts)

    def block(self, indent: int, count: int) -> None:
        known = list(self.known)
        for _ in range(count):
            self.statement("    " * indent, indent)
        self.known = self.known if indent == 0 else known

    def statement(self, space: str, indent: int) -> None:
        pick, chance = self.random, self.random.random()
        if chance < 0.12 and indent < 2:
            variable = f"i{self.made}"
            self.made += 1
            self.lines.append(f"{space}for {variable} in {self.filled(pick.choice(RANGES), 1)}:")
            self.known.append(variable)
            self.block(indent + 1, pick.randint(1, 3))
            self.known.remove(variable)
        elif chance < 0.28 and indent < 2:
            names = pick.choice(self.known), pick.choice(self.known)
            form = pick.choice(TESTS)
            self.lines.append(f"{space}if {form.format(*names, n=pick.choice([0, 1, 3]))}:")
            self.difference(space + "    ", names)
            self.block(indent + 1, pick.randint(1, 2))
            if pick.random() < 0.3:
                self.lines.append(f"{space}else:")
                self.block(indent + 1, 1)
        elif chance < 0.45 and indent:
            self.lines.append(f"{space}{pick.choice(self.known)} {pick.choice('+-*+')}= {self.expression(1)}")
        elif chance < 0.55:
            self.lines.append(f"{space}x{self.made}, y{self.made} = both({self.expression(1)}, {self.expression(1)})")
        elif chance < 0.75:
            self.lines.append(f"{space}t{self.made} = {self.filled(pick.choice(TENSORS), 2)}")
            self.made += 1
        else:
            again = indent > 0 and pick.random() < 0.5
            name = pick.choice(self.known) if again else f"v{self.made}"
            self.made += 1
            self.lines.append(f"{space}{name} = {self.expression(3)}")
            if not again:
                self.known.append(name)

    def difference(self, space: str, names: tuple[str, str]) -> None:
        if self.random.random() < 0.6:
            self.lines.append(f"{space}d{self.made} = {names[0]} - {names[1]}")
            self.made += 1


def body(seed: int) -> str:
    """The statements of a kernel. Triton may refuse them: mixed signs, types that change."""
    made = _Body(seed)
    made.block(0, 7)
    return "\n".join(made.lines)


__all__ = ["body"]
