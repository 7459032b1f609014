"""What validating a translation found against it, as diagnostics on lines of its file."""

from __future__ import annotations

import os

from gluonize.diagnostics import Diagnostic


def of_validation(name: str, found: dict, file: str) -> list[Diagnostic]:
    """What one launch's validation says against `file`, nothing where it was validated.

    found: as `validate_launch` answers. Hazards at their lines, else a mismatch where the first wrong element was stored.
    """
    if found["status"] == "validated":
        return []
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
    why = f"{reason}{variant}"
    return Diagnostic("mismatch", f"{name} computes something else than its source", file, line, why=why)


def unvalidated(name: str, found: dict, file: str) -> Diagnostic:
    """A launch that the reference machine could not judge."""
    why = found.get("reason") or "; ".join(d["message"] for d in found.get("diagnostics", ())) or found["status"]
    return Diagnostic("not-validated", f"{name} was not validated", file, why=why)
