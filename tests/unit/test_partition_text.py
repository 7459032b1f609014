"""Warp-specialized loops taken apart as text: loops around them, and branches in them."""

from __future__ import annotations

import ast
import textwrap

from gluonize.gluon.trees.function import parsed, statements
from gluonize.gluon.trees.statements import free_names
from gluonize.loops.specialized.partitions import take_apart
from gluonize.loops.specialized.split import Split

TEXT = textwrap.dedent("""
    def kernel(a_desc, c_desc, m, n, MODE: gl.constexpr, NUM_BUFFERS: gl.constexpr = 2):
        total = gl.to_tensor(0)
        for i in range(m):
            a_smem = gl.allocate_shared_memory(a_desc.dtype, [NUM_BUFFERS] + a_desc.block_shape, a_desc.layout)
            ready = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
            empty = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
            first = i * n
            for k in range(n):
                slot = k % NUM_BUFFERS
                phase = (k // NUM_BUFFERS) & 1
                tdm.async_load(a_desc, [0, first + k], a_smem.index(slot), mbarrier=ready.index(slot))
                a = a_smem.index(slot).load(operand)
                if MODE == 0:
                    total += 1
                # Another way.
                elif MODE == 1:
                    total += 2
                else:
                    total += 3
            store_tile(c_desc, [i, 0], total)
    """).strip()
SPLIT = Split("k", "", (("a_smem",),), (("ready", "empty"),), "slot", "phase", "mbarrier", 1, (), frozenset({"a"}))


def parts() -> tuple[str, str, str]:
    function, (producer, consumer) = take_apart(parsed(TEXT), SPLIT, "kernel")
    for part in (function, producer, consumer):
        ast.parse(part.text)
    return function.text, producer.text, consumer.text


def test_the_loop_around_stays_with_the_kernel():
    text, producer, consumer = parts()
    assert "for i in range(m):" in text and "for k in range(n):" not in text
    assert "for i in" not in producer + consumer and "        total = gl.warp_specialize(" in text
    assert text.count("allocate_shared_memory") == 3 and "first = i * n" in text


def test_what_each_iteration_computes_anew_is_neither_given_nor_returned():
    text, _, consumer = parts()
    assert "    return total\n" in consumer + "\n"
    arguments = {a.arg for a in ast.parse(consumer).body[0].args.args}
    assert arguments == {"n", "MODE", "NUM_BUFFERS", "total", "a_smem", "ready", "empty"}


def test_branches_keep_their_chain():
    *_, consumer = parts()
    chain = [line.strip() for line in consumer.splitlines() if "MODE" in line or "else" in line or "total +=" in line]
    assert chain[1:] == ["if MODE == 0:", "total += 1", "elif MODE == 1:", "total += 2", "else:", "total += 3"]


def test_the_first_of_two_loops_over_rings_of_one_name_is_taken():
    again = TEXT[TEXT.index("        first = i * n") : TEXT.index("        store_tile")].replace("range(n)", "range(m)")
    twice = parsed(TEXT.replace("        store_tile", again + "        store_tile"))
    text = take_apart(twice, SPLIT, "kernel")[0].text
    assert "for k in range(m):" in text and "for k in range(n):" not in text


def test_names_that_every_branch_which_compiles_assigns_are_not_free():
    text = """
if A:
    gl.static_assert(False, "not translated")
else:
    x = y
if B:
    z = x
w = z
"""
    assert free_names(statements(text)) == {"A", "B", "gl", "y", "z"}
