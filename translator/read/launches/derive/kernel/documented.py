"""Element types that the source names in words: a comment beside a parameter, the docstring's line for it.

residual_ptr,  # (num_tokens, hidden_size), bfloat16
a_scale: pointer to the scales of A, float32 [M, K // 128]
"""

from __future__ import annotations

import ast
import io
import re
import tokenize

from gluonize.read.launches.derive.kernel.element_types import HALF

# The first type that is named counts; what a value is converted to in the kernel is not what memory holds.
_TYPES = {
    "fp16": r"fp16|float16|f16|half",
    "bf16": r"bf16|bfloat16",
    "fp32": r"fp32|float32|f32",
    "fp64": r"fp64|float64|f64",
    "fp8e4nv": r"fp8e4nv|float8_?e4m3(?:fn)?|fp8_?e4m3(?:fn)?|e4m3(?:fn)?",
    "fp8e5": r"fp8e5|float8_?e5m2|fp8_?e5m2|e5m2",
    "i8": r"int8|i8",
    "u8": r"uint8|u8|e8m0(?:fnu)?|ue8m0",
    "i16": r"int16|i16",
    "i32": r"int32|i32",
    "i64": r"int64|i64|LongTensor",
    "u1": r"bool",
}
_WORD = re.compile("|".join(rf"\b(?P<{name}>{pattern})\b" for name, pattern in _TYPES.items()))
_CONVERTED = re.compile(r"\b(to|in|as|into|with|via|using|accumulat\w+)\s+(?:\w+\.)?$")
_NEXT = re.compile(r"(?<=[\s.;(])((?:[A-Za-z_]\w*\s*[/,]\s*)*[A-Za-z_]\w*)\s*:\s")
_ENTRY = re.compile(r"^\s*(?::param\s+|[-*]\s+)?`{0,2}([A-Za-z_]\w*)`{0,2}\s*(?:\(([^)]*)\))?\s*(?::|--?\s)(.*)$")


def documented_types(node: ast.FunctionDef, text: str = "") -> dict[str, str]:
    """The element type by parameter, of those that have one. text: of the whole file, for comments; only the docstring without it."""
    names = {arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    said = _docstring_entries(ast.get_docstring(node) or "", names) | _comments(node, text)
    return {name: kind for name, words in said.items() if (kind := _type_in(words))}


def _type_in(words: str) -> str:
    found = [m.lastgroup or "" for m in _WORD.finditer(words) if not _CONVERTED.search(words[: m.start()])]
    return HALF if found[:1] == ["fp16"] and HALF in found else found[0] if found else ""  # "fp16 or bf16"


def _docstring_entries(text: str, names: set[str]) -> dict[str, str]:
    """`x_ptr (pointer): ...` and what follows it until the next parameter or an empty line."""
    out: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is not None and entry[1] in names:
            name = entry[1]
            out.setdefault(name, f"{entry[2] or ''} {entry[3]}")
        elif not line.strip() or entry is not None:
            name = ""
        elif name:
            out[name] += f" {line.strip()}"
    return _apart(out, names)


def _apart(said: dict[str, str], names: set[str]) -> dict[str, str]:
    """Words about several parameters in one line, each with its own: `x: [N, C]. index, mask: [N] int32`."""
    out: dict[str, str] = {}
    for name, words in said.items():
        first, *rest = _NEXT.split(words)
        parts = [([name], first)]
        for listed, more in zip(rest[::2], rest[1::2]):
            found = re.split(r"\s*[/,]\s*", listed)
            if set(found) <= names:
                parts.append((found, more))
            else:
                parts[-1] = parts[-1][0], f"{parts[-1][1]} {listed}: {more}"
        for found, more in parts:
            for one in found:
                out.setdefault(one, more)
    return out


def _comments(node: ast.FunctionDef, text: str) -> dict[str, str]:
    """The comment behind a parameter that stands alone in its line."""
    by_line: dict[int, list[str]] = {}
    for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        by_line.setdefault(arg.lineno, []).append(arg.arg)
    first, last = node.lineno, node.body[0].lineno
    if not by_line or "#" not in (head := "".join(text.splitlines(keepends=True)[first - 1 : last - 1])):
        return {}
    out = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(head).readline):
            names = by_line.get(token.start[0] + first - 1, ())
            if token.type == tokenize.COMMENT and len(names) == 1:
                out[names[0]] = token.string
    except (tokenize.TokenError, IndentationError):
        pass  # the head alone is no program: what was read until then counts
    return out


__all__ = ["documented_types"]
