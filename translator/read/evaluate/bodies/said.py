"""What the text of a file could do to names of other modules, by its words: one pass over it, so that the question for each name is a look-up."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_SET = r"\s*(?::[^=\n]+)?(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)"
_ATTRIBUTE = re.compile(r"\.\s*(\w+)")
_SETS = re.compile(rf"\.\s*(\w+)(?={_SET})")
_OWNS = re.compile(rf"\b(\w+)\s*\.\s*\w+(?={_SET})")
_DELETES = re.compile(r"\bdel\b([^\n]*)")
_IMPORTS = re.compile(r"\bimport\b([^#\n]*)")
_ALONE = re.compile(r"^\s+(\w+)(?: as \w+)?,?\s*$", re.MULTILINE)
_RENAMES = re.compile(r"\b(\w+)\s+as\b(?=(?:\s+(\w+))?)")
_BY_TEXT = re.compile(r"\b(?:setattr|delattr|vars)\(\s*(\w+)(?=[\w.]*\s*[,)])|\b(\w+)[\w.]*\.__dict__\b")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Said:
    """words: all. attributes: behind a dot. sets: attributes that are assigned or deleted. owners: what has such attributes. imports: in
    lines of imports, or alone in a line of one. renamed: what gets another name with `as`, and which. by_text: whose attributes are set
    by `setattr` and the like."""

    words: frozenset[str]
    attributes: frozenset[str]
    sets: frozenset[str]
    owners: frozenset[str]
    imports: frozenset[str]
    renamed: frozenset[tuple[str, str]]
    by_text: frozenset[str]

    def may_change(self, last: str, name: str, functions: frozenset[str], *, shared: bool, plain: bool) -> bool:
        """Whether the file may change a name of a module, `last` being the last part of that module's name: without it, it need not be parsed.

        functions: those of the module that change the name when they are called. shared: its value is an object that others may change,
        plain: it has no attributes.
        """
        if name in self.sets or not functions.isdisjoint(self.words):
            return True
        if shared:
            if name in self.imports or name in self.attributes or "*" in self.imports:
                return True
        elif not plain and (name in self.owners or any(old == name for old, _ in self.renamed)):
            return True
        return any(
            owner in (last, name) or not self.renamed.isdisjoint({(last, owner), (name, owner)})
            for owner in self.by_text
        )


@functools.lru_cache(maxsize=4096)
def said_in(text: str) -> Said:
    deleted = (found for rest in _DELETES.findall(text) for found in _ATTRIBUTE.findall(rest))
    lines = _IMPORTS.findall(text)
    imported = {word for line in lines for word in _WORD.findall(line)}
    every = {"*"} if any(line.strip() == "*" for line in lines) else set()
    return Said(
        words=frozenset(_WORD.findall(text)),
        attributes=frozenset(_ATTRIBUTE.findall(text)),
        sets=frozenset([*_SETS.findall(text), *deleted]),
        owners=frozenset(_OWNS.findall(text)),
        imports=frozenset([*imported, *_ALONE.findall(text), *every]),
        renamed=frozenset(_RENAMES.findall(text)),
        by_text=frozenset(first or second for first, second in _BY_TEXT.findall(text)),
    )
