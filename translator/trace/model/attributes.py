"""Attributes as MLIR prints them, as values.

    #ttg.padded_shared<[512:+16] {order = [1, 0], shape = [16, 64]}>

is of kind `ttg.padded_shared` and has the padding ((512, 16),) and the fields `order` and `shape`. What a kind means is left to
those who know it: `layouts`, `shared_layouts`, the memory of the reference machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

NVMMA = "ttg.nvmma_shared"
TENSOR_MEMORY = "ttng.tensor_memory_encoding"
TENSOR_MEMORY_SCALES = "ttng.tensor_memory_scales_encoding"
_TOKEN = re.compile(r'\s*(#\w+(?:\.\w+)*|"[^"]*"|:\+|-?\d+|[A-Za-z_][\w.]*|[\[\]{}<>=,:])')
_CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True)
class Attribute:
    """kind: "" of one that is no layout. padding: (interval, amount) in elements. fields: lists are tuples, a name alone is true.

    `fields` are in the order of the text; an alias that nothing defines is an attribute of that kind. An enumeration is its word.
    """

    kind: str = ""
    padding: tuple[tuple[int, int], ...] = ()
    fields: tuple[tuple[str, Any], ...] = ()

    def get(self, name: str, missing: Any = None) -> Any:
        """The field `name`, `missing` where it is not printed."""
        return next((value for key, value in self.fields if key == name), missing)

    @property
    def names(self) -> frozenset[str]:
        """The names of its fields."""
        return frozenset(key for key, _ in self.fields)

    def walk(self) -> Iterator[Attribute]:
        """It and those in it."""
        yield self
        for _, value in self.fields:
            if isinstance(value, Attribute):
                yield from value.walk()

    @property
    def parts(self) -> int:
        """Into how many different parts it cuts a tile among the CTAs of a cluster."""
        return 1 << sum(map(any, self.get("CGALayout", ())))


def parse_attribute(text: str, aliases: Mapping[str, str] | None = None) -> Attribute:
    """The attribute that `text` prints; aliases: `#blocked1` -> the text it stands for."""
    text = text.strip()
    return _Parser(aliases).attribute(text) if aliases else _without_aliases(text)


@lru_cache(maxsize=4096)
def _without_aliases(text: str) -> Attribute:
    return _Parser({}).attribute(text)


class _Parser:
    def __init__(self, aliases: Mapping[str, str]):
        self.aliases = aliases

    def attribute(self, text: str) -> Attribute:
        """Attributes that are no layouts have no kind."""
        tokens = _TOKEN.findall(text)
        value, end = self._value(tokens, 0) if tokens else (Attribute(), 0)
        assert end == len(tokens), f"bug in gluonize: attribute not read to its end: {text}"
        return value if isinstance(value, Attribute) else Attribute()

    def _value(self, tokens: list[str], at: int) -> tuple[Any, int]:
        token, following = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else ""
        if token == "[":
            items, at = [], at + 1
            while tokens[at] != "]":
                item, at = self._value(tokens, at)
                items.append(item)
                at += tokens[at] == ","
            return tuple(items), at + 1
        if token == "{":
            made, at = self._inside(Attribute(), tokens, at)
            return made, at
        if token.startswith("#"):
            if following == "<":
                made, at = self._inside(Attribute(token[1:]), tokens, at + 1)
                is_word = len(made.fields) == 1 and made.fields[0][1] is True and not made.padding
                return (made.fields[0][0] if is_word else made), at
            known = token in self.aliases
            return self.attribute(self.aliases[token]) if known else Attribute(token[1:]), at + 1
        if token.lstrip("-").isdigit():
            if following == ":+":
                return (int(token), int(tokens[at + 2])), at + 3
            return int(token), at + 3 if following == ":" else at + 1  # `1 : i32`
        return {"true": True, "false": False}.get(token, token.strip('"')), at + 1

    def _inside(self, start: Attribute, tokens: list[str], at: int) -> tuple[Attribute, int]:
        """What stands in brackets that open at `at`: fields, padding, and further brackets with fields."""
        closing, at = _CLOSING[tokens[at]], at + 1
        padding: tuple = start.padding
        fields = list(start.fields)
        while tokens[at] != closing:
            if tokens[at] == "[":
                padding, at = self._value(tokens, at)
            elif tokens[at] == "{":
                inner, at = self._value(tokens, at)
                fields += inner.fields
            else:
                name, at = tokens[at], at + 1
                value: Any = True
                if tokens[at] == "=":
                    value, at = self._value(tokens, at + 1)
                fields.append((name, value))
            at += tokens[at] == ","
        return Attribute(start.kind, padding, tuple(fields)), at + 1
