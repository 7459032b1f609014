"""Modules from lines of printed TTGIR."""

from __future__ import annotations

from gluonize.trace.model.module import Module
from gluonize.trace.model.parse import parse_module


def function_of(body: str, definitions: str = "") -> Module:
    """A module with one function. definitions: aliases of layouts and locations."""
    return parse_module(f"{definitions}\n  tt.func public @kernel() {{\n{body}\n    tt.return\n  }}\n")
