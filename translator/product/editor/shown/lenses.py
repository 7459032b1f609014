"""Parity with Triton's own compile, above the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gluonize.judge.lower.parity import Parity
from gluonize.product.editor.line_map import LineMap
from gluonize.product.editor.made import Made
from gluonize.product.editor.session import Session
from gluonize.product.editor.work import Figures

COMPUTED = "parity: being computed"
Lens = tuple[int, str]  # line from 1, text


def lenses(session: Session, path: str) -> list[Lens]:
    """One line per launch above the kernels of a generated file, one per target above those of a source."""
    out: list[Lens] = []
    for made in session.of(path):
        if made.pair is None or not made.there:
            continue
        if made.figures is None:
            session.ask_figures(made)
        own = made.output == path
        if made.figures is None and session.quiet:
            continue  # the editor shows that something is computed
        if own or made.path == path:
            out += _of_translation(made, session.text(path)) if own else _of_source(made, session.text(path))
    return sorted(out)


def _of_translation(made: Made, text: str) -> Iterator[Lens]:
    assert made.pair is not None
    moved = LineMap(made.pair.result, text)
    places = {scope.name: moved.forth(scope.first) for scope in made.pair.outline.scopes}
    if made.figures is None:
        yield 1, COMPUTED
        return
    for one in made.figures:
        line = places.get(one.kernel) or next((n for name, n in places.items() if one.kernel in name and n), None)
        judged = f"; {word}" if (word := made.judged.get(one.launch)) else ""
        yield line or 1, f"{one.launch} on {made.file.target}: {figures_text(one)}{judged}"


def _of_source(made: Made, text: str) -> Iterator[Lens]:
    if made.explained is None:
        return
    moved = LineMap(made.explained.text, text)
    kernels = {e.kernel.rpartition(".")[2] for e in made.explanations}
    for scope in made.explained.outline.scopes:
        line = moved.forth(scope.first)
        if scope.name in kernels and line:
            own = None if made.figures is None else [f for f in made.figures if f.kernel == scope.name]
            yield line, f"{made.file.target}: {COMPUTED if own is None else summary(own)}"


def figures_text(one: Figures) -> str:
    """`0.88x the instructions of Triton's compile, 0.91x in the hottest loop, 114 VGPRs (136), LDS 68016 (65536); worse in nothing`."""
    p = one.parity
    if p is None:
        return "; ".join(one.problems) or "not compiled"
    ours, theirs = p.translated, p.triton
    parts = [f"{p.ratios()['insns']:.2f}x the instructions of Triton's compile"]
    if inner := _in_loop(one):
        parts.append(f"{inner:.2f}x in the hottest loop")
    parts += [f"{ours.vgpr} VGPRs ({theirs.vgpr})", f"LDS {ours.lds_bytes} ({theirs.lds_bytes})"]
    parts += [f"spills {ours.spill} ({theirs.spill})"] * bool(ours.spill or theirs.spill)
    return ", ".join(parts) + _judged([p])


def summary(found: Sequence[Figures]) -> str:
    """All launches of a kernel in one line."""
    compared = [(f, f.parity) for f in found if f.parity]
    if len(compared) < len(found) or not found:
        broken = next((f for f in found if f.parity is None), None)
        return figures_text(broken) if broken else "no launches"
    parts = [f"{_range([p.ratios()['insns'] for _, p in compared])} the instructions of Triton's compile"]
    if inner := [x for f, _ in compared if (x := _in_loop(f))]:
        parts.append(f"{_range(inner)} in the hottest loop")
    count = f"{len(found)} launches: " if len(found) > 1 else ""
    return count + ", ".join(parts) + _judged([p for _, p in compared])


def _judged(parities: Sequence[Parity]) -> str:
    worse = list(dict.fromkeys(line for p in parities for line in p.regressions()))
    notes = sorted({p.note for p in parities} - {""})
    return f"; worse: {'; '.join(worse)}" if worse else f"; {notes[0]}" if notes else "; worse in nothing"


def _in_loop(one: Figures) -> float | None:
    ratios = one.parity.loop_ratios() if one.parity else None
    return ratios["insns"] if ratios else None


def _range(found: Sequence[float | None]) -> str:
    known = [x for x in found if x is not None]
    low, high = f"{min(known):.2f}x", f"{max(known):.2f}x"
    return low if low == high else f"{low} to {high}"
