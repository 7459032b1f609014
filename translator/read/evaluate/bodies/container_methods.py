"""Which of Python's own functions leave all as it is, which change a container, and which give a new one."""

from __future__ import annotations

from typing import Any

from gluonize.read.names.effects import CONTAINERS

PURE_BUILTINS = (
    *(
        abs,
        all,
        any,
        bool,
        bytes,
        callable,
        chr,
        complex,
        dict,
        divmod,
        enumerate,
        filter,
        float,
        format,
        frozenset,
        hash,
    ),
    *(
        hex,
        int,
        len,
        list,
        max,
        min,
        oct,
        ord,
        pow,
        range,
        repr,
        reversed,
        round,
        set,
        slice,
        sorted,
        str,
        sum,
        tuple,
        zip,
    ),
)
# Methods of containers that change them, and functions that change what they are given first.
_CHANGING_METHODS = frozenset(
    {
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
    }
    | {"difference_update", "intersection_update", "symmetric_difference_update", "move_to_end"}
    | {"__setitem__", "__delitem__", "__iadd__", "__ior__", "__imul__"}
)
_CHANGING_FUNCTIONS = frozenset(
    {"setitem", "delitem"} | {f"i{name}" for name in ("add", "concat", "mul", "or_", "or", "and", "xor", "sub")}
)


def changed_by(function: Any, args: list) -> Any:
    """The container that a call of one of Python's own functions changes, or None."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    if isinstance(owner, CONTAINERS):
        return owner if name in _CHANGING_METHODS else None
    if args and isinstance(args[0], CONTAINERS):
        if getattr(function, "__objclass__", None) in (list, dict, set) and name in _CHANGING_METHODS:
            return args[0]
        if getattr(function, "__module__", "") == "_operator" and name in _CHANGING_FUNCTIONS:
            return args[0]
    return None


def makes(function: Any) -> bool:
    """Whether a function of Python's own gives a container that nothing else has."""
    return isinstance(function, type) or getattr(function, "__name__", "") in (
        "sorted",
        "copy",
        "split",
        "rsplit",
        "splitlines",
    )
