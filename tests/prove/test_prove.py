"""The prover: what it proves, what it refutes, and that a planted fault is never proved."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import fixture_set
import pytest
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.prove.both_sides import NOT, PROVED, REFUTED, prove
from gluonize.judge.prove.stated_bounds import contract_of, ranges_of, read_contract
from gluonize.judge.prove.terms.elements import Terms
from gluonize.judge.verdict.proof import BRIEFLY
from gluonize.read.spec.launch import read_launches
from gluonize.rules.targets import target as target_row
from gluonize.trace.model.parse import parse_module
from printed_modules import function_of

sys.path.insert(0, str(Path(__file__).resolve().parent))
from planted_faults import faults  # noqa: E402


def pair(fixture: str, launch: int, target: str):
    """(source module, text of the golden's module, contract) of a fixture's launch."""
    folder = fixture_set.Fixture(fixture_set.ROOT / fixture)
    golden = folder.golden_file(target)
    spec = read_launches(str(folder.launches_file))[launch]
    left = source_stage(str(folder.kernel_file), spec, target)
    right = translated_stage(str(golden), spec, target)
    stated = read_contract(golden.read_text(), spec.kernel, spec.constexprs)
    contract = replace(stated, copies_end=target_row(target).copies_end_with_program)
    return parse_module(left.text), right.text, contract


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "fixture, target",
    [
        ("vector_add", "gfx1100"),
        ("softmax", "gfx942"),
        ("matmul", "gfx950"),
        ("descriptor_matmul", "gfx1250"),
        ("flash_attention", "gfx950"),
        ("chunked_scan", "gfx942"),
    ],
)
def test_goldens_are_proved(fixture, target):
    source, text, contract = pair(fixture, 0, target)
    verdict = prove(source, parse_module(text), contract)
    assert verdict.word == PROVED, (verdict.why, verdict.first, verdict.second)


# Faults that leave the results and the order of accesses as they are, by a part of the line and what is changed.
SAME = {
    ("arith.cmpi slt, %a_offs", "arith.cmpi ult"),  # K is not negative
    ("arith.cmpi slt, %b_offs", "arith.cmpi ult"),
    ("arith.remsi %k", "arith.remui"),  # an index that is not negative
    ("arith.divsi %", "arith.divui"),
    ("arith.subi %slot", "swapped"),  # of two slots, the one before is the one that it is not
}


def test_planted_faults_are_not_proved():
    source, text, contract = pair("matmul", 0, "gfx950")
    lines = text.splitlines()
    tried = refuted = 0
    for fault in list(faults(text))[::16]:
        line = lines[fault.line - 1]
        verdict = prove(source, parse_module(fault.text), contract)
        tried, refuted = tried + 1, refuted + (verdict.word == REFUTED)
        equivalent = any(part in line and what in fault.what for part, what in SAME)
        assert not verdict.holds or equivalent, (fault.line, fault.what, line)
    assert tried > 12 and refuted


def test_hazards_are_refuted_at_their_line():
    source, text, contract = pair("matmul", 0, "gfx950")
    lines = text.splitlines()
    wait = next(i for i, line in enumerate(lines) if "ttg.async_wait" in line)
    lines[wait] = lines[wait].replace("num = 0", "num = 1")
    verdict = prove(source, parse_module("\n".join(lines)), contract)
    assert verdict.word == REFUTED and "in flight" in verdict.why
    assert verdict.second is not None and verdict.second.name in ("ttg.local_load", "amdg.buffer_load_to_local")


def test_what_is_not_known_is_not_proved():
    module = function_of("    %0 = foo.bar : i32")
    verdict = prove(module, module)
    assert verdict.word == NOT and "foo.bar" in verdict.why


def test_overflow_is_not_taken_to_be_absent():
    """(a + 1) < (b + 1) is a < b only where neither overflows."""
    header = (
        '  tt.func public @kernel(%p: !tt.ptr<i32> loc("p"(#loc)), %a: i32 loc("a"(#loc)), %b: i32 loc("b"(#loc))) {\n'
    )
    one = "    %one = arith.constant 1 : i32\n    %x = arith.addi %a, %one : i32\n    %y = arith.addi %b, %one : i32\n"
    plain = header + "    %m = arith.cmpi slt, %a, %b : i32\n"
    moved = header + one + "    %m = arith.cmpi slt, %x, %y : i32\n"
    end = "    %v = arith.extui %m : i1 to i32\n    tt.store %p, %v : !tt.ptr<i32>\n    tt.return\n  }\n"
    first, second = (parse_module("#loc = loc(unknown)\nmodule {\n" + text + end + "}\n") for text in (plain, moved))
    assert prove(first, second).word == NOT
    known = contract_of(["a, b >= 0", "a + 1 <= 2**31 - 1", "b + 1 <= 2**31 - 1"], {})
    assert prove(first, second, known).word == PROVED


def test_a_proof_ends_after_as_many_steps_as_it_may_take():
    source, text, contract = pair("softmax", 0, "gfx942")
    verdict = prove(source, parse_module(text), contract, 50)
    assert verdict.word == NOT and "50 steps" in verdict.why
    assert prove(source, parse_module(text), contract, BRIEFLY).word == PROVED


def test_what_a_header_states():
    """Lines that go on belong to the line before them; of storage, the header's word counts where it has one for the kernel."""
    header = """# Generated by gluonize from kernel.py
# add: 4 warps, num_stages=2, x_ptr, y_ptr *fp32,
#     BLOCK=128
#   assumes storage of x_ptr, y_ptr within 2 GiB
#   assumes (grid[0] - 1) * BLOCK + n <=
#     2**30
# A launch that breaks an assumption is refused.
# guessed for add: n = i32 (computed),
#     BLOCK = 128 (name)
# mul: 4 warps
import triton
"""
    found = read_contract(header, "add", {"BLOCK": 128})
    assert found.near == {"x_ptr", "y_ptr"} and ("(grid[0] - 1) * BLOCK + n", 2**30) in found.most
    assert read_contract(header, "mul", {}).near == set() and read_contract(header, "other", {}).near is None


def test_contract_bounds():
    lines = [
        "K >= 0",
        "((K + BLOCK - 1) // BLOCK + 2) * BLOCK <= 2**31 - 1",
        "max((grid[0] - 1) * 64, n - 1) + 64 <= 2**31 - 1",
        "0 <= L <= 2**20",
    ]
    found = ranges_of(contract_of(lines, {"BLOCK": 64}), {"K": 32, "L": 32, "n": 32, "grid[0]": 32})
    assert found["L"] == (0, 2**20)
    assert found["K"] == (0, 2**31 - 192) and found["n"][1] == 2**31 - 64
    assert found["grid[0]"] == (1, (2**31 - 1 - 64) // 64 + 1)


@pytest.mark.parametrize("width", (3, 4))
def test_integers_are_those_of_the_machine(width):
    """Quotients, remainders, minima and numbers that wrap, for all numbers of a few bits: constants fold as the operations do."""
    t = Terms()
    numbers = range(-(1 << (width - 1)), 1 << (width - 1))
    for a in numbers:
        for b in numbers:
            x, y = t.integer(a), t.integer(b)
            total = (a + b + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
            assert t.value(t.reduced(t.add(x, y), width), width).constant == total
            assert t.unsigned(t.reduced(t.add(x, y), width), width).constant == (a + b) % (1 << width)
            if b:
                assert t.div(x, y).constant == int(a / b) and t.rem(x, y).constant == a - b * int(a / b)


def test_normal_forms_hold_for_all_values():
    """Rules for quotients, remainders and comparisons, evaluated for all values of their atoms."""
    t = Terms()
    i, j = (t.node("sym", name, (), "int", 0, 7) for name in "ij")
    x = t.node("sym", "x", (), "i8", -128, 127)
    made = []
    for f in (3, 4, 8, -2):
        for c in (2, 3, 8, 12):
            p = t.add(t.scaled(t.integer_of(i), f), t.integer_of(j))
            q = t.add(t.scaled(t.integer_of(x), f), t.integer_of(j))
            for number, source in ((p, lambda v, f=f: f * v[i] + v[j]), (q, lambda v, f=f: f * v[x] + v[j])):
                made.append((t.div(number, t.integer(c)), lambda v, s=source, c=c: int(s(v) / c)))
                made.append((t.rem(number, t.integer(c)), lambda v, s=source, c=c: s(v) - c * int(s(v) / c)))
                made.append((t.value(t.reduced(number, 5), 5), lambda v, s=source: (s(v) + 16) % 32 - 16))
                made.append((t.unsigned(t.reduced(number, 5), 5), lambda v, s=source: s(v) % 32))
                made.append((t.negative(t.add(number, t.integer(-c))), lambda v, s=source, c=c: s(v) < c))
    for a in range(8):
        for b in range(8):
            for c in (-128, -17, -8, -1, 0, 1, 5, 16, 127):
                values = {i: a, j: b, x: c}
                for term, wanted in made:
                    assert evaluated(term, values) == wanted(values), (term, values)


def evaluated(term, values):
    """The number, or the truth, that a term stands for."""
    if term in values:
        return values[term]
    if term.poly is not None:
        total = 0
        for monomial, n in term.poly.items():
            for x in monomial:
                n *= evaluated(x, values)
            total += n
        return total
    args = [evaluated(x, values) for x in term.args]
    if term.op in ("wrap", "uwrap"):
        whole = 1 << term.data
        low = args[0] % whole
        return low - whole if term.op == "wrap" and low >= whole // 2 else low
    known = {
        "true": lambda: True,
        "false": lambda: False,
        "div": lambda a, b: int(a / b),
        "rem": lambda a, b: a - b * int(a / b),
        "min": min,
        "max": max,
        "lt0": lambda a: a < 0,
        "eq0": lambda a: a == 0,
        "not": lambda a: not a,
        "and": lambda *a: all(a),
        "or": lambda *a: any(a),
        "sel": lambda c, a, b: a if c else b,
    }
    return known[term.op](*args)


def test_where_a_loop_begins_may_overflow():
    """`64 * program` overflows in a grid that no contract bounds: the same in 64 bits is another address."""
    head = '#loc = loc(unknown)\nmodule {\n  tt.func public @kernel(%p: !tt.ptr<i32> loc("p"(#loc)), %n: i32 loc("n"(#loc))) {\n'
    head += "    %one = arith.constant 1 : i32\n    %block = arith.constant 64 : i32\n    %pid = tt.get_program_id x : i32\n"
    head += "    %low = arith.muli %pid, %block : i32\n    %one_wide = arith.constant 1 : i64\n"
    wide = "    %block_wide = arith.constant 64 : i64\n    %pid_wide = arith.extsi %pid : i32 to i64\n    %start = arith.muli %pid_wide, %block_wide : i64\n"
    loop = "    %r = scf.for %i = %low to %n step %one iter_args(%j = %start) -> (i64)  : i32 {\n"
    store = "      %at = tt.addptr %p, WHERE : !tt.ptr<i32>, i64\n      tt.store %at, %n : !tt.ptr<i32>\n"
    end = "      %next = arith.addi %j, %one_wide : i64\n      scf.yield %next : i64\n    }\n    tt.return\n  }\n}\n"
    own = store.replace("WHERE", "%w").replace("      %at", "      %w = arith.extsi %i : i32 to i64\n      %at", 1)
    narrow, carried = (parse_module(head + wide + loop + text + end) for text in (own, store.replace("WHERE", "%j")))
    assert not prove(narrow, carried).holds and prove(narrow, narrow).word == PROVED
    few = contract_of(["grid[0] <= 2**20"], {})
    assert prove(narrow, carried, few).word == PROVED
    # Where only the kernel has rows in 32 bits, it is told how many programs these are enough for.
    simple = [head + wide + store.replace("WHERE", name) + "    tt.return\n  }\n}\n" for name in ("%start", "%w")]
    simple[1] = simple[1].replace("      %at", "      %w = arith.extsi %low : i32 to i64\n      %at", 1)
    simple[0] = "".join(line for line in simple[0].splitlines(True) if "%low" not in line)
    told = prove(*map(parse_module, simple))
    assert (told.word, told.assumed) == (PROVED, (f"grid[0] <= {2**30 // 64}",))


@pytest.mark.parametrize("least, holds", [(0, True), (1, True), (-1, False)])
def test_a_condition_says_its_multiples(least, holds):
    t = Terms()
    row = t.integer_of(t.node("argument", ("row",), (), "i32"))
    known = t.no(t.less(row, t.integer(least)))
    number = t.add(t.scaled(row, 64), t.index(0, 64))
    assert t.implied([known], t.no(t.negative(number))) == holds


def test_conditions_that_others_decide():
    """`m and (not m or x)` is `m and x`; what is chosen where `m` holds is that beside `m`, and beside nothing else."""
    t = Terms()
    m, x, other = (t.is_zero(t.integer_of(t.node("argument", (name,), (), "i32"))) for name in "mxo")
    a, b = (t.integer_of(t.node("argument", (name,), (), "i32")) for name in "ab")
    chosen = t.is_zero(t.select(m, a, b))
    assert t.both(m, t.either(t.no(m), x)) is t.both(m, x)
    assert t.both(m, chosen) is t.both(m, t.is_zero(a)) and t.both(t.no(m), chosen) is t.both(t.no(m), t.is_zero(b))
    assert t.both(m, t.no(chosen)) is t.both(m, t.no(t.is_zero(a)))
    assert t.both(other, chosen) is not t.both(other, t.is_zero(a))


def test_a_remainder_that_a_case_knows_is_a_number():
    t = Terms()
    count = t.fresh("count", "int", 0, 2)
    assert t.rem(t.integer_of(count), t.integer(3)).constant is None
    t.residues = {count: (3, 2)}
    assert t.rem(t.integer_of(count), t.integer(3)).constant == 2


@pytest.mark.parametrize("fixture", ["matmul", "split_k_matmul"])
def test_a_copy_is_waited_for_before_its_shared_memory_may_be_given_away(fixture):
    """Behind the loop nothing reads the slots, but a change of layout may be given their place."""
    source, text, contract = pair(fixture, 0, "gfx950")
    waits = [line for line in text.splitlines() if "async_wait" in line or "async_commit_wait" in line]
    last = waits[-1]
    verdict = prove(source, parse_module(text.replace(last, last.replace("num = 0", "num = 1"))), contract)
    assert last.count("num = 0") == 1 and verdict.word == NOT and "shared memory" in verdict.why


@pytest.mark.parametrize("other, word", [("%a", PROVED), ("%one", NOT)])
def test_functions_that_return_early(other, word):
    """A function that is called, and ends on either way, gives what a choice gives."""
    head = "#loc = loc(unknown)\nmodule {\n"
    entry = '  tt.func public @kernel(%p: !tt.ptr<i32> loc("p"(#loc)), %a: i32 loc("a"(#loc))) {\n    %one = arith.constant 1 : i32\n'
    end = "    tt.store %p, %x : !tt.ptr<i32>\n    tt.return\n  }\n"
    chosen = "    %c = arith.cmpi slt, %a, %one : i32\n    %x = arith.select %c, %one, %a : i32\n"
    called = "    %x = tt.call @least(%a, %one) : (i32, i32) -> i32\n"
    function = "  tt.func private @least(%a: i32, %one: i32) -> i32 {\n    %c = arith.cmpi slt, %a, %one : i32\n"
    function += (
        "    cf.cond_br %c, ^bb1, ^bb2\n  ^bb1:\n    tt.return %one : i32\n  ^bb2:\n    tt.return OTHER : i32\n  }\n"
    )
    source = parse_module(head + entry + chosen + end + "}\n")
    kernel = parse_module(head + entry + called + end + function.replace("OTHER", other) + "}\n")
    assert prove(source, kernel).word == word


@pytest.mark.parametrize("other, holds", [("", False), (", %c", True)])
def test_what_nobody_has_set_is_something_else_at_each_index(other, holds):
    """A masked element less the one beside it is 0 where both are said to be the same alone."""
    head = '#loc = loc(unknown)\nmodule {\n  tt.func public @kernel(%p: !tt.ptr<i32> loc("p"(#loc)), %n: i32 loc("n"(#loc))) {\n'
    head += "    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n    %c = arith.constant dense<0> : tensor<8xi32>\n"
    head += "    %m = arith.constant dense<false> : tensor<8xi1>\n    %b = tt.splat %p : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>\n"
    head += "    %q = tt.addptr %b, %r : tensor<8x!tt.ptr<i32>>, tensor<8xi32>\n"
    load = f"    %x = tt.load %q, %m{other} : tensor<8x!tt.ptr<i32>>\n    %w = tt.reshape %x : tensor<8xi32> -> tensor<4x2xi32>\n"
    load += "    %y, %z = tt.split %w : tensor<4x2xi32> -> tensor<4xi32>\n    %d = arith.subi %y, %z : tensor<4xi32>\n"
    end = "    %s = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>\n    %e = tt.splat %p : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>\n"
    end += "    %f = tt.addptr %e, %s : tensor<4x!tt.ptr<i32>>, tensor<4xi32>\n    tt.store %f, %d : tensor<4x!tt.ptr<i32>>\n    tt.return\n  }\n}\n"
    source = head + "    %d = arith.constant dense<0> : tensor<4xi32>\n" + end
    assert prove(parse_module(source), parse_module(head + load + end)).holds == holds
