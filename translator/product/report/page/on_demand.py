"""Parts of a page that take no room, and next to no bytes, until they are opened: `page.js` unpacks them."""

from __future__ import annotations

import base64
import zlib
from html import escape


def on_demand(summary: str, content: str, *, kind: str = "", id: str = "") -> str:
    """A closed `details` element with HTML inside, which is packed."""
    packed = base64.b64encode(zlib.compress(content.encode(), 9)).decode()
    given = "".join(f' {name}="{escape(value)}"' for name, value in (("class", kind), ("id", id)) if value)
    return f'<details{given} data-packed="{packed}"><summary>{summary}</summary></details>'


def plain(summary: str, content: str, *, kind: str = "", id: str = "", open: bool = False) -> str:
    """A `details` element with HTML inside, for what is open or packed with what is around it."""
    given = "".join(f' {name}="{escape(value)}"' for name, value in (("class", kind), ("id", id)) if value)
    return f"<details{given}{' open' * open}><summary>{summary}</summary>{content}</details>"


def unpacked(page: str) -> str:
    """The page with everything in place that it has on demand: what is there when all is opened."""
    before, *rest = page.split(' data-packed="')
    out = [before]
    for text in rest:
        packed, _, after = text.partition('"')
        summary, _, after = after.partition("</summary>")
        content = zlib.decompress(base64.b64decode(packed)).decode()
        out += [f" open{summary}</summary>{unpacked(content)}", after]
    return "".join(out)
