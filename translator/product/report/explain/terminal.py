"""An explanation in a terminal: each source line with the choices that were made for it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from gluonize.facts.obligations import Obligation
from gluonize.product.report.explain.explanation import Choice, Explanation

_STYLES = {"anchor": "cyan", "rule": "green", "solver": "yellow", "default": "bright_black", "source": "bright_black"}
_KIND = {
    "operation": "",
    "builtin": "",
    "value": "",
    "loop": "loop",
    "staged": "staged",
    "access": "memory",
    "matrix": "matrix",
    "conversion": "convert",
}


def print_explanation(
    console: Console, found: Explanation, sources: Mapping[str, list[str]], verbose: bool = False
) -> None:
    """Line by line; builtins that follow one rule row are left out unless `verbose`. sources: file -> its lines."""
    head = f"{found.kernel} ({found.launch}) on {found.target}, {found.num_warps} warps"
    console.print(Text(head + ("" if found.stage == "rewrite" else f", after {found.stage}"), style="bold"))
    for name, constructor in found.layouts if found.stage == "rewrite" else ():
        console.print(Text.assemble("  ", (name, "cyan"), f" = {constructor}"), soft_wrap=True)
    at: tuple[str, int] | None = None
    for choice in found.choices:
        if choice.kind == "builtin" and not verbose:
            continue
        place = (choice.file, choice.line)
        if place != at:
            console.print()
            console.print(_source_line(choice, sources), soft_wrap=True)
            at = place
        console.print(_choice(choice), soft_wrap=True)
    if found.stage == "rewrite" and found.obligations:
        console.print()
        console.print(Text("It rests on", style="bold"))
        for obligation in found.obligations:
            console.print(_obligation(obligation), soft_wrap=True)
    if not found.choices:
        console.print(Text("  nothing was decided here", style="bright_black"))
    elif found.stage == "rewrite":
        console.print()
        console.print(summary(found), soft_wrap=True)


def print_summary(console: Console, found: Explanation) -> None:
    """A kernel in a few lines: what was decided of its loops, and what its conversions and accesses cost."""
    head = f"{found.kernel} ({found.launch}) on {found.target}, {found.num_warps} warps"
    console.print(Text.assemble((head, "bold"), f": {summary(found)}"), soft_wrap=True)
    for choice in found.choices:
        if choice.kind == "loop":
            place = f"{os.path.basename(choice.file)}:{choice.line}"
            said = f"{choice.what}: {choice.choice}" if choice.choice else choice.what
            why = f", {choice.why}" if choice.why and choice.origin != "rule" else ""
            console.print(Text.assemble("  ", (place, "bright_black"), f"  {said}{why}"), soft_wrap=True)


def summary(found: Explanation) -> str:
    """`5 conversions, 3 free; 98304 bytes moved per pass, 65536 of them in loops; 3 buffer operations of 4 accesses`."""
    conversions = [c for c in found.choices if c.kind == "conversion"]
    accesses = [c for c in found.choices if c.kind == "access"]
    moved, inner = sum(c.bytes for c in conversions), sum(c.bytes for c in conversions if c.depth)
    free = sum(not c.bytes for c in conversions)
    pointer = sum(c.choice == "tensor of pointers" for c in accesses)
    parts = [f"{len(conversions)} conversion{'s' if len(conversions) != 1 else ''}{f', {free} free' if free else ''}"]
    if moved:
        parts.append(f"{moved} bytes moved" + (f", {inner} of them in every iteration" if inner else ""))
    if accesses:
        parts.append(f"{len(accesses) - pointer} of {len(accesses)} accesses without tensors of pointers")
    return "; ".join(parts)


def _source_line(choice: Choice, sources: Mapping[str, list[str]]) -> Text:
    lines = sources.get(choice.file, [])
    text = lines[choice.line - 1].strip() if 0 < choice.line <= len(lines) else ""
    return Text.assemble((f"{os.path.basename(choice.file)}:{choice.line}", "bright_black"), "  ", (text, "bold"))


def _obligation(obligation: Obligation) -> Text:
    place = f" ({os.path.basename(obligation.file)}:{obligation.line})" if obligation.line else ""
    return Text.assemble("  ", str(obligation), (place, "bright_black"))


def _choice(choice: Choice) -> Text:
    kind = _KIND.get(choice.kind, choice.kind)
    shape = "x".join(map(str, choice.shape))
    text = Text("    ")
    if kind:
        text.append(f"{kind} ", style="magenta")
    text.append(choice.what)
    if shape or choice.dtype:
        text.append(f" [{' '.join(x for x in (shape, choice.dtype) if x)}]", style="bright_black")
    if choice.choice:
        text.append(f": {choice.choice}")
    if choice.why:
        text.append(f"\n        {choice.origin}: ", style=_STYLES.get(choice.origin, ""))
        text.append(choice.why, style="bright_black")
    if choice.cost:
        text.append(f"\n        cost: {choice.cost}", style="bright_black")
    return text
