"""What `--format` can be: how findings are written on standard output, each by a function that is loaded when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """what: whom it is for. writer: `module:function` that makes the text of annotations; "" where findings are printed as they are found."""

    what: str = ""
    writer: str = ""


FORMATS = {
    "text": Format(),
    "sarif": Format("for code scanning", "gluonize.product.review.sarif:sarif_text"),
    "github": Format("annotations", "gluonize.product.review.workflow:workflow_text"),
}
DESCRIBED = [f"{name} ({format.what})" if format.what else name for name, format in FORMATS.items()]
