"""Findings as SARIF 2.1.0, which hosts of repositories show beside the code.

Source: Static Analysis Results Interchange Format (SARIF) Version 2.1.0, OASIS Standard, sections 3.14 to 3.52.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from gluonize import __version__
from gluonize.product.review.annotations import Annotation, message_of
from gluonize.rules.errors import plain, said

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
DOCUMENTATION = "https://example.org/your/copy/of/gluonize/docs"
ROOT = "SRCROOT"  # the name under which paths are relative to the repository


def sarif_text(annotations: Sequence[Annotation], version: str = __version__) -> str:
    """One run of gluonize as a SARIF log. Files of the annotations are relative to the repository, or absolute."""
    codes = list(dict.fromkeys(a.found.code for a in annotations))
    driver = {"name": "gluonize", "semanticVersion": version, "rules": [_rule(code, annotations) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "the repository"}}},
        "results": [_result(a, codes.index(a.found.code)) for a in annotations],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(code: str, annotations: Sequence[Annotation]) -> dict[str, Any]:
    """A rule per code, with what the reference says of it: messages differ from place to place."""
    level = next(a.level for a in annotations if a.found.code == code)
    text, page = said(code), f"{documentation()}/reference/errors.md#{code}"
    return {
        "id": code,
        "shortDescription": {"text": code.replace("-", " ")},
        "fullDescription": {"text": plain(text)},
        "help": {"text": plain(text), "markdown": f"{_absolute(text)}\n\n[All error codes]({page})"},
        "helpUri": page,
        "defaultConfiguration": {"level": level},
    }


def documentation() -> str:
    """Where the documentation is read: `GLUONIZE_DOCS`, which the action sets to that of its own revision."""
    return (os.environ.get("GLUONIZE_DOCS") or DOCUMENTATION).rstrip("/")


def _absolute(text: str) -> str:
    """Markdown of the reference with links that lead there from anywhere."""
    return re.sub(
        r"\]\((?!https?:)([^)]*)\)", lambda link: f"]({urljoin(f'{documentation()}/reference/', link[1])})", text
    )


def _result(annotation: Annotation, rule: int) -> dict[str, Any]:
    found = annotation.found
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": annotation.level,
        "message": {"text": message_of(found)},
    }
    if found.file:
        place: dict[str, Any] = {"artifactLocation": _artifact(found.file)}
        if found.line:
            place["region"] = {"startLine": found.line} | ({"startColumn": found.column} if found.column else {})
        result["locations"] = [{"physicalLocation": place}]
    # Without the line: the same finding stays the same one when lines above it change.
    identity = "\0".join((found.code, found.file, found.message))
    result["partialFingerprints"] = {"gluonize/v1": hashlib.sha256(identity.encode()).hexdigest()[:32]}
    return result


def _artifact(file: str) -> dict[str, str]:
    path = Path(file)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    # A relative URI: as_uri quotes, and only knows absolute paths.
    return {"uri": Path("/", file).as_uri().removeprefix("file:///"), "uriBaseId": ROOT}
