"""The source file with its translated kernels in place: host code, decorators, comments and order as the author wrote them.

Text that is not replaced stays byte for byte; with nothing to replace the file stays as it is.
"""

from __future__ import annotations

import ast
import os
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triton.runtime.jit import JITFunction

from translator.diagnostics import Diagnostic, TranslationError
from translator.rewrite import fallback
from translator.rewrite.launch_checks import (
    SHARED_CHECK_NAME,
    checked_name,
    checks_a_default,
    guard,
    hook,
    installer,
    shared_check,
)
from translator.rewrite.descriptor_hooks import hook_edits
from translator.rewrite.jit_call_edits import call_edits
from translator.rewrite.host_clusters import launch_edits
from translator.rewrite.helper_pool import Helper, HelperPool, place_of
from translator.rewrite.kernel_family import Family, KernelVersion
from translator.rewrite.file_text import FileText, binds, unused_imports
from translator.rewrite.import_aliases import with_aliases
from translator.rewrite.module import SourceFacts, families_of, header, jit_text, names_in
from translator.rewrite.prelude import BASE_IMPORTS, Prelude, plain_translation
from translator.source.load import LoadedKernel


@dataclass(frozen=True)
class Replacement:
    """A function of the file and what its `def` becomes; before, after: definitions that go around its statement."""

    node: ast.FunctionDef
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    hook: str = ""  # a decorator for above the jit decorator


def whole_file(
    text: str, versions: Sequence[KernelVersion], facts: SourceFacts, general: bool = False
) -> tuple[str, tuple[str, ...]]:
    """`text`, the file of the kernels, with them translated; -> the new text and notes.

    general: keep each kernel as it was written too, under a launcher that picks (`fallback.py`).

    Raises: TranslationError `other-file` for a kernel that another file defines, or for names that collide.
    """
    if not versions:
        return text, ()
    for version in versions:
        if os.path.realpath(version.loaded.path) != os.path.realpath(facts.path):
            why = f"{version.spec.kernel} is defined in {version.loaded.path}"
            raise TranslationError(
                Diagnostic(
                    "other-file", "the kernel is only imported here", facts.path, why=why, help="translate that file"
                )
            )
    return _Rewriting(FileText(text), versions, facts, general).result()


class _Rewriting:
    def __init__(self, file: FileText, versions: Sequence[KernelVersion], facts: SourceFacts, general: bool):
        self.file, self.versions, self.facts, self.general = file, versions, facts, general
        self.prelude = Prelude()
        self.jit_names = _jit_names(file.tree) | {
            d.name for v in versions for d in v.loaded.decorators if d.kind == "jit"
        }
        plain = {
            place_of(value): value
            for v in versions
            for value, _ in v.emitted.record.globals_needed.values()
            if isinstance(value, JITFunction) and self.here(value)
        }
        self.translated = {place_of(v.loaded.fn) for v in versions} | plain.keys()
        self.translated |= {place_of(h.fn) for v in versions for h in v.emitted.helpers if self.here(h.fn)}
        self.kept = self.also_untranslated()
        taken = names_in(versions) | {name for name in file.bound if name not in self.own_names()}
        self.pool = HelperPool(self.base_name, taken)
        self.families = families_of(versions, self.pool)
        self.contracts = [family.contract for family in self.families if family.contract]
        self.shared = len(self.contracts) > 1 and not general and SHARED_CHECK_NAME not in taken
        self.plain = [fn for key, fn in plain.items() if key not in self.kept]

    def here(self, fn: Any) -> bool:
        return os.path.realpath(fn.file_name or "") == os.path.realpath(self.facts.path)

    def own_names(self) -> set[str]:
        """Names of the file that its translated functions keep."""
        return {key[2] for key in self.translated if key not in self.kept} | self.superseded_imports()

    def superseded_imports(self) -> set[str]:
        """Names that the file imports, and that only translated functions use: copies of helpers may take them."""
        names = {h.fn.__name__ for v in self.versions for h in v.emitted.helpers if not self.here(h.fn)}
        return {name for name in names if name in self.file.imported and name not in self.used_elsewhere()}

    def base_name(self, fn: Any) -> str:
        name = fn.__name__
        if place_of(fn) in self.kept or (
            not self.here(fn) and name in self.file.bound and name not in self.superseded_imports()
        ):
            return f"{name}_gluon"
        return name

    def used_elsewhere(self) -> set[str]:
        return self.file.names_outside(self.lines_of(self.translated))

    def lines_of(self, places: set[tuple]) -> set[int]:
        return {line for _, line, _ in places}

    def also_untranslated(self) -> set[tuple]:
        """The helpers that code which stays Triton uses too."""
        kernels = {place_of(v.loaded.fn) for v in self.versions}
        kept: set[tuple] = set()
        while True:
            gone = self.translated - kept - (kernels if self.general else set())
            outside = self.file.names_outside(self.lines_of(gone))
            found = {key for key in self.translated - kernels if key[2] in outside}
            if found <= kept:
                return kept
            kept |= found

    def result(self) -> tuple[str, tuple[str, ...]]:
        replacements = self.replacements()
        edits = [edit for replacement in replacements for edit in self.edits_of(replacement)]
        edits += hook_edits(self.file, self.versions)
        launches, unseen = launch_edits(self.file, dict(self.facts.clusters))
        edits += launches
        copies = [h for h in self.pool.helpers if not self.here(h.fn)]
        self.needs()
        added = [d.strip() for d in self.prelude.definitions if "\n" in d]
        blocks = [shared_check(self.contracts)] if self.shared else []
        blocks += [jit_text(h).strip() for h in copies] + ([fallback.LAUNCHER] if self.general else [])
        if added or blocks:
            first = min((self.file.top_statement(r.node) for r in replacements), key=lambda s: s.lineno)
            at = self.file.start_with_comments(first)
            edits.insert(0, (at, at, "".join(f"{block}\n\n\n" for block in added)))
            edits.append((at, at, "".join(f"{block}\n\n\n" for block in blocks)))
        edits.append(self.imports_edit())
        edits.append(self.header_edit())
        text = self.file.edited(edits)
        gone = {h.name for h in copies}
        text = with_aliases(unused_imports(self.file, text, gone))
        notes = [note for family in self.families for note in family.notes]
        return text, (*notes, *unseen, *self.kept_notes())

    def kept_notes(self) -> list[str]:
        names = sorted(key[2] for key in self.kept)
        return [f"{name} is used by code that stays Triton: it stays, beside its translation" for name in names]

    # Functions -------------------------------------------------------------------------------------------------------

    def replacements(self) -> list[Replacement]:
        out = [self.kernel(family) for family in self.families]
        by_place: dict[tuple, list[Helper]] = {}
        for helper in self.pool.helpers:
            if self.here(helper.fn):
                by_place.setdefault(place_of(helper.fn), []).append(helper)
        for key, helpers in by_place.items():
            node = self.file.function_at(key[1])
            if key in self.kept:
                out.append(Replacement(node, "", after=tuple(jit_text(h) for h in helpers)))
            else:
                out.append(Replacement(node, helpers[0].function.text, after=tuple(jit_text(h) for h in helpers[1:])))
        for fn in self.plain:
            if place_of(fn) not in by_place:
                text, _ = plain_translation(fn, self.prelude)
                out.append(Replacement(self.file.function_at(fn.def_file_line_number), text))
        return out

    def kernel(self, family: Family) -> Replacement:
        loaded = family.loaded
        node = self.file.function_at(loaded.line)
        if self.general:
            return self.with_general(family, node)
        if not family.contract:
            return Replacement(node, family.function.text, family.before)
        above = [d.kind for d in loaded.decorators if d.kind != "jit"]
        plain = node in self.file.tree.body and set(above) <= {"autotune", "heuristics"}
        if plain and loaded.node is not None and not _made_by_call(loaded):
            jit = f"{family.name}{'.fn' * len(above)}"
            install = hook(family.name, jit, family.contract)
            defaults_of = jit if checks_a_default(loaded.fn, family.contract) else ""
            check = guard(family.name, family.contract, defaults_of=defaults_of, shared=self.shared)
            return Replacement(node, family.function.text, family.before, (f"{check}\n\n\n{install}",))
        # A kernel that host code may wrap or make again: the hook goes in where the jit function is made.
        names = tuple(p.name for p in loaded.fn.params)
        check = guard(family.name, family.contract, names, shared=self.shared)
        install = installer(family.name, family.contract, loaded.fn)
        return Replacement(
            node, family.function.text, (*family.before, check, install), hook=f"@{checked_name(family.name)}"
        )

    def with_general(self, family: Family, node: ast.FunctionDef) -> Replacement:
        if node not in self.file.tree.body:
            place = self.facts.path, node.lineno, node.col_offset + 1
            why = "the launcher takes its name at the top level of the file"
            raise TranslationError(
                Diagnostic("fallback", f"{family.name} is defined inside something else", *place, why)
            )
        picked_later = any(d.kind != "jit" for d in family.loaded.decorators)
        after = (
            renamed(self.file, node, f"{family.name}_general"),
            f"{fallback.fits_function(family, picked_later)}\n\n\n{fallback.installed(family)}",
        )
        return Replacement(node, family.function.text, family.before, after)

    def edits_of(self, r: Replacement) -> list[tuple[int, int, str]]:
        top = self.file.top_statement(r.node)
        edits = []
        if r.before:
            at = self.file.start_with_comments(top)
            edits.append((at, at, "".join(f"{block.strip()}\n\n\n" for block in r.before)))
        if r.text:
            edits += self.decorator_edits(r)
            start, end = self.file.def_span(r.node)
            edits.append((start, end, self.file.indented(r.text.strip(), r.node.col_offset)))
        if r.after:
            at = self.file.end(top) if not r.text or top is not r.node else self.file.def_span(r.node)[1]
            edits.append((at, at, "".join(f"\n\n\n{block.strip()}" for block in r.after)))
        return edits

    def decorator_edits(self, r: Replacement) -> list[tuple[int, int, str]]:
        for decorator in r.node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = ast.unparse(called)
            if name in self.jit_names or name.rpartition(".")[2] == "jit":
                start, end = self.file.span(called)
                edits = [(start, end, "gluon.jit")]
                if r.hook:
                    at = self.file.text.rindex("@", 0, start)
                    edits.insert(0, (at, at, f"{r.hook}\n{' ' * r.node.col_offset}"))
                return edits
        loaded = next(v.loaded for v in self.versions if v.loaded.line == r.node.lineno)
        return call_edits(self.file, loaded, r.hook)

    # What they need --------------------------------------------------------------------------------------------------

    def needs(self) -> None:
        """Bring in what copied helpers mention; the names of this file are there already."""
        for version in self.versions:
            for name, (value, user) in version.emitted.record.globals_needed.items():
                if self.here(user) and name in self.file.bound_anywhere:
                    continue
                if not self.here(user) and name in self.file.bound:
                    self.check_same(version.loaded, name, value, user)
                else:
                    self.prelude.add(name, value, user)

    def check_same(self, loaded: LoadedKernel, name: str, value: Any, user: Any) -> None:
        """A copied helper means by a name of this file what the file means by it. Raises: TranslationError."""
        if isinstance(value, types.ModuleType) and binds(self.file.imported.get(name), value.__name__):
            return
        held = loaded.fn.__globals__.get(name)
        if held is value or (name in loaded.fn.__globals__ and not callable(value) and held == value):
            return
        where = getattr(user, "file_name", ""), getattr(user, "def_file_line_number", 0), 1
        why = f"{os.path.basename(self.facts.path)} has another {name}, so the helper cannot be copied into it"
        raise TranslationError(Diagnostic("global", f"`{name}` of {user.__name__} cannot be carried over", *where, why))

    def imports_edit(self) -> tuple[int, int, str]:
        lines = set(BASE_IMPORTS) | self.prelude.imports
        lines |= set(fallback.LAUNCHER_IMPORTS if self.general else ())
        for version in self.versions:
            lines |= version.emitted.record.imports
        missing = [
            line for line in sorted(lines, key=lambda x: (x.startswith("from"), x)) if not self.file.imports(line)
        ]
        simple = [d for d in self.prelude.definitions if "\n" not in d]
        at, blank = self.file.after_imports()
        return (
            at,
            at,
            blank
            + "".join(f"\n{line}" for line in missing)
            + ("\n" if simple else "")
            + "".join(f"\n{d}" for d in simple),
        )

    def header_edit(self) -> tuple[int, int, str]:
        return self.file.header_edit(header(self.families, self.facts))


def renamed(file: FileText, node: ast.FunctionDef, name: str) -> str:
    """A function of the file with its decorators, as the author wrote it but for its name."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    start, end = file.def_span(node)
    at = start + len("def")
    return file.text[file.starts[first - 1] : at] + file.text[at:end].replace(node.name, name, 1)


def _made_by_call(loaded: LoadedKernel) -> bool:
    """Whether a kernel is made by a call of `triton.jit`, below its definition."""
    own = loaded.node.decorator_list if loaded.node is not None else []
    return not any(d.kind == "jit" and any(d.node is node for node in own) for d in loaded.decorators)


def _jit_names(tree: ast.Module) -> set[str]:
    """The names under which a file has `triton.jit`."""
    names = {"triton.jit"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "triton":
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "jit"}
        elif isinstance(node, ast.Import):
            names |= {f"{alias.asname or alias.name}.jit" for alias in node.names if alias.name == "triton"}
        elif isinstance(node, ast.Assign) and ast.unparse(node.value) == "triton.jit":
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names
