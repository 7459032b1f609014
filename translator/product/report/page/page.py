"""The review as one HTML page that needs no network: sections, put together from text, facts and drawings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from gluonize import __version__
from gluonize.product.report.checks import Checked
from gluonize.product.report.layouts.job import DrawnLayout
from gluonize.product.report.loops.timeline import LoopTimeline, timelines
from gluonize.product.report.page.code import code_section
from gluonize.product.report.page.cycles import cycles_section
from gluonize.product.report.page.layouts import Drawn, layouts_section, lds_section
from gluonize.product.report.page.parity import parity_section, status_chips, verdict_section
from gluonize.product.report.page.pipeline import pipeline_section
from gluonize.product.report.review.correspondence import Correspondence
from gluonize.rules.targets import target as target_row

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Upstream:
    """What upstream's translator made of a launch: metrics, or why there are none."""

    checked: Checked | None
    reason: str = ""


@dataclass(frozen=True)
class ReportData:
    """Everything that a report shows.

    layouts: by launch id, empty for a launch that did not compile. upstream: by launch id, where it was asked for.
    remarks: lines for the notes, such as why a loop is not pipelined. loops: as planned; None for a translation that was edited,
    whose text is read instead.
    """

    correspondence: Correspondence
    source_name: str
    result_name: str
    target: str
    checked: tuple[Checked, ...] = ()
    layouts: dict[str, tuple[DrawnLayout, ...]] = field(default_factory=dict)
    upstream: dict[str, Upstream] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    loops: tuple[LoopTimeline, ...] | None = None


def report_page(data: ReportData) -> str:
    """The whole report."""
    c = data.correspondence
    drawn = _distinct(data)
    first = {d.launch for d in drawn[:1]}
    links = {d.layout.name: d.id for d in reversed(drawn) if d.layout.name and d.launch in first}
    banks = target_row(data.target).lds_banks
    loops = data.loops if data.loops is not None else timelines("\n".join(c.result.lines))
    compiled = {k: u.checked for k, u in data.upstream.items()}
    sections = [
        ("verdict", "Verdict", verdict_section(data.checked)),
        ("code", "Source and result", code_section(c, data.source_name, data.result_name, links)),
        ("pipeline", "Pipeline", pipeline_section(loops)),
        ("cycles", "Cycles", cycles_section(data.checked)),
        ("layouts", "Layouts", layouts_section([d for d in drawn if d.layout.held])),
        ("lds", "LDS", lds_section([d for d in drawn if d.layout.stored], banks)),
        (
            "parity",
            "Against Triton",
            parity_section(data.checked, compiled, {k: u.reason for k, u in data.upstream.items()}),
        ),
        ("notes", "Notes", _notes(data)),
    ]
    chips = [_target_words(data.target), *status_chips(data.checked)]
    return _page(
        f"{data.source_name} → {data.result_name}", _heading(data.source_name, data.result_name, chips), sections
    )


def diff_page(c: Correspondence, source_name: str, result_name: str, target: str) -> str:
    """Only source and result, unchanged lines folded."""
    chips = [_target_words(target)] if target else []
    sections = [("code", "Source and result", code_section(c, source_name, result_name, {}))]
    return _page(f"{source_name} → {result_name}", _heading(source_name, result_name, chips), sections)


def _distinct(data: ReportData) -> list[Drawn]:
    """The layouts of all launches, each once; a name that means different layouts in two versions is shown twice."""
    kernels = {entry.spec.id: entry.spec.kernel for entry in data.checked}
    owners: dict[DrawnLayout, dict[str, None]] = {}
    shapes: dict[tuple, DrawnLayout] = {}
    launches: dict[DrawnLayout, str] = {}
    for launch, group in data.layouts.items():
        for layout in group:
            first = shapes.setdefault((layout.name, layout.spelled, layout.shape), layout)
            owners.setdefault(first, {})[kernels.get(launch, "")] = None
            launches.setdefault(first, launch)
    several = len(set(kernels.values())) > 1
    ids = _ids(owners)
    return [Drawn(x, ", ".join(names) if several else "", launches[x], ids[x]) for x, names in owners.items()]


def _ids(layouts: Iterable[DrawnLayout]) -> dict[DrawnLayout, str]:
    """An id for every card: `layout-a_load`, `layout-a_load-2`."""
    out: dict[DrawnLayout, str] = {}
    counts: dict[str, int] = {}
    for layout in layouts:
        name = layout.name or re.sub(r"[^A-Za-z0-9]+", "-", layout.spelled)[:60]
        counts[name] = counts.get(name, 0) + 1
        out[layout] = f"layout-{name}" + (f"-{counts[name]}" if counts[name] > 1 else "")
    return out


def _target_words(target: str) -> tuple[str, str]:
    row = target_row(target)
    return f"{row.name}: {row.architecture}, waves of {row.warp_size}", ""


def _heading(source: str, result: str, chips: list[tuple[str, str]]) -> str:
    items = "".join(f'<li class="chip {kind}">{escape(words)}</li>' for words, kind in chips)
    title = f'{escape(source)}<span class="arrow">→</span>{escape(result)}'
    return f'<header><h1>{title}</h1><ul class="chips">{items}</ul></header>'


def _notes(data: ReportData) -> str:
    parts = []
    for heading, lines in (("The translation relies on", data.assumptions), ("Remarks", data.remarks)):
        if lines:
            items = "".join(f"<li>{escape(line)}</li>" for line in dict.fromkeys(lines))
            parts.append(f'<div class="card"><h3>{heading}</h3><ul class="plain">{items}</ul></div>')
    return "".join(parts)


def _page(title: str, heading: str, sections: list[tuple[str, str, str]]) -> str:
    shown = [(id, name, body) for id, name, body in sections if body]
    links = "".join(f'<a href="#{id}">{escape(name)}</a>' for id, name, _ in shown)
    nav = f"<nav><div>{links}</div></nav>" if len(shown) > 1 else ""
    main = "".join(f'<section id="{id}"><h2>{escape(name)}</h2>{body}</section>' for id, name, body in shown)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="gluonize {__version__}">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n'
        f"<style>\n{_read('page.css')}</style>\n</head>\n<body>\n{heading}\n{nav}\n<main>\n{main}\n</main>\n"
        f"<script>\n{_read('page.js')}</script>\n</body>\n</html>\n"
    )


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
