"""Draw `docs/before_after.svg`, the picture of the README: a loop of a matmul, what is made of it for gfx950, and its pipeline over time.

    python docs/generate_before_after.py

The texts are those of `fixtures/matmul`; the pipeline is drawn by what draws it in `gluonize report`. A test fails while the picture is
another one than this draws.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from html import escape
from pathlib import Path

from gluonize.product.report import svg
from gluonize.product.report.loops.drawing import timeline
from gluonize.product.report.loops.timeline import timelines

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "before_after.svg"
SOURCE, RESULT = ROOT / "fixtures/matmul/kernel.py", ROOT / "fixtures/matmul/golden/gfx950.py"
LINE, COLUMN, HEAD, MARGIN, GAP = (
    16.0,
    6.65,
    34.0,
    16.0,
    24.0,
)  # of a line, of a character of 11 px, of a heading, around all
_STYLE = """
svg { background: #ffffff } text { font: 11px ui-monospace, monospace; fill: #24292f; white-space: pre }
.head { font: bold 14px sans-serif; fill: #0a3069 } .says { font: 12px sans-serif; fill: #57606a }
.pane { fill: #f6f8fa; stroke: #d0d7de } .keyword { fill: #cf222e } .comment { fill: #6e7781 } .number { fill: #0550ae }
.lane { fill: #d0d7de; fill-opacity: .4 } .step { stroke: #d0d7de } .step-name { fill: #57606a } .axis { font: 11px sans-serif }
.wait { stroke: #cf222e; stroke-dasharray: 3 2; stroke-width: 1.5 } .tile { fill: #fff; font-weight: 700 } .flight { fill-opacity: .3 }
.t0 { fill: #0969da } .t1 { fill: #bf5b04 } .t2 { fill: #1a7f37 } .t3 { fill: #8250df } .t4 { fill: #bf3989 } .t5 { fill: #57606a }
"""


def loop_of(path: Path) -> list[str]:
    """The lines of the loop over K in a kernel, from its first one."""
    lines = path.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("    for k in "))
    end = next(i for i, line in enumerate(lines[start + 1 :], start + 1) if line and not line.startswith(" " * 8))
    return [line[4:] for line in lines[start:end] if line]


def code(lines: list[str], x: float, y: float) -> list[str]:
    """Lines of Python, with keywords, comments and numbers in colours."""
    kinds: dict[tuple[int, int], tuple[int, str]] = {}
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
        kind = {tokenize.COMMENT: "comment", tokenize.NUMBER: "number"}.get(token.type, "")
        kind = "keyword" if token.type == tokenize.NAME and keyword.iskeyword(token.string) else kind
        if kind:
            kinds[token.start[0] - 1, token.start[1]] = token.end[1], kind
    out = []
    for row, line in enumerate(lines):
        parts, at = [], 0
        while at < len(line):
            end, kind = kinds.get((row, at), (0, ""))
            if not kind:
                end = min((c for r, c in kinds if r == row and c > at), default=len(line))
            words = escape(line[at:end])
            parts.append(svg.element("tspan", words, class_=kind) if kind else words)
            at = end
        out.append(svg.element("text", "".join(parts), x=x, y=y + row * LINE, xml__space="preserve"))
    return out


def picture() -> str:
    before, after = loop_of(SOURCE), loop_of(RESULT)
    # What follows slots through a text knows arithmetic, and not this helper of the file, which gives the same number.
    text = RESULT.read_text().replace(
        "gl.minimum((slot - 1).to(gl.uint32), NUM_BUFFERS - 1).to(gl.int32)", "(slot + NUM_BUFFERS - 1) % NUM_BUFFERS"
    )
    loop = next(found for found in timelines(text) if found.replay is not None)
    drawn = timeline(loop)
    sides = [max(map(len, lines)) * COLUMN + 2 * MARGIN for lines in (before, after)]
    tall = max(len(before), len(after)) * LINE + MARGIN
    width = sum(sides) + GAP + 2 * MARGIN
    parts, x = [svg.element("style", _STYLE)], MARGIN
    heads = (
        ("A Triton kernel", "what Triton's compiler makes of it stays inside the compiler"),
        ("the same kernel in Gluon, for gfx950", "copies, buffers, waits and layouts stand in the code, to be tuned"),
    )
    for lines, wide, (head, says) in zip((before, after), sides, heads):
        parts.append(svg.text(x, MARGIN + 10, head, "head"))
        parts.append(svg.text(x, MARGIN + 26, says, "says"))
        parts.append(svg.element("rect", x=x, y=MARGIN + HEAD, width=wide, height=tall, rx=6, class_="pane"))
        parts += code(lines, x + MARGIN, MARGIN + HEAD + 20)
        x += wide + GAP
    y = MARGIN + HEAD + tall + 30
    says = "Time runs to the right; equal numbers are one tile: in flight (pale), landed, computed on. Dashed: waits."
    parts.append(svg.text(MARGIN, y, "The loop over time", "head"))
    parts.append(svg.text(MARGIN, y + 16, says, "says"))
    inner = drawn[drawn.index(">") + 1 : drawn.rindex("</svg>")]
    size = [float(drawn.partition(f' {name}="')[2].partition('"')[0]) for name in ("width", "height")]
    scale = min(1.0, (width - 2 * MARGIN) / size[0])
    parts.append(svg.element("g", inner, transform=f"translate({MARGIN} {y + 24}) scale({svg.number(scale)})"))
    label = "A matmul in Triton, its translation to Gluon, and the pipeline of its loop"
    text = svg.picture(width, y + 24 + size[1] * scale + MARGIN, parts, label)
    text = text.replace("xml--space", "xml:space").replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return text.replace("><", ">\n<") + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture())
