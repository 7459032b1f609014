"""Trees of pipelined loops: code with nodes in it, how nodes are printed, and what the verifier finds in loops with planted mistakes."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from gluonize.diagnostics import InternalError
from gluonize.gluon.code import (
    assignment,
    begins,
    code_of,
    indented,
    joined,
    line,
    lines_of,
    outline,
    spliced,
    text_of,
    without_indent,
    without_prefix,
    without_suffix,
)
from gluonize.gluon.nodes import (
    ONE,
    Assign,
    Authored,
    Barrier,
    Binary,
    Choose,
    Commit,
    Current,
    ElementType,
    Fill,
    Least,
    Load,
    Named,
    Node,
    Number,
    Part,
    Permuted,
    Pipelined,
    Previous,
    Read,
    Repeat,
    Slot,
    Stage,
    Store,
    Variable,
    Wait,
    When,
    binds,
    mapped,
    reads,
    walk,
)
from gluonize.gluon.printer import lines, opened, printed
from gluonize.gluon.verify import moved, problems
from gluonize.gluon.written import Written, binary

DEPTH = Number("N")
AHEAD = Binary(DEPTH, "-", ONE)
LAST = Binary(Binary(Binary(Current("k"), "+", DEPTH), "-", ONE), "%", DEPTH)


def test_code_keeps_its_nodes():
    read = Read(Slot("a_smem", "slot"), "l")
    value = binary(Written((read,), ast.Call), "*", Written((ElementType("b"),), ast.Call))
    code = code_of("acc", " += ", value)
    assert code == ("acc += ", read, " * ", ElementType("b"))
    assert text_of(printed(code)) == "acc += a_smem.index(slot).load(l) * b.dtype"
    assert opened(code, (Slot,)) == ("acc += ", read.place, ".load(l) * b.dtype")


def test_a_node_is_no_text():
    with pytest.raises(InternalError):
        Written(("x + ", Read(Slot("a_smem", "slot"), "l")), ast.Add).text
    with pytest.raises(InternalError):
        code_of("x", 1)


def test_lines_of_code_keep_their_nodes():
    node = Barrier()
    code = code_of("if x:\n", "    ", node, "\n\n    y")
    assert lines_of(code) == [("if x:",), ("    ", node), ("",), ("    y",)]
    assert joined("\n", lines_of(code)) == code
    assert indented(code, "  ") == ("  if x:\n      ", node, "\n\n      y")
    assert without_indent(code_of("a(\n    ", node, "\n\n    )"), "    ") == ("a(\n", node, "\n\n)")
    assert without_indent(code_of("a(\n  ", node, ")"), "    ") is None
    assert without_prefix(code, "if ") == ("x:\n    ", node, "\n\n    y")
    assert without_suffix(code, "y") == ("if x:\n    ", node, "\n\n    ") and without_suffix((node,), "y") == (node,)
    assert outline(code).count("\n") == 3 and begins(code, "if x") and not begins((node,), "")


def test_what_is_spliced_stands_between_the_text():
    node = Barrier()
    made = spliced("a = b + c", 0, 9, [(4, 5, (node,)), (8, 9, Written("d", ast.Name)), (4, 4, "-")])
    assert made == ("a = -", node, " + d")


SLOT = Slot("a_smem", "slot")


@pytest.mark.parametrize(
    "node, text",
    [
        (LAST, "(k + N - 1) % N"),
        (Binary(Least(AHEAD, Number("n")), "*", Number("2")), "(min(N - 1, n)) * 2"),
        (Previous(Number("slot"), DEPTH), "gl.where(slot == 0, N - 1, slot - 1)"),
        (Previous(Number("slot"), DEPTH, True), "gl.minimum((slot - 1).to(gl.uint32), N - 1).to(gl.int32)"),
        (Read(Permuted(SLOT, (1, 0)), "l"), "a_smem.index(slot).permute([1, 0]).load(l)"),
        (Read(Part(Named("a"), 64, 32, 0), "l", "cp"), "cp.load_shared_relaxed(a.slice(64, 32, 0), l)"),
        (Wait("cp.wait_group", AHEAD, True), "cp.wait_group(N - 1)"),
        (Store((SLOT, ".store(a_next)"), "a_next"), "a_smem.index(slot).store(a_next)"),
        (When(Binary(Current("t"), "+", DEPTH), Number("n"), (Barrier(),)), "if t + N < n:\n    gl.barrier()"),
        (Repeat("t", AHEAD, (line("f(\n  t)"),)), "for t in gl.static_range(N - 1):\n    f(\n      t)"),
    ],
)
def test_nodes_print(node: Node, text: str):
    assert text_of(printed(node)) == text


def test_lines_are_indented_but_for_those_that_cannot_be():
    body = (
        Authored(
            ("if x:\n    ", When(Current("t"), DEPTH, (Barrier(),))),
        ),
        Authored(("y = '''\nz'''",), verbatim=True),
    )
    stage = Stage("memory", 1, (line(""), *body))
    assert [text_of(line) for line in lines([stage], "  ")] == [
        '  with gl.amd.warp_pipeline_stage("memory", priority=1):',
        "",
        "      if x:",
        "          if t < N:",
        "              gl.barrier()",
        "    y = '''",
        "z'''",
    ]


def test_what_statements_read_and_bind():
    s = Assign("a_1", ("a_1 = ", Read(Named("b"), "l"), " + c"), "a", frozenset({"c"}))
    assert (reads(s), binds(s)) == ({"b", "c"}, {"a_1", "a"})
    assert s.value == (Read(Named("b"), "l"), " + c")
    assert Assign("a", ("a: T = 1",)).value is None


# A loop of copies: slot, free slot, wait, copy ahead, read ---------------------------------------------------------------


def fill(index: str, tile: Node, grouped: bool = True) -> Fill:
    return Fill(("copy(", Slot("a_smem", index, tile), ")"), grouped)


FETCHED = Binary(Current(), "+", AHEAD)
FIRST = (Repeat("t", AHEAD, (fill("t", Number("t")), Commit("commit()"))),)
TOP = (
    Choose("slot", Binary(Current("k"), "%", DEPTH)),
    Choose("free", LAST),
    Wait("wait", Binary(DEPTH, "-", Number("2")), True),
)
COPY = (fill("free", FETCHED), Commit("commit()"))
READ = (assignment("a", (Read(SLOT, "l"),)),)
DRAIN = (Wait("wait", Number("0"), True),)
LOOP = Pipelined(FIRST, (*TOP, *COPY, *READ), DRAIN, "N")


def changed(loop: Pipelined, old: Node, new: Node) -> Pipelined:
    """`loop` with another node for each `old`."""

    def change(node: Node) -> Node:
        return new if node == old else mapped(node, change)

    assert any(node == old for node in walk(loop))
    return mapped(loop, change)


REGISTERS = Pipelined(
    (Repeat("t", DEPTH, (Load(("a_next = f(t)",), "a_next", Number("t")), Store((Slot("a_smem", "t", Number("t")),), "a_next"))),),
    (
        TOP[0],
        Load(("a_next = f(k)",), "a_next", Binary(Current(), "+", DEPTH)),
        *READ,
        Store((Slot("a_smem", "slot", Binary(Current(), "+", DEPTH)),), "a_next"),
    ),
    (),
    "N",
    1,
)  # fmt: skip
IN_STAGES = replace(
    REGISTERS,
    body=(
        Stage("memory", 1, (TOP[0], *REGISTERS.body[1:3])),
        Stage("compute", 0, (Authored(("f(a)",), frozenset({"a"})),)),
        Stage("memory", 1, REGISTERS.body[3:]),
        Stage("compute", 0, (Authored(("g(a)",), frozenset({"a"})),)),
    ),
)
REFILLED = Pipelined(
    (fill("0", Number("0"), False),),
    (Wait("wait", Number("0"), False), assignment("b", (Slot("a_smem", "0"),)), Authored(("f(", Read(Named("b"), "l"), ")")),
     Barrier(), fill("0", Binary(Current(), "+", ONE), False)),
    (Wait("wait", Number("0"), False),),
    "1",
)  # fmt: skip
AHEAD_BY_ONE = Pipelined(
    (*FIRST, Wait("wait", Binary(DEPTH, "-", Number("2")), True), assignment("a", (Read(Slot("a_smem", "0", Number("0")), "l"),))),
    (
        Choose("slot", Binary(Binary(Current("k"), "+", ONE), "%", DEPTH)),
        Choose("free", LAST),
        Wait("wait", Binary(DEPTH, "-", Number("3")), True),
        *COPY,
        Authored(("f(a)",), frozenset({"a"})),
        assignment("a", (Read(Slot("a_smem", "slot", Binary(Current(), "+", ONE)), "l"),)),
    ),
    DRAIN,
    "N",
    3,
)  # fmt: skip
UNROLLED = Pipelined(
    FIRST,
    (Repeat("slot", DEPTH, (Choose("free", Previous(Number("slot"), DEPTH)), TOP[2], *COPY, *READ)),),
    DRAIN,
    "N",
    unrolled=True,
)
WRITTEN_OUT = Pipelined(
    (Repeat("t", Least(AHEAD, Number("n")), (fill("t", Number("t")), Commit("commit()"))),),
    (
        *TOP[:2],
        Wait("wait", Least(Binary(DEPTH, "-", Number("2")), Binary(Binary(Number("n"), "-", ONE), "-", Current("t"))), True),
        When(Binary(Current("t"), "+", AHEAD), Number("n"), COPY),
        *READ,
    ),
    (),
    "N",
    count="n",
)  # fmt: skip


@pytest.mark.parametrize("loop", [LOOP, REGISTERS, IN_STAGES, REFILLED, AHEAD_BY_ONE, UNROLLED, WRITTEN_OUT])
def test_right_loops_have_no_problems(loop: Pipelined):
    assert problems(loop) == []


PLANTED = {
    "a wait for one tile too few": (changed(LOOP, TOP[2], replace(TOP[2], left=AHEAD)), "before its copy is waited for"),
    "no barrier": (replace(LOOP, body=(*TOP[:2], *READ, *COPY)), "before its copy is waited for"),
    "the slot that is read": (changed(LOOP, TOP[1], Choose("free", TOP[0].number)), "takes the place of tile"),
    "another slot is read": (changed(LOOP, SLOT, Slot("a_smem", "free")), "is read where tile"),
    "one tile too few before the loop": (changed(LOOP, FIRST[0].count, Binary(DEPTH, "-", Number("2"))), "where tile None"),
    "a group that is not closed": (changed(LOOP, FIRST[0], replace(FIRST[0], body=FIRST[0].body[:1])), "before its copy"),
    "copies behind the loop": (replace(LOOP, after=()), "under way behind the loop"),
    "stored before it is loaded": (replace(REGISTERS, body=(REGISTERS.body[0], *REGISTERS.body[2:])), "before it is loaded"),
    "stored before it is read": (
        replace(REGISTERS, body=(*REGISTERS.body[:2], REGISTERS.body[3], REGISTERS.body[2])), "still to be read"),
    "stored where the other warps read": (
        replace(IN_STAGES, body=(IN_STAGES.body[0], *IN_STAGES.body[2:])), "the other warps may still read"),
    "refilled without a barrier": (changed(REFILLED, Barrier(), line("")), "no barrier since it was read"),
    "refilled before it is read": (
        replace(REFILLED, body=(*REFILLED.body[:2], *REFILLED.body[3:], REFILLED.body[2])), "takes the place"),
    "a tile ahead with too many under way": (
        changed(AHEAD_BY_ONE, Binary(DEPTH, "-", Number("3")), Binary(DEPTH, "-", Number("2"))), "before its copy"),
    "the slot that is multiplied": (
        changed(AHEAD_BY_ONE, Binary(Current("k"), "+", ONE), Current("k")), "is read where tile"),
    "a literal slot": (changed(UNROLLED, Previous(Number("slot"), DEPTH), Number("slot")), "takes the place"),
    "a tile that there is not": (changed(WRITTEN_OUT, Least(AHEAD, Number("n")), AHEAD), "behind the loop"),
}  # fmt: skip


@pytest.mark.parametrize("what", PLANTED)
def test_planted_mistakes_are_found(what: str):
    loop, message = PLANTED[what]
    assert any(message in found for found in problems(loop)), problems(loop)


# What passes move --------------------------------------------------------------------------------------------------------

MAKE = assignment("p", ("exp(x)",), frozenset({"x"}))
USE = assignment("acc", ("acc + p",), frozenset({"acc", "p"}))
OPERAND = assignment("q", ("convert(p)",), frozenset({"p"}))


@pytest.mark.parametrize(
    "body, found",
    [
        ((MAKE, USE), []),
        ((Stage("memory", 1, (MAKE, OPERAND)), Stage("compute", 0, (USE,))), []),
        ((USE, MAKE), ["`p` is used before it is made"]),
        ((OPERAND, MAKE, USE), ["`p` is used before it is made"]),
        ((MAKE, assignment("y", (Variable("q"),)), OPERAND, USE), ["`q` is used before it is made"]),
        ((MAKE, MAKE, USE), ["`p` is made 2 times"]),
        ((USE,), ["`p` is made 0 times"]),
        ((MAKE, OPERAND, OPERAND, USE), ["`q` is made 2 times"]),
    ],
    ids=["as it was", "in stages", "used before", "operand before", "made late", "twice", "lost", "operand twice"],
)
def test_what_a_pass_breaks(body: tuple[Node, ...], found: list[str]):
    assert moved((MAKE, USE), Pipelined((), body, (), "N")) == found


def test_a_name_of_a_slot_may_go_with_its_last_use():
    named = assignment("b", (Slot("b_smem", "slot"),))
    assert moved((named, MAKE), Pipelined((), (MAKE,), (), "N")) == []
    use = Authored((Read(Named("b"), "l"),))
    assert moved((named, MAKE), Pipelined((), (MAKE, use), (), "N")) == ["`b` is made 0 times"]


def test_what_is_made_before_the_loop_may_be_used_first():
    assert moved((MAKE, USE), Pipelined((MAKE,), (USE, MAKE), (), "N")) == []
