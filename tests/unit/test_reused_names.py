"""Variables of raised kernels that go on under one name: programs compute the same, and no loop carries other variables than before."""

from __future__ import annotations

import ast
import random
from dataclasses import replace

import pytest

from gluonize.raised import reused
from gluonize.raised.reused import reuse
from gluonize.raised.writer import Line

PARAMETERS = ("p", "q")


class Program:
    """Statements as raising writes them: a variable for each value; those that loops carry, and results of branches, are given several."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[Line] = []
        self.count = 0
        self.block(1, list(PARAMETERS), 12)

    def fresh(self) -> str:
        self.count += 1
        return f"{self.random.choice('xyp')}_{self.count + 1}"

    def value(self, known: list[str]) -> str:
        return f"{self.random.choice(known[-5:])} * 3 + {self.random.choice(known[-5:])} - {self.random.randrange(9)}"

    def block(self, depth: int, known: list[str], length: int) -> None:
        for _ in range(length):
            kind = self.random.choice("aaaaaali" if depth < 4 else "a")
            if kind == "a":
                name = self.fresh()
                self.lines.append(Line(depth, f"{name} = {self.value(known)}"))
            elif kind == "l":
                name = self.fresh()
                self.lines.append(Line(depth, f"{name} = {self.random.choice(known)}"))
                self.lines.append(Line(depth, f"for i_{self.count} in range({self.random.randrange(3)}):"))
                inside = [*known, f"i_{self.count}", name]
                self.block(depth + 1, inside, 4)
                self.lines.append(Line(depth + 1, f"{name} = {self.value(inside)}"))
                if self.random.random() < 0.5:
                    self.block(depth + 1, inside, 2)
            else:
                name = self.fresh()
                self.lines.append(Line(depth, f"if {self.random.choice(known)} % 2:"))
                for at in range(2):
                    inside = list(known)
                    self.block(depth + 1, inside, 2)
                    self.lines.append(Line(depth + 1, f"{name} = {self.value(inside)}"))
                    if not at:
                        self.lines.append(Line(depth, "else:"))
            known.append(name)
            if self.random.random() < 0.3:
                self.lines.append(Line(depth, f"seen({self.random.choice(known)})"))

    def text(self) -> str:
        return "\n".join("    " * (line.depth - 1) + line.text for line in self.lines)

    def result(self) -> list[int]:
        found: list[int] = []
        exec(self.text(), {"p": 5, "q": 8, "seen": lambda value: found.append(value % 1000003)})
        return found


def carried(text: str) -> list[int]:
    """How many variables each loop gives another value that are there before it, as Gluon finds them."""
    out = []

    def visit(statements: list[ast.stmt], known: set[str]) -> set[str]:
        for statement in statements:
            if isinstance(statement, ast.Expr):
                continue
            if isinstance(statement, ast.Assign):
                known = known | {node.id for node in statement.targets}
            elif isinstance(statement, ast.If):
                both = visit(statement.body, known) & visit(statement.orelse, known)
                known = known | both
            else:
                index = {statement.target.id}
                given = {node.id for node in ast.walk(statement) if isinstance(getattr(node, "ctx", 0), ast.Store)}
                out.append(len(given & known - index))
                visit(statement.body, known | index)
        return known

    visit(ast.parse(text).body, set(PARAMETERS))
    return out


def changed(seed: int) -> bool:
    """Whether a program was changed. Raises: AssertionError where it computes something else, or its loops carry more."""
    program = Program(seed)
    before, loops, text = program.result(), carried(program.text()), program.text()
    reuse(program.lines, PARAMETERS)
    assert program.result() == before, f"{text}\n---\n{program.text()}"
    assert carried(program.text()) == loops, f"{text}\n---\n{program.text()}"
    return program.text() != text


def test_random_programs_compute_the_same_and_carry_as_many_variables():
    assert sum(changed(seed) for seed in range(60)) > 36


@pytest.mark.parametrize(
    "planted",
    [
        # Any variable goes on as any other; as one that is given another value before it is read; as one that is read later.
        lambda variable, other: bool(other.assigned) and len(variable.assigned) == 1,
        lambda variable, other: original(replace(variable, read=[]), other),
        lambda variable, other: original(variable, replace(other, read=[])),
    ],
)
def test_a_planted_mistake_is_found(planted, monkeypatch):
    monkeypatch.setattr(reused, "_goes_on", planted)
    with pytest.raises((AssertionError, NameError)):
        for seed in range(300):
            changed(seed)


original = reused._goes_on


def text_after(*lines: str) -> list[str]:
    found = [Line(1 + (len(line) - len(line.lstrip())) // 4, line.lstrip()) for line in lines]
    reuse(found, ("n",))
    return ["    " * (line.depth - 1) + line.text for line in found]


def test_what_a_loop_carries_is_changed_on_the_way():
    assert text_after(
        "acc = n",
        "for i in range(n):",
        "    acc_2 = acc * n",
        "    acc = f(acc_2)",
        "slot = acc + 1",
        "slot_2 = slot % 2",
        "n_2 = g(slot_2, n)",
    ) == [
        "acc = n",
        "for i in range(n):",
        "    acc = acc * n",
        "    acc = f(acc)",
        "slot = acc + 1",
        "slot = slot % 2",
        "n = g(slot, n)",
    ]


def test_what_a_loop_begins_with_is_the_first_one():
    """Not where a branch goes on with a copy."""
    assert text_after(
        "slot = f(n)",
        "g(slot)",
        "slot_2 = slot",
        "k = 0",
        "for i in range(n):",
        "    slot_2 = f(slot_2)",
        "h = f(n)",
        "if slot_2:",
        "    h_2 = h",
        "else:",
        "    h_2 = 2",
        "g(h_2, h)",
    ) == [
        "first_slot = f(n)",
        "g(first_slot)",
        "slot = first_slot",
        "k = 0",
        "for i in range(n):",
        "    slot = f(slot)",
        "h = f(n)",
        "if slot:",
        "    h_2 = h",
        "else:",
        "    h_2 = 2",
        "g(h_2, h)",
    ]
