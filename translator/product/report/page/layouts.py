"""The layouts of a translation as cards: constructor, facts, drawings."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from gluonize.product.report.layouts import banks as draw_banks, drawing
from gluonize.product.report.layouts.job import Access, DrawnLayout
from gluonize.product.report.layouts.linear_map import SharedMap, bank_use
from gluonize.product.report.page.on_demand import on_demand, plain

# Narrower accesses are done by transposing or element-wise LDS instructions, which the bank model does not describe.
LEAST_BYTES = 4
ROOM = (
    200_000  # characters of a section that drawings of further launches may take, so that a page stays below a megabyte
)


@dataclass(frozen=True)
class Drawn:
    """A layout to draw. owner: the kernels that have it, "" where the file has one kernel only; launch: the first that has it."""

    layout: DrawnLayout
    owner: str
    launch: str
    id: str


def layouts_section(layouts: Sequence[Drawn]) -> str:
    """Cards of the layouts of registers, those of the first launch and what others have beside them; empty when there are none."""
    if not layouts:
        return ""
    lead = (
        '<p class="lead">Which lane and register holds which element, from Triton\'s own linear map of each layout. Colours '
        "are warps; in the corner on the right every box is one run of elements that a lane holds in consecutive registers, "
        "its lane and registers written in it. Rest on a box to see all that its lane holds.</p>"
    )
    return lead + _by_launch(layouts, _card)


def _by_launch(layouts: Sequence[Drawn], card: Callable[[Drawn], str]) -> str:
    """A closed card for each layout of the first launch; one more for what each other launch has that those before it have not, drawn as
    long as there is room."""
    out, room = [], ROOM
    for number, (launch, group) in enumerate(itertools.groupby(layouts, key=lambda d: d.launch)):
        own = list(group)
        if not number:
            named = [_closed(d, card(d), on_demand) for d in own if d.layout.name]
            out += [*named, *_unnamed([d for d in own if not d.layout.name], card)]
            continue
        names = ", ".join(dict.fromkeys(d.layout.name or "(no name)" for d in own))
        what = f"<b>{escape(launch)}</b> has {len(own)} other{'s' if len(own) > 1 else ''}: {escape(names)}"
        packed = on_demand(what, "".join(_closed(d, card(d), plain) for d in own), kind="card")
        if len(packed) > room:
            packed = on_demand(what, "".join(_closed(d, _command(d), plain) for d in own), kind="card")
        else:
            room -= len(packed)
        out.append(packed)
    return "".join(out)


def _unnamed(layouts: list[Drawn], card: Callable[[Drawn], str]) -> list[str]:
    """Those that have no name in the text, behind one line."""
    if not layouts:
        return []
    said = f"{len(layouts)} more that the compiler makes, without a name in the text"
    return [on_demand(said, "".join(_closed(d, card(d), plain) for d in layouts), kind="card")]


def _closed(d: Drawn, card: str, made: Callable[..., str]) -> str:
    """What is said of a layout in a line, its card behind it."""
    of = f" of {d.owner}" if d.owner else ""
    name = f"<b>{escape(d.layout.name)}</b>" if d.layout.name else "<b>no name</b>"
    said = f'{name}<span class="soft">{escape(of)} {escape(_uses(d.layout))}</span> <code>{escape(d.layout.spelled)}</code>'
    return made(said, card, kind="card line", id=d.id)


def _command(d: Drawn) -> str:
    """How a layout is drawn in a terminal, instead of a drawing."""
    shape = ",".join(map(str, d.layout.shape))
    return f'<code class="spelled">gluonize layout {escape(shlex.quote(d.layout.spelled))} --shape {shape}</code>'


def _card(d: Drawn) -> str:
    layout, held = d.layout, d.layout.held
    assert held is not None
    rows, columns = drawing.as_rows(held.shape)
    shown_rows, shown_columns = drawing.detail_size(held)
    facts = [
        ("tile", " x ".join(map(str, held.shape))),
        ("registers per lane", f"{held.registers}, one element each"),
        ("contiguous", f"{held.vector} element{'s' if held.vector > 1 else ''} along dimension {held.fastest}"),
        ("copies of an element", str(held.copies)),
        ("used for", _uses(layout)),
    ]
    whole = "the whole tile" if len(held.shape) < 3 else "the last two dimensions at 0"
    return (
        f'{_facts(facts)}<div class="drawings">'
        f"<figure><figcaption>{whole}, {rows} x {columns}, by warp</figcaption>{drawing.overview(held)}</figure>"
        f"<figure><figcaption>its first {shown_rows} x {shown_columns} elements, by lane and register</figcaption>"
        f"{drawing.detail(held)}</figure></div>"
    )


def lds_section(layouts: Sequence[Drawn], banks: int) -> str:
    """Cards of the tiles in LDS with their accesses; empty when there are none."""
    if not layouts:
        return ""
    lead = (
        f'<p class="lead">Tiles in LDS over {banks} banks of 4 bytes. An access shows, for the first vector of registers of '
        "warp 0, how many different words each bank has to deliver per phase (lanes that are served together, in lane "
        'order): <span class="key served"></span>one word, <span class="key conflict"></span>several, a conflict that costs '
        "a cycle per further word.</p>"
    )
    return lead + _by_launch(layouts, lambda d: _lds_card(d.layout, banks))


def _lds_card(layout: DrawnLayout, banks: int) -> str:
    stored = layout.stored
    assert stored is not None
    facts = [
        ("tile", f"{' x '.join(map(str, stored.shape))} of {stored.bits} bits"),
        ("bytes of one slot", str(stored.size)),
        ("padding", "; ".join(f"{p} elements after every {i}" for i, p in stored.pairs) or "none"),
    ]
    figures = [
        f"<figure><figcaption>bank of each word, from the tile's first element on</figcaption>{draw_banks.bank_map(stored, banks)}</figure>"
    ]
    figures += [_access(a, stored, banks) for a in layout.accesses]
    return f'{_facts(facts)}<div class="drawings">{"".join(figures)}</div>'


def _access(access: Access, stored: SharedMap, banks: int) -> str:
    use = bank_use(access.held, stored, banks)
    what = f"{access.kind} {'to' if access.kind == 'read' else 'from'} <code>{escape(access.layout)}</code>"
    if use.vector_bytes < LEAST_BYTES:
        said = (
            f"{what}: {use.vector_bytes} bytes per lane, done by transposing or narrow LDS instructions; not modelled"
        )
        return f"<figure><figcaption>{said}</figcaption></figure>"
    cost = "no conflicts" if not use.conflicts else f"{use.conflicts} cycles of {use.cycles} lost to conflicts"
    caption = f"{what}: {use.vector_bytes} bytes per lane, {use.ideal} phases, {cost}"
    return (
        f'<figure data-conflicts="{use.conflicts}"><figcaption>{caption}</figcaption>{draw_banks.access(use)}</figure>'
    )


def _facts(facts: list[tuple[str, str]]) -> str:
    return f'<ul class="facts">{"".join(f"<li><b>{escape(k)}</b> {escape(v)}</li>" for k, v in facts)}</ul>'


def _uses(layout: DrawnLayout) -> str:
    shown = ", ".join(layout.uses[:4])
    return f"{shown} and {len(layout.uses) - 4} more" if len(layout.uses) > 4 else shown
