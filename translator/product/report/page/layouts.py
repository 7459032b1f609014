"""The layouts of a translation as cards: constructor, facts, drawings."""

from __future__ import annotations

from html import escape

from gluonize.product.report.layouts import banks as draw_banks, drawing
from gluonize.product.report.layouts.job import Access, DrawnLayout
from gluonize.product.report.layouts.linear_map import SharedMap, bank_use

# Narrower accesses are done by transposing or element-wise LDS instructions, which the bank model does not describe.
LEAST_BYTES = 4


def layouts_section(layouts: list[tuple[DrawnLayout, str, str]]) -> str:
    """Cards of the layouts of registers, given with their kernels and ids; empty when there are none."""
    if not layouts:
        return ""
    lead = (
        '<p class="lead">Which lane and register holds which element, from Triton\'s own linear map of each layout. Colours '
        "are warps; in the corner on the right every box is one run of elements that a lane holds in consecutive registers, "
        "its lane and registers written in it. Rest on a box to see all that its lane holds.</p>"
    )
    return lead + "".join(_card(*entry) for entry in layouts)


def _heading(layout: DrawnLayout, owner: str, id: str) -> str:
    """The start of a card: name, kernels, constructor."""
    name = escape(layout.name) or "<span class=soft>without a name</span>"
    of = f" <span class=soft>of {escape(owner)}</span>" if owner else ""
    return (
        f'<div class="card" id="{escape(id)}"><h3>{name}{of}</h3><code class="spelled">{escape(layout.spelled)}</code>'
    )


def _card(layout: DrawnLayout, owner: str, id: str) -> str:
    held = layout.held
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
        f'{_heading(layout, owner, id)}{_facts(facts)}<div class="drawings">'
        f"<figure><figcaption>{whole}, {rows} x {columns}, by warp</figcaption>{drawing.overview(held)}</figure>"
        f"<figure><figcaption>its first {shown_rows} x {shown_columns} elements, by lane and register</figcaption>"
        f"{drawing.detail(held)}</figure></div></div>"
    )


def lds_section(layouts: list[tuple[DrawnLayout, str, str]], banks: int) -> str:
    """Cards of the tiles in LDS with their accesses; empty when there are none."""
    if not layouts:
        return ""
    lead = (
        f'<p class="lead">Tiles in LDS over {banks} banks of 4 bytes. An access shows, for the first vector of registers of '
        "warp 0, how many different words each bank has to deliver per phase (lanes that are served together, in lane "
        'order): <span class="key served"></span>one word, <span class="key conflict"></span>several, a conflict that costs '
        "a cycle per further word.</p>"
    )
    return lead + "".join(_lds_card(*entry, banks) for entry in layouts)


def _lds_card(layout: DrawnLayout, owner: str, id: str, banks: int) -> str:
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
    return f'{_heading(layout, owner, id)}{_facts(facts)}<div class="drawings">{"".join(figures)}</div></div>'


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
