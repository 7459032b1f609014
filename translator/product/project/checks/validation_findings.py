"""What validating a translation found against it, as diagnostics on lines of its file."""

from __future__ import annotations

import linecache
import os

from gluonize.diagnostics import Diagnostic


def of_validation(name: str, found: dict, file: str) -> list[Diagnostic]:
    """What one launch's validation says against `file`, nothing where it was validated and not refuted.

    found: as `validate_launch` answers. Hazards at their lines, else a mismatch where the first wrong element was stored.
    """
    if found["status"] == "validated":
        return refuted(name, found.get("proof", {}), file)
    if hazards := found.get("hazards"):
        return [
            Diagnostic(h["kind"], f"{h['op']}: {h['message']}", h["file"] or file, h["line"], h["column"])
            for h in hazards
        ]
    if found["status"] == "mismatch":
        return [mismatch(name, found, file)]
    return [unvalidated(name, found, file)]


def mismatch(name: str, found: dict, file: str) -> Diagnostic:
    """A launch whose outputs differ, at the line of `file` that stored the first wrong element."""
    stored = found.get("file")
    line = found.get("line", 0) if stored and os.path.realpath(stored) == os.path.realpath(file) else 0
    variant = f" (with {found['variant']})" if found.get("variant") else ""
    reason = (found.get("reason") or "its outputs differ").replace(os.path.realpath(file), file)
    why = f"{reason}{variant}{pair_of_lines(found.get('proof', {}))}"
    return Diagnostic("mismatch", f"{name} computes something else than its source", file, line, why=why)


def refuted(name: str, proof: dict, file: str) -> list[Diagnostic]:
    """A launch of which the prover knows that it does what no correct kernel does, at its line."""
    if proof.get("status") != "refuted":
        return []
    place = proof.get("output") or {}
    why = f"{proof['reason']}{pair_of_lines(proof)}"
    message = f"{name} computes something else than its source"
    return [
        Diagnostic("refuted", message, place.get("file") or file, place.get("line", 0), place.get("column", 0), why)
    ]


def pair_of_lines(proof: dict) -> str:
    """The lines of both sides that a prover could not equate, as a part of a sentence; "" where it names no pair."""
    if proof.get("status") not in ("refuted", "not proved") or not (proof.get("source") and proof.get("output")):
        return ""
    said = [
        f"line {place['line']} of {side} `{linecache.getline(place['file'], place['line']).strip()}`"
        for side, place in (("the source,", proof["source"]), ("the kernel,", proof["output"]))
        if place["line"]
    ]
    return f"; the first pair that differs: {' and '.join(said)}" if len(said) == 2 else ""


def unvalidated(name: str, found: dict, file: str) -> Diagnostic:
    """A launch that the reference machine could not judge."""
    why = found.get("reason") or "; ".join(d["message"] for d in found.get("diagnostics", ())) or found["status"]
    return Diagnostic("not-validated", f"{name} was not validated", file, why=why)
