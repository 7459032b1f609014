"""Draw `docs/explanation/stages.svg`: the folders of the translator in their layers, what each hands on, and who imports whom.

    python docs/generate_picture.py

Everything in it is read from the code: layers are those of the import contracts in `pyproject.toml`, a folder's line is that of its
docstring, its types are the frozen ones that most other folders import. An arrow that follows from others is left out. A test fails while
the picture is another one than this draws.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from collections import Counter
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "explanation" / "stages.svg"
WIDTH, HEIGHT, GAP, MARGIN = 262, 106, 92, 24  # of a box, between rows, around all
COLUMNS, STEP = 3, 30  # a layer further is that much lower
TYPES = 3  # shown of a folder
_STYLE = """
.box { fill: #f6f8fa; stroke: #57606a } .name { font: bold 13px sans-serif; fill: #0a3069 }
.says { font: 11px sans-serif; fill: #24292f } .types { font: 11px monospace; fill: #116329 } .uses { stroke: #8c959f; fill: none }
"""


def layers() -> list[list[str]]:
    """The folders of each layer, the uppermost first; modules beside the folders are left out."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(c["layers"] for c in contracts if c["type"] == "layers")
    named = [[name.strip() for name in row.split("|")] for row in rows]
    return [found for row in named if (found := [n for n in row if (ROOT / "translator" / n).is_dir()])]


def _modules(folder: str) -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted((ROOT / "translator" / folder).rglob("*.py"))}


def _imports(tree: ast.Module) -> list[tuple[str, str]]:
    """(folder, name) of what a module imports from folders of the translator."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("gluonize.")]
    return [(n.module.split(".")[1], alias.name) for n in found for alias in n.names]


def _is_frozen(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any("frozen=True" in ast.unparse(d) for d in node.decorator_list)


def types_of(folders: dict[str, dict[Path, ast.Module]]) -> dict[str, list[str]]:
    """The frozen types of each folder that most modules of others import."""
    counted = {name: Counter() for name in folders}
    for name, modules in folders.items():
        for tree in modules.values():
            for other, what in _imports(tree):
                if other in folders and other != name:
                    counted[other][what] += 1
    frozen = {n: {c.name for t in m.values() for c in t.body if _is_frozen(c)} for n, m in folders.items()}
    ranked = {n: sorted(counted[n].items(), key=lambda item: (-item[1], item[0])) for n in folders}
    return {n: [what for what, _ in ranked[n] if what in frozen[n]][:TYPES] for n in folders}


def arrows(folders: dict[str, dict[Path, ast.Module]]) -> list[tuple[str, str]]:
    """(who, whom) of imports between folders, without those that follow from others."""
    uses = {n: {o for t in m.values() for o, _ in _imports(t) if o in folders and o != n} for n, m in folders.items()}

    def below(name: str) -> set[str]:
        return uses[name].union(*map(below, uses[name]))

    reached = {name: below(name) for name in folders}
    return [(n, o) for n in folders for o in sorted(uses[n]) if not any(o in reached[x] for x in uses[n])]


def _arrow(who: tuple[int, int], whom: tuple[int, int]) -> str:
    """From below a box to the top of one that is lower, from side to side between neighbours."""
    (x, y), (u, v) = who, whom
    if v < y + HEIGHT:
        line = f"M {x + WIDTH} {y + HEIGHT // 2} L {u} {v + HEIGHT // 2}"
    else:
        x, y, u = x + WIDTH // 2, y + HEIGHT, u + WIDTH // 2
        line = f"M {x} {y} C {x} {y + GAP}, {u} {v - GAP}, {u} {v}"
    return f'<path class="uses" d="{line}"/>'


def _fitting(types: list[str]) -> str:
    """As many names as have room in a box."""
    return ", ".join(types[: next(n for n in range(len(types), -1, -1) if len(", ".join(types[:n])) <= 38)])


def _box(name: str, x: int, y: int, says: str, types: list[str]) -> list[str]:
    lines = textwrap.wrap(says, 39)[:4]
    out = [f'<rect class="box" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>']
    out.append(f'<text class="name" x="{x + 10}" y="{y + 19}">{name}/</text>')
    out += [f'<text class="says" x="{x + 10}" y="{y + 36 + 14 * i}">{escape(t)}</text>' for i, t in enumerate(lines)]
    return [
        *out,
        f'<text class="types" x="{x + 10}" y="{y + HEIGHT - 9}">{_fitting(types)}</text>',
    ]


def _places(rows: list[list[str]]) -> dict[str, tuple[int, int]]:
    """Where each box stands: what a layer may import is below it; the columns are taken in turn, so that arrows can be told apart."""
    places, turn, y = {}, 0, MARGIN
    for row in rows:
        if turn + len(row) > COLUMNS:
            turn, y = 0, y + HEIGHT + GAP
        places |= {name: (MARGIN + (turn + i) * (WIDTH + GAP), y + (turn + i) * STEP) for i, name in enumerate(row)}
        turn += len(row)
    return places


def picture() -> str:
    """The picture as SVG."""
    rows = layers()
    folders = {name: _modules(name) for row in rows for name in row}
    says = {n: (ast.get_docstring(m[ROOT / "translator" / n / "__init__.py"]) or "") for n, m in folders.items()}
    types = types_of(folders)
    places = _places(rows)
    width, height = (max(place[axis] for place in places.values()) for axis in (0, 1))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + WIDTH + MARGIN} {height + HEIGHT + MARGIN}">'
    ]
    out += [f"<style>{_STYLE}</style>", '<rect width="100%" height="100%" fill="white"/>']
    for who, whom in arrows(folders):
        out.append(_arrow(places[who], places[whom]))
    for name, (x, y) in places.items():
        out += _box(name, x, y, says[name].split("\n\n")[0].replace("\n", " "), types[name])
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture())
