"""Aggregates of Triton: classes whose objects are tuples of values to the compiler."""

from __future__ import annotations

from typing import Any

from translator.triton_api.language import core


def is_aggregate(value: Any) -> bool:
    """Whether `value` is a class under `@aggregate`."""
    return (
        isinstance(value, type) and issubclass(value, core.base_value) and getattr(value, "__triton_aggregate__", False)
    )
