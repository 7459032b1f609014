"""Digests of texts and files, the same on every machine whatever its line ends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from gluonize.read.files.modules import decode_source_bytes
from gluonize.read.spec.launch import LaunchSpec

LENGTH = 12  # hex digits, as in the header of a generated file: 48 bits tell the versions of one file apart


def text_digest(text: str) -> str:
    """The first digits of the sha256 of a text with `\\n` line ends."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def file_digest(path: str) -> str | None:
    """The `text_digest` of a Python file as the translator reads it; None when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return text_digest(decode_source_bytes(file.read()))
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError):
        return None


def launches_digest(specs: Iterable[LaunchSpec]) -> str:
    """A digest of what a translation depends on in its launches: everything but where the source is and what it runs on."""
    ignored = ("source", "values")
    items = [{name: value for name, value in spec.as_json().items() if name not in ignored} for spec in specs]
    return text_digest(json.dumps(items, sort_keys=True))
