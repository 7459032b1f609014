"""Merging hand edits of a generated file with a newly generated one.

    base (generated before)  ->  edited (by hand)
             |                        |
    new (generated now)      ->  merged

Names that the edits replaced throughout a function are replaced in `base` and `new` first, so that a rename is no
conflict and new lines use the new name. What remains is merged by lines as git does, and lines that both sides changed by
tokens, as long as the two changes do not touch the same or neighbouring tokens.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gluonize.product.project.edits.diff3 import Chunk, merge_sequences
from gluonize.read.text.parsed import parsed_text

_MARK = 7  # characters of a conflict marker, as in git
# Blanks belong to the word behind them: a change of two neighbouring words leaves nothing between them.
_WORD = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")


@dataclass(frozen=True)
class Merge:
    """The merged text. conflicts: line numbers of its `<<<<<<<` markers. renames: (function, old name, new name)."""

    text: str
    conflicts: tuple[int, ...] = ()
    renames: tuple[tuple[str, str, str], ...] = ()


def merge_texts(base: str, edited: str, new: str, labels: tuple[str, str, str], use_git: bool = True) -> Merge:
    """Merge; `labels` name edited, base and new in conflict markers. `use_git` False: without `git merge-file`."""
    renames = tuple(find_renames(base, edited, new))
    for function, old, name in renames:
        base, new = _renamed(base, function, old, name), _renamed(new, function, old, name)
    chunks = _chunks_of_git(base, edited, new) if use_git else None
    if chunks is None:
        chunks = merge_sequences(base.splitlines(True), edited.splitlines(True), new.splitlines(True))
    out: list[str] = []
    conflicts = []
    for chunk in chunks:
        lines = chunk.merged if not chunk.conflict else merge_inside(chunk)
        if lines is None:
            conflicts.append(sum(text.count("\n") for text in out) + 1)
            lines = _marked(chunk, labels)
        out += lines
    return Merge("".join(out), tuple(conflicts), renames)


def _marked(chunk: Chunk, labels: tuple[str, str, str]) -> list[str]:
    """A conflict as git marks it (style diff3)."""
    edited, base, new = labels
    ended = [[*part[:-1], part[-1] if part[-1].endswith("\n") else f"{part[-1]}\n"] if part else []
             for part in (chunk.mine, chunk.base, chunk.theirs)]  # fmt: skip
    return [
        f"{'<' * _MARK} {edited}\n", *ended[0],
        f"{'|' * _MARK} {base}\n", *ended[1],
        f"{'=' * _MARK}\n", *ended[2],
        f"{'>' * _MARK} {new}\n",
    ]  # fmt: skip


def _chunks_of_git(base: str, edited: str, new: str) -> list[Chunk] | None:
    """What `git merge-file` makes of three texts, as chunks; None without git."""
    with tempfile.TemporaryDirectory(prefix="gluonize-merge-") as folder:
        paths = [os.path.join(folder, name) for name in ("edited", "base", "new")]
        for path, text in zip(paths, (edited, base, new)):
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        marker = _unused_marker(base + edited + new)
        command = ["git", "merge-file", "-p", "--diff3", f"--marker-size={marker}", *paths]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=60, cwd=folder)
        except (OSError, subprocess.TimeoutExpired):
            return None
    if done.returncode >= 128 or done.returncode < 0:
        return None
    return list(_parsed(done.stdout.decode("utf-8").splitlines(True), marker))


def _unused_marker(text: str) -> int:
    """A length of conflict markers that no line of the texts has."""
    longest = max((len(found) for found in re.findall(r"^([<|=>])\1*", text, re.MULTILINE)), default=0)
    runs = [len(m.group(0)) for m in re.finditer(r"^(?:<+|\|+|=+|>+)", text, re.MULTILINE)]
    return max([_MARK, longest, *runs]) + 1


def _parsed(lines: list[str], marker: int) -> Iterator[Chunk]:
    part: list[str] | None = None
    parts: list[list[str]] = []
    for line in lines:
        kind = line[0] if line[:marker] == line[:1] * marker and line[:1] in "<|=>" else ""
        if kind == "<":
            part = []
            parts = [part]
        elif kind in ("|", "=") and parts:
            part = []
            parts.append(part)
        elif kind == ">" and parts:
            mine, base, theirs = map(tuple, parts)
            yield Chunk(base, mine, theirs)
            part, parts = None, []
        elif part is not None:
            part.append(line)
        else:
            yield Chunk((line,), (line,), (line,))


def merge_inside(chunk: Chunk) -> list[str] | None:
    """Merge a chunk that both sides changed, where it is plain what each did; None where a person has to decide.

    * Each line a change of one line on both sides: merged by tokens, unless the changes touch.
    * One side changed lines, the other only added lines between them: both.
    """
    base, mine, theirs = chunk.base, chunk.mine, chunk.theirs
    if len(base) == len(mine) == len(theirs):
        lines = [_merged_line(*line) for line in zip(base, mine, theirs)]
        return None if None in lines else lines
    for changed, added in ((mine, theirs), (theirs, mine)):
        if len(changed) == len(base) and (places := _added_lines(base, added)) is not None:
            # A line that was put beside a changed one is fine; one that replaces it is not seen here.
            return [line for old in range(len(base) + 1) for line in (*places[old], *changed[old : old + 1])]
    return None


def _merged_line(base: str, mine: str, theirs: str) -> str | None:
    whole = Chunk((base,), (mine,), (theirs,))
    if not whole.conflict:
        return whole.merged[0]
    pieces = merge_sequences(*(_WORD.findall(text) for text in (base, mine, theirs)))
    if any(piece.conflict for piece in pieces) or not any(
        p.mine == p.theirs and p.base[0].strip() for p in pieces if p.base
    ):
        return None
    return "".join(word for piece in pieces for word in piece.merged)


def _added_lines(base: tuple[str, ...], other: tuple[str, ...]) -> list[tuple[str, ...]] | None:
    """The lines that `other` adds before each line of base and at the end; None when it does more than add."""
    places: list[tuple[str, ...]] = [()] * (len(base) + 1)
    index = 0
    for chunk in merge_sequences(base, base, other):
        if not chunk.base:
            places[index] = chunk.theirs
        elif chunk.base != chunk.theirs:
            return None
        index += len(chunk.base)
    return places


def find_renames(base: str, edited: str, new: str) -> Iterator[tuple[str, str, str]]:
    """Names that the edits replaced throughout a function: (function, old, new).

    A name counts as renamed when it is gone from the edited function, the other name is not in the base nor in the
    newly generated function, and wherever the two differ by one identifier only, it is this pair.
    """
    before, after, now = _functions(base), _functions(edited), _functions(new)
    for function in before.keys() & after.keys() & now.keys() if before else ():
        old, hand, generated = (_identifiers(texts[function]) for texts in (before, after, now))
        gone = [name for name in old if name not in hand]
        pairs = Counter()
        one, other = _tokens(before[function]), _tokens(after[function])
        for piece_base, piece_hand in _replaced(one, other):
            pairs[(piece_base, piece_hand)] += 1
        for name in gone:
            candidates = [(count, target) for (source, target), count in pairs.items() if source == name]
            if len(candidates) != 1:
                continue
            count, target = candidates[0]
            if target.isidentifier() and target not in old and target not in generated and 2 * count >= old[name]:
                yield function, name, target


def _replaced(one: list[str], other: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs of identifiers of which one stands where the other stood."""
    import difflib

    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    for kind, a0, a1, b0, b1 in matcher.get_opcodes():
        if kind == "replace" and a1 - a0 == b1 - b0:
            for left, right in zip(one[a0:a1], other[b0:b1]):
                if left.isidentifier() and right.isidentifier():
                    yield left, right


def _functions(text: str) -> dict[str, str]:
    """Name -> text of every top-level function; none of a text that is not Python."""
    try:
        tree = parsed_text(text)
    except (SyntaxError, ValueError):
        return {}
    lines = text.splitlines(True)
    found = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    names = Counter(node.name for node in found)
    return {node.name: "".join(lines[node.lineno - 1 : node.end_lineno]) for node in found if names[node.name] == 1}


def _tokens(text: str) -> list[str]:
    return [token.string for token in _tokenized(text) if token.type not in _LAYOUT]


_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER)


def _tokenized(text: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return []


def _variables(text: str) -> Iterator[tokenize.TokenInfo]:
    """The identifiers of a function that are neither attributes nor keywords of an argument (`f(name=...)`)."""
    tokens = [token for token in _tokenized(text) if token.type not in _LAYOUT]
    depth, in_header, before = 0, True, ""
    for token, behind in zip(tokens, [*(t.string for t in tokens[1:]), ""]):
        depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
        if token.type == tokenize.NAME and before != "." and (in_header or not (depth and behind == "=")):
            yield token
        in_header = in_header and not (token.string == ":" and depth == 0)
        before = token.string


def _identifiers(text: str) -> Counter:
    return Counter(token.string for token in _variables(text))


def _renamed(text: str, function: str, old: str, new: str) -> str:
    """`text` with the variable renamed inside one top-level function."""
    body = _functions(text).get(function)
    if body is None or text.count(body) != 1:
        return text
    lines = body.splitlines(True)
    for token in reversed([token for token in _variables(body) if token.string == old]):
        row, column = token.start
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return text.replace(body, "".join(lines))
