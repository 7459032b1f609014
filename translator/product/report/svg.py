"""Writing SVG: elements as text, numbers short, nothing but what the drawings use."""

from __future__ import annotations

from html import escape


def number(value: float) -> str:
    """`12`, `12.5`: at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """`<name a="b">content</name>`; `class_` is class, other underscores are hyphens, None is left out."""
    given = []
    for key, value in attributes.items():
        if value is not None:
            text = number(value) if isinstance(value, (int, float)) else str(value)
            given.append(f' {key.rstrip("_").replace("_", "-")}="{escape(text)}"')
    return f"<{name}{''.join(given)}>{content}</{name}>" if content else f"<{name}{''.join(given)}/>"


def title(text: str) -> str:
    """What a pointer resting on the parent shows."""
    return f"<title>{escape(text)}</title>"


def text(x: float, y: float, words: str, class_: str = "", anchor: str | None = None) -> str:
    return element("text", escape(words), x=x, y=y, class_=class_ or None, text_anchor=anchor)


def picture(width: float, height: float, parts: list[str], label: str, class_: str = "") -> str:
    """A whole drawing that scales down with its column."""
    return element(
        "svg",
        "".join(parts),
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
        class_=class_ or None,
    )
