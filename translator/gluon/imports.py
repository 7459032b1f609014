"""The imports of an output: `from triton.experimental.gluon import language as gl` as a value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst
from gluonize.gluon.trees.function import Statement, expression


@dataclass(frozen=True)
class Import:
    """`import module as bound`, or with a name `from module import name as bound`; bound: "" for what it is called there."""

    module: str
    name: str = ""
    bound: str = ""

    def __post_init__(self):
        if self.bound == (self.name or self.module):
            object.__setattr__(self, "bound", "")

    @property
    def binds(self) -> str:
        return self.bound or self.name or self.module.partition(".")[0]

    @property
    def of_gluon(self) -> bool:
        return is_of_gluon(self.meaning)

    @property
    def path(self) -> str:
        """The module, or what is imported from it."""
        return f"{self.module}.{self.name}" if self.name else self.module

    @property
    def meaning(self) -> str:
        """What it binds a name to, as `FileNames.imported` has it."""
        if self.name:
            return f"{self.module}:{self.name}"
        return self.module if self.bound else self.binds

    @property
    def text(self) -> str:
        start = f"from {self.module} import {self.name}" if self.name else f"import {self.module}"
        return f"{start} as {self.bound}" if self.bound else start

    @property
    def statement(self) -> Statement:
        known = expression(self.name or self.module)
        alias = cst.ImportAlias(known, cst.AsName(cst.Name(self.bound)) if self.bound else None)  # type: ignore[arg-type]
        module = expression(self.module)
        small = cst.ImportFrom(module, [alias]) if self.name else cst.Import([alias])  # type: ignore[arg-type]
        return cst.SimpleStatementLine([small])


def is_of_gluon(meaning: str) -> bool:
    """Whether what an import binds a name to (`pkg.module` or `pkg.module:name`) is a name of Gluon's."""
    return _OF_GLUON.match(meaning) is not None and ":" in meaning


_OF_GLUON = re.compile(r"\w*triton\w*\.experimental")  # a fork's too
TRITON_LANGUAGE = Import("triton.language", bound="tl")
LIBDEVICE = Import("triton.language.extra", "libdevice")  # the target's own device library


def in_order(imports: Iterable[Import]) -> list[Import]:
    """Once each, modules before names, by their text."""
    return sorted(set(imports), key=lambda line: (bool(line.name), line.text))
