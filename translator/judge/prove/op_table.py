"""What each operation means: a handler by name, in a table that the modules of operations fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gluonize.trace.model.op import Op

Handler = Callable[[Any, Op, list[Any]], list[Any]]
Control = Callable[[Any, Op, dict[str, Any]], list[Any]]
TABLE: dict[str, Handler] = {}  # handler(machine, op, operands) -> results
CONTROL: dict[str, Control] = {}  # of operations with regions: handler(machine, op, values by name) -> results


def row(*names: str) -> Callable[[Handler], Handler]:
    """The handler of operations of these names."""

    def keep(handler: Handler) -> Handler:
        for name in names:
            assert name not in TABLE, f"bug in gluonize: two rows for {name}"
            TABLE[name] = handler
        return handler

    return keep


def control(name: str) -> Callable[[Control], Control]:
    """The handler of an operation with regions."""

    def keep(handler: Control) -> Control:
        CONTROL[name] = handler
        return handler

    return keep
