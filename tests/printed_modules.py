"""Modules from lines of printed TTGIR."""

from __future__ import annotations

from translator.ttgir.module import Module
from translator.ttgir.parse import parse_module


def function_of(body: str, definitions: str = "") -> Module:
    """A module with one function. definitions: aliases of layouts and locations."""
    return parse_module(f"{definitions}\n  tt.func public @kernel() {{\n{body}\n    tt.return\n  }}\n")
