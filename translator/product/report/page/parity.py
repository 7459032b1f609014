"""What the machine code costs beside Triton's own compile, and the state of every check, as HTML."""

from __future__ import annotations

from html import escape

from gluonize.judge.lower.metrics import KernelMetrics
from gluonize.judge.lower.parity import KERNEL_ROWS, MIX_ROWS, Parity, ratio
from gluonize.judge.machine.coverage import Coverage
from gluonize.product.project.checks.validation_findings import pair_of_lines
from gluonize.product.project.output.verdict import is_settled, proof_word, united_coverage
from gluonize.product.report.checks import Checked
from gluonize.product.report.page.on_demand import on_demand

MOST_VERDICTS = 24  # rows of the first screen
_MORE_IS_BETTER = ("occupancy", "mma", "lds_dma", "tdm")
_WORDS = {
    "insns": "instructions",
    "mma": "matrix instructions",
    "valu": "vector ALU",
    "salu": "scalar",
    "ds_read": "LDS reads",
    "ds_write": "LDS writes",
    "ds_other": "other LDS",
    "lds_dma": "copies to LDS",
    "tdm": "TDM",
    "load": "loads",
    "store": "stores",
    "atomic": "atomics",
    "barrier": "barriers",
    "wait": "waits",
    "branch": "branches",
    "scratch": "scratch accesses",
    "vgpr": "VGPRs",
    "agpr": "AGPRs",
    "sgpr": "SGPRs",
    "spill": "VGPR spills",
    "sgpr_spill": "SGPR spills",
    "scratch_bytes": "scratch bytes",
    "lds_bytes": "LDS bytes",
    "occupancy": "occupancy (waves per SIMD)",
}


def status_chips(checked: tuple[Checked, ...]) -> list[tuple[str, str]]:
    """(words, kind) for the head of the page: validation, compile, parity, occupancy."""
    if not checked:
        return []
    out = [(f"{len(checked)} launch{'es' if len(checked) > 1 else ''}", "")]
    statuses = [c.validation["status"] for c in checked]
    together = united_coverage([c.validation for c in checked])
    if together is not None and together.gaps():
        out.append((together.verdict(), "warn"))
    elif together is not None and together.proved:
        pass  # which the proof says
    elif set(statuses) == {"validated"}:
        exact = all(c.validation.get("bitwise") for c in checked)
        word = "proved or validated" if any(is_settled(c.validation) for c in checked) else "validated"
        out.append((f"{word}{' bit for bit' if exact else ''} on the reference machine", "good"))
    elif "mismatch" in statuses:
        out.append(("computes something else than the source", "bad"))
    elif set(statuses) != {"skipped"}:
        out.append((f"validated for {statuses.count('validated')} of {len(statuses)} launches", "warn"))
    else:
        out.append(("not validated", "warn"))
    if proved := proof_word([c.validation for c in checked]):
        out.append((f"{proved} for every launch that the header admits", "good"))
    if any(c.gluon is None for c in checked):
        out.append(("does not compile", "bad"))
    parities = [c.parity for c in checked if c.parity]
    if parities:
        worse = sum(bool(p.regressions()) for p in parities)
        notes = {p.note for p in parities} - {""}
        good = ", ".join(sorted(notes)) or "no worse than Triton"
        out.append(
            (
                f"worse than Triton in {worse} of {len(parities)}" if worse else good,
                "warn" if worse else "" if notes else "good",
            )
        )
        waves = sorted({p.translated.occupancy for p in parities if p.translated.occupancy is not None})
        out.append((f"occupancy {' or '.join(map(str, waves))} waves per SIMD", ""))
    return out


def verdict_section(checked: tuple[Checked, ...]) -> str:
    """A row per launch: how far it was validated, and the figures that decide beside Triton's; empty without launches."""
    rows = [_verdict(entry) for entry in checked[:MOST_VERDICTS]]
    if not rows:
        return ""
    heads = (
        "launch",
        "validation",
        "clocks",
        "instructions",
        "VGPRs",
        "LDS bytes",
        "occupancy",
        "worse than Triton in",
    )
    heading = "".join(f"<th>{h}</th>" for h in heads)
    left = len(checked) - MOST_VERDICTS
    more = f'<p class="soft">and {left} more launches, under Against Triton</p>' if left > 0 else ""
    lead = '<p class="lead">The translation, and in brackets Triton\'s own compile. Clocks are of one iteration of the hottest loop for one workgroup, predicted.</p>'
    table = f'<table class="verdict"><thead><tr>{heading}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'{lead}<div class="scroll">{table}</div>{more}'


def _verdict(entry: Checked) -> str:
    status = entry.validation["status"]
    kind = {"validated": "better", "skipped": ""}.get(status, "worse")
    p = entry.parity
    cells = [f"<td>{escape(entry.spec.id)}</td>", f'<td class="{kind}">{escape(_shortly(entry.validation))}</td>']
    if p is None:
        why = entry.problems[0].message if entry.problems else "not compiled"
        return f"<tr>{''.join(cells)}<td></td>{'<td></td>' * 4}<td class=\"worse\">{escape(why)}</td></tr>"
    ours, theirs = p.translated, p.triton
    cells.append(f"<td>{_clocks(entry)}</td>")
    for name in ("insns", "vgpr", "lds_bytes", "occupancy"):
        cells.append(f"<td>{_metric(ours, name)} <span class=soft>({_metric(theirs, name)})</span></td>")
    worse = p.note or "; ".join(entry.worse) or "nothing"
    cells.append(f'<td class="{"worse" if entry.worse else ""}">{escape(worse)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _clocks(entry: Checked) -> str:
    """`1451 (1558)`, of the hottest loops."""
    both = [side.cycles.hot if side and side.cycles else None for side in (entry.gluon, entry.triton)]
    said = [f"{hot.per_workgroup:.0f}" if hot else "-" for hot in both]
    return f"{said[0]} <span class=soft>({said[1]})</span>"


def _shortly(found: dict) -> str:
    exact = " bit for bit" if found.get("bitwise") and found["status"] == "validated" else ""
    return {"skipped": "not run"}.get(found["status"], found["status"].replace("_", " ")) + exact


def parity_section(checked: tuple[Checked, ...], upstream: dict[str, Checked | None], reasons: dict[str, str]) -> str:
    """A card per launch: validation, then every metric that either side has. reasons: why upstream has none, by launch."""
    cards = [_card(entry, upstream.get(entry.spec.id), reasons.get(entry.spec.id, "")) for entry in checked]
    return "".join(on_demand(escape(entry.spec.id), card, kind="card") for entry, card in zip(checked, cards))


def _card(entry: Checked, upstream: Checked | None, reason: str) -> str:
    theirs = upstream.gluon.metrics if upstream and upstream.gluon else None
    parts = [
        f'<ul class="facts"><li><b>validation</b> {escape(_validation(entry.validation))}</li></ul>',
    ]
    if entry.parity:
        if worse := entry.worse:
            items = "".join(f'<li class="chip warn">{escape(w)}</li>' for w in worse)
            parts.append(f'<ul class="chips">{items}</ul>')
        if entry.parity.note:
            parts.append(f'<p class="soft">{escape(entry.parity.note)}</p>')
        parts.append(_table(entry.parity, theirs))
    if reason:
        parts.append(f'<p class="soft">Upstream\'s translator: {escape(reason)}</p>')
    parts += [f'<p class="soft">{escape(problem.render())}</p>' for problem in entry.problems]
    return "".join(parts)


def _validation(found: dict) -> str:
    status = found["status"]
    if status == "skipped":
        return "not run"
    said = status.replace("_", " ")
    if is_settled(found):
        said = "proved, and ran"
    if status == "validated":
        said += " bit for bit" if found.get("bitwise") else " within tolerance"
        if found.get("grid"):
            said += (
                f", {found['programs']} of {found['grid']} programs, {len(found.get('variants', ()))} input variants"
            )
        if found.get("coverage") and not is_settled(found):
            gaps = Coverage.of_json(found["coverage"]).gaps()
            said += f"; did not run: {', '.join(map(str, gaps))}" if gaps else "; all of the source ran"
        said += f"; {_proof(found['proof'])}" if "proof" in found and not is_settled(found) else ""
    return f"{said}: {found['reason']}" if found.get("reason") else said


def _proof(proof: dict) -> str:
    """What the prover says of a launch, and what that rests on or at which lines it ends."""
    said = proof["status"]
    if proof["assumed"]:
        said += f" if {' and '.join(proof['assumed'])}"
    return f"{said}: {proof['reason']}{pair_of_lines(proof)}" if proof["reason"] else said


def _table(parity: Parity, upstream: KernelMetrics | None) -> str:
    ours, triton = parity.translated, parity.triton
    loops = ours.loop is not None or triton.loop is not None
    worse = bool(parity.regressions())  # else no figure is beyond its limit, and the page says so above
    head = ["", "translation", "Triton", "ratio", *(["upstream"] if upstream else [])]
    head += ["hottest loop", "Triton", "ratio"] if loops else []
    rows = []
    for name in (*MIX_ROWS, *KERNEL_ROWS):
        values = [_metric(m, name) for m in (ours, triton, upstream) if m is not None]
        if not any(values):
            continue
        cells = [f"<td>{_WORDS[name]}</td>", *_pair(name, values[0], values[1], worse)]
        if upstream:
            cells.append(f"<td>{values[2]}</td>")
        if loops:
            inner = [getattr(m.loop, name, 0) if m.loop and name in MIX_ROWS else 0 for m in (ours, triton)]
            cells += _pair(name, *inner, worse, parity.unrolled()) if any(inner) else ["<td></td>"] * 3
        rows.append(f"<tr>{''.join(cells)}</tr>")
    heading = "".join(f"<th>{h}</th>" for h in head)
    return f'<div class="scroll"><table><thead><tr>{heading}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _metric(metrics: KernelMetrics, name: str) -> int:
    return getattr(metrics.mix, name) if name in MIX_ROWS else getattr(metrics, name) or 0


def _pair(name: str, ours: int, theirs: int, judged: bool, tiles: tuple[int, int] = (1, 1)) -> list[str]:
    """Cells of a figure on both sides and the ratio per tile; tiles: how many each figure is of. judged: whether more
    than a tenth more is marked."""
    value = ratio(ours * tiles[1], theirs * tiles[0])
    said = "new" if value is None else f"{value:.2f}x"
    better = (value or 2.0) < 1 if name not in _MORE_IS_BETTER else (value or 2.0) > 1
    equal = value == 1
    kind = (
        "" if equal else "better" if better else "worse" if judged and (value is None or abs(value - 1) > 0.1) else ""
    )
    if name in _MORE_IS_BETTER and name != "occupancy":
        kind = ""
    return [f"<td>{ours}</td>", f"<td>{theirs}</td>", f'<td class="{kind}">{said}</td>']
