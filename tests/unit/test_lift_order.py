"""Reads and writes of global memory that a lifted kernel keeps in their order."""

from __future__ import annotations

import pytest

from gluonize.lift.values.order import MemoryOrder, Reordered, bases_of
from gluonize.lift.values.tensors import Node
from gluonize.trace.model.types import Type

POINTER, FLOAT = Type("ptr", "f32"), Type("float", "f32")


def argument(name: str) -> Node:
    return Node("argument", (name,), (), POINTER, name)


def load(pointer: Node) -> Node:
    return Node("tt.load", (), (pointer,), FLOAT)


def moved(pointer: Node) -> Node:
    return Node("tt.addptr", (), (pointer, Node("tt.make_range", (0, 128), (), Type("int", "i32", (128,)))), POINTER)


X, Y = argument("x"), argument("y")


def test_a_value_is_used_before_its_place_is_written():
    order, x = MemoryOrder(), load(moved(X))
    order.loaded(x, 0)
    order.stored(X, [x], 0)
    order.stored(Y, [x], 0)  # was needed before


def test_a_store_to_another_argument_does_not_matter():
    order, x = MemoryOrder(), load(X)
    order.loaded(x, 0)
    order.stored(Y, [load(Y)], 0)
    order.stored(Y, [x], 0)


@pytest.mark.parametrize("through", [X, moved(X), load(argument("table"))], ids=["it", "behind", "from memory"])
def test_a_value_is_used_after_its_place_was_written(through):
    order, x = MemoryOrder(), load(moved(X))
    order.loaded(x, 0)
    order.stored(through, [], 0)
    with pytest.raises(Reordered, match="x is written between the read of a value and its use"):
        order.stored(Y, [Node("arith.addf", (), (x, x), FLOAT)], 0)


def test_a_place_is_read_again_after_it_was_written():
    order, x = MemoryOrder(), load(X)
    order.loaded(x, 0)
    order.loaded(x, 0)
    order.stored(X, [x], 0)
    with pytest.raises(Reordered, match="x is read again"):
        order.loaded(x, 0)


def test_partitions_that_talk_through_memory():
    order = MemoryOrder()
    order.stored(X, [], 1)
    order.loaded(load(X), 1)
    with pytest.raises(Reordered, match="by one partition after another one has written it"):
        order.loaded(load(moved(X)), 0)


def test_pointers_are_told_by_their_arguments():
    either = Node("arith.select", (), (X, Y), POINTER)
    assert bases_of(moved(moved(X))) == {"x"} and bases_of(either) == {"x", "y"}
    assert bases_of(load(X)) == bases_of(Node("tt.int_to_ptr", (), (), POINTER)) == frozenset()
