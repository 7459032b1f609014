"""The text of a function that has been written: its head, its layouts, its statements under the lines of the source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gluonize.decide.layouts.described import describe
from gluonize.gluon.imports import Import
from gluonize.gluon.layout_names import definition
from gluonize.gluon.trees.function import LINE_LENGTH, formatted
from gluonize.gluon.trees.long_lines import bases_in_lines
from gluonize.raised.reused import reuse
from gluonize.raised.writer import AMD_MODULES, Writer
from gluonize.rules.gluon import GLUON

_AMD = f"{GLUON}.language.amd"
_FAMILY = re.compile(rf"\bgl\.amd\.((?:cdna|rdna)\d)\.(?:({'|'.join(AMD_MODULES)})\.)?")


def text_of(writer: Writer, decorator: str, name: str, parameters: Sequence[str], file: str) -> list[str]:
    """The lines of a function. file: the source that its places are in."""
    constexprs = writer.parameters()
    reuse(writer.lines, (*parameters, *constexprs))
    names, layouts = _layouts(writer)
    given = ", ".join((*parameters, *(f"{each}: gl.constexpr" for each in constexprs)))
    lines = [decorator, f"def {name}({given}):", *_asserted(name, constexprs), *(f"    {line}" for line in layouts)]
    lines += [""] * bool(layouts) + _commented(writer, file)
    return _wrapped(_imported(writer.trees.named(line, names), writer.shared.imports) for line in lines)


def _asserted(name: str, constexprs: Mapping[str, int]) -> list[str]:
    """The check of what the layouts, and all that Triton made of constexprs, hold for."""
    if not constexprs:
        return []
    tests = " and ".join(f"{each} == {number}" for each, number in constexprs.items())
    said = ", ".join(f"{each}={number}" for each, number in constexprs.items())
    return [f'    gl.static_assert({tests}, "{name} is raised for {said}")']


def _layouts(writer: Writer) -> tuple[dict[Any, str], list[str]]:
    """What the layouts are called, and the lines that define them, each under what it spreads over what."""
    names = writer.layouts
    every, constants = names.named(names.spelled, writer.shared.taken | writer.names)
    called = {layout: name for name, layout in constants}
    lines = []
    for name, layout in constants:
        about = describe(layout)
        lines += [f"# {about}"] * bool(about)
        lines.append(bases_in_lines(definition(name, layout, called)))
    return every, lines


def _imported(line: str, imports: list[Import]) -> str:
    """A line with the modules of AMD GPUs under their own names: `gl.amd.cdna5.tdm.async_load` is `tdm.async_load`."""

    def short(found: re.Match[str]) -> str:
        module, name = f"{_AMD}.{found[1]}" if found[2] else _AMD, found[2] or found[1]
        each = Import(module, name)
        if each not in imports:
            imports.append(each)
        return f"{name}."

    return line if line.lstrip().startswith("#") else _FAMILY.sub(short, line)


def _commented(writer: Writer, file: str) -> list[str]:
    """The statements, with the lines of the source in comments; a line that its block shows already is a number alone."""
    source = writer.shared.sources.of(file).lines
    out: list[str] = []
    last = 0
    shown: list[set[int]] = [set()]  # of the blocks around
    for line in writer.lines:
        while len(shown) > line.depth:
            shown.pop()
        while len(shown) < line.depth:
            shown.append(set())
        if line.number and line.number != last and not line.text.startswith(("else", "pass")):
            last = line.number
            known = last in shown[-1] or last > len(source)
            words = f"line {last}" if known else f"{last}: {source[last - 1].strip()}"
            shown[-1].add(last)
            comment = f"{'    ' * line.depth}# {words}"
            out.append(comment if len(comment) <= LINE_LENGTH else f"{comment[: LINE_LENGTH - 3]}...")
        out.append("    " * line.depth + line.text)
    return out


def _wrapped(lines: Iterable[str]) -> list[str]:
    """Lines that are too long as black has them."""
    out = []
    for line in lines:
        text = line.lstrip()
        if len(line) > LINE_LENGTH and text.startswith("def "):
            name, parameters = text.removesuffix("):").split("(", 1)
            inside = f"    {parameters}"
            each = [inside] if len(inside) <= LINE_LENGTH else [f"    {one}," for one in parameters.split(", ")]
            out += [f"{name}(", *each, "):"]
        elif len(line) <= LINE_LENGTH or text.startswith("#") or text.endswith(":"):
            out.append(line)
        else:
            indent = line[: len(line) - len(text)]
            out += [indent + part if part else "" for part in formatted(text, len(indent)).splitlines()]
    return out
