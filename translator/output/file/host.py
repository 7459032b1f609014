"""The source file with its translated kernels in place: host code, decorators, comments and order as the author wrote them.

Text that is not replaced stays byte for byte; with nothing to replace the file stays as it is.
"""

from __future__ import annotations

import ast
import os
import types
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.gluon.imports import TRITON_LANGUAGE, in_order
from gluonize.gluon.trees.function import (
    JIT,
    Block,
    GluonFunction,
    Statement,
    definitions,
    expression,
    formatted,
    shifted,
)
from gluonize.gluon.trees.origins import Printed
from gluonize.gluon.trees.walk import dotted, functions, lines, loads, names, walk
from gluonize.output.contracts.launch_checks import Asked
from gluonize.output.file import fallback
from gluonize.output.file.author import AuthorFile, FileEdits
from gluonize.output.file.host_options import launches
from gluonize.output.file.import_aliases import aliases
from gluonize.output.file.inductor_kernels import IMPORTS as INDUCTOR_IMPORTS
from gluonize.output.file.inductor_kernels import restated, stated_of
from gluonize.output.file.inductor_kernels import sources as inductor_sources
from gluonize.output.file.jit_call_edits import edit_calls
from gluonize.output.file.standalone import SourceFacts, asked_by, checks_of, header, names_in
from gluonize.output.merging.helper import Helper, place_of
from gluonize.output.merging.helper_pool import HelperPool
from gluonize.output.merging.kernel_family import Family, KernelVersion, families_of
from gluonize.output.programs.runs import persistent_run, stream_k_run
from gluonize.read.files.generated_names import checked_name
from gluonize.read.files.modules import ParsedFile
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.names.file_names import file_names
from gluonize.read.unresolved import NoValue
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.write.contracts.prelude import BASE_IMPORTS, Prelude, plain_translation
from gluonize.write.function.moved_imports import MovedImports, binds, fork_of, is_imported, moved_imports, of_package

# Autotuning hooks that give a descriptor its block shape, in a file whose kernel takes `(base, shape, strides)` instead.
#
#     nargs["a_desc"].block_shape = [block_m, block_k]
#     -> if not isinstance(nargs["a_desc"], tuple):
#            nargs["a_desc"].block_shape = [block_m, block_k]
#
# A tuple has no block shape: the translated kernel has it from its own constants. The guard keeps the hook right for kernels
# of the file that stay Triton.


def guard_hooks(statements: Sequence[Statement], versions: Sequence[KernelVersion], edits: FileEdits) -> None:
    """Guard the assignments to `block_shape` in the file's `pre_hook` functions."""
    tuples = {name for version in versions for name in version.emitted.record.descriptor_tuples}
    if not tuples:
        return
    hooks = _named_as_hooks(statements)
    for top, s in enumerate(statements):
        for hook in (f for f in functions(s) if f.name.value in hooks):
            for function in functions(hook):
                for line in lines(function.body):
                    if len(line.body) == 1 and (described := _described(line.body[0], tuples)) is not None:
                        edits.change(top, {line: lambda line, of=described: _guarded(line, of)})


def _named_as_hooks(statements: Sequence[Statement]) -> set[str]:
    """The names that are mentioned as a `pre_hook`, or whose result is."""
    given = (a for s in statements for a in walk(s) if isinstance(a, cst.Arg) and a.keyword is not None)
    return {name for a in given if a.keyword.value == "pre_hook" for name in names(a.value)}


def _described(small: cst.BaseSmallStatement, tuples: set[str]) -> cst.BaseExpression | None:
    """The descriptor of `nargs["name"].block_shape = ...`; of `nargs[name]` with any name that is not a constant."""
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    target = small.targets[0].target
    target = target.value if isinstance(target, cst.Subscript) else target  # `.block_shape[0] = ...`
    if not isinstance(target, cst.Attribute) or target.attr.value != "block_shape":
        return None
    key = _key(target.value)
    known = key.evaluated_value if isinstance(key, (cst.SimpleString, cst.BaseNumber)) else None
    return target.value if known is None or known in tuples else None


def _key(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`name` of `nargs[name]`."""
    inside = [e.slice for e in node.slice] if isinstance(node, cst.Subscript) else []
    return inside[0].value if len(inside) == 1 and isinstance(inside[0], cst.Index) else None


def _guarded(line: cst.SimpleStatementLine, described: cst.BaseExpression) -> cst.If:
    asked = cst.Call(cst.Name("isinstance"), [cst.Arg(described), cst.Arg(cst.Name("tuple"))])
    body = cst.IndentedBlock([line.with_changes(leading_lines=())])
    return cst.If(cst.UnaryOperation(cst.Not(), asked), body, leading_lines=line.leading_lines)


@dataclass(frozen=True)
class Replacement:
    """A function of the file, by the line of its `def`, and what it becomes; None: it stays. before, after: definitions that go
    around its statement."""

    line: int
    function: GluonFunction | None
    before: tuple[Block, ...] = ()
    after: tuple[Block, ...] = ()
    hook: str = ""  # the name of a decorator for above the jit decorator
    around_all: bool = False  # the hook is a decorator above all others


def whole_file(
    source: ParsedFile, versions: Sequence[KernelVersion], facts: SourceFacts, general: bool = False
) -> tuple[str, tuple[str, ...]]:
    """The text of a file with its kernels translated, and notes.

    general: keep each kernel as it was written too, under a launcher that picks (`fallback.py`).

    Raises: TranslationError `other-file` for a kernel that another file defines, or for names that collide.
    """
    if not versions:
        return source.text, ()
    for version in versions:
        if os.path.realpath(version.loaded.path) != os.path.realpath(facts.path):
            why = f"{version.spec.kernel} is defined in {version.loaded.path}"
            raise TranslationError(
                Diagnostic(
                    "other-file", "the kernel is only imported here", facts.path, why=why, help="translate that file"
                )
            )
    module, notes = _Rewriting(source, versions, facts, general).result()
    return Printed.of(module), notes


class _Rewriting:
    def __init__(self, source: ParsedFile, versions: Sequence[KernelVersion], facts: SourceFacts, general: bool):
        self.names, self.versions, self.facts, self.general = file_names(source.tree), versions, facts, general
        self.prelude = Prelude()
        self.jit_names = self.names.jit_names | {
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
        self.private = self.private_helpers()
        anywhere = facts.options or any(v.emitted.record.descriptor_tuples or _made_by_call(v.loaded) for v in versions)
        changing = self.lines_of(self.translated) | {helper.lineno for helper in self.private}
        self.file = AuthorFile(source, self.names, None if anywhere else changing)
        self.kept, self.leaving = self.also_untranslated()
        self.superseded = self.superseded_imports()
        own = {key[2] for key in self.translated if key not in self.kept} | self.superseded
        self.pool = HelperPool(self.base_name, names_in(versions) | (self.names.bound - own))
        self.families = families_of(versions, self.pool)
        decorated = not all(map(self.is_plain, self.families))
        asked = [self.asked(family) for family in self.families]
        self.checks = checks_of(asked, self.pool.taken, facts, decorated)
        self.plain = [fn for key, fn in plain.items() if key not in self.kept]
        self.moved = MovedImports()
        self.of_inductor = any(stated_of(version) is not None for version in versions)

    def here(self, fn: Any) -> bool:
        return os.path.realpath(fn.file_name or "") == os.path.realpath(self.facts.path)

    def superseded_imports(self) -> set[str]:
        """Names that the file imports, and that only translated functions use: copies of helpers may take them."""
        names = {h.fn.__name__ for v in self.versions for h in v.emitted.helpers if not self.here(h.fn)}
        names &= self.names.imported.keys()
        return names - self.names.mentioned_outside(self.lines_of(self.translated)) if names else names

    def private_helpers(self) -> list[ast.FunctionDef]:
        """The private helpers of the file's top level that kernels call and that stay Triton: their code may stand in the kernels."""
        reached = {place_of(h.value) for v in self.versions for h in v.loaded.helpers if self.here(h.value)}
        lines, times = self.lines_of(reached - self.translated), Counter(f.name for f in self.names.functions)
        own = [f for f in self.names.tree.body if isinstance(f, ast.FunctionDef) and f.lineno in lines]
        return [f for f in own if f.name.startswith("_") and times[f.name] == len(f.decorator_list) == 1]

    def base_name(self, fn: Any) -> str:
        name = fn.__name__
        taken = not self.here(fn) and name in self.names.bound and name not in self.superseded
        return f"{name}_gluon" if place_of(fn) in self.kept or taken else name

    def lines_of(self, places: set[tuple]) -> set[int]:
        return {line for _, line, _ in places}

    def also_untranslated(self) -> tuple[set[tuple], list[ast.FunctionDef]]:
        """The helpers that code which stays Triton uses too; and the private ones that nothing but what is replaced, or goes, mentions."""
        kernels = {place_of(v.loaded.fn) for v in self.versions}
        # A call passes the object to the translation of its method, which is a function beside the class.
        kept = {key for key in self.translated - kernels if key[1] in self.names.methods}
        leaving = self.private
        while True:
            gone = self.lines_of(self.translated - kept - (kernels if self.general else set()))
            gone |= {f.lineno for f in leaving}
            outside = self.names.mentioned_outside(gone)
            wanted = outside | self.names.texts
            found = {key for key in self.translated - kernels if key[2] in outside}
            left = [f for f in leaving if f.name not in wanted]
            if found <= kept and left == leaving:
                return kept, leaving
            kept |= found
            leaving = left

    def result(self) -> tuple[cst.Module, tuple[str, ...]]:
        replacements = self.replacements()
        edits, gone = FileEdits(header=header(self.families, self.facts)), set()
        for replacement in replacements:
            gone |= self.replace(replacement, edits)
        guard_hooks(self.file.statements, self.versions, edits)
        unseen = launches(self.file.statements, self.facts.options, edits)
        copies = [h for h in self.pool.helpers if not self.here(h.fn)]
        self.needs()
        checks = [definitions(formatted(self.checks.function()))] if self.checks and not self.general else []
        blocks = [inductor_sources()] if self.of_inductor else []
        blocks += [h.block for h in copies] + ([definitions(fallback.LAUNCHER)] if self.general else [])
        if checks or blocks or self.prelude.definitions:
            first = min(self.file.function_at(r.line).top for r in replacements)
            edits.above[first] = [*self.prelude.definitions, *checks, *edits.above.get(first, ()), *blocks]
        edits.constants = self.prelude.constants
        new = [*edits.added, *(r.function.defined(JIT) for r in replacements if r.function is not None)]
        edits.left_out |= {self.file.function_at(f.lineno).top for f in self.leaving}
        gone |= {*self.leaving}
        self.imports(edits, new, gone, {h.name for h in copies})
        notes = [note for family in self.families for note in family.notes]
        for family in (f for f in self.families if f.contract and self.of_inductor):
            checked = self.is_run_by_inductor(family)
            missed = "what is checked of its grid" if checked else "what is checked before a launch"
            if not checked or family.contract.asks_grid:
                notes.append(f"{family.name}: Inductor launches it without {missed}")
        return self.file.edited(edits), (*notes, *unseen, *self.kept_notes(), *self.moved.notes)

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
        plain = {place_of(fn): plain_translation(fn)[0] for fn in self.plain}
        for key in {**by_place, **plain}:
            blocks = [h.block for h in by_place.get(key, ())]
            if key in self.kept:
                out.append(Replacement(key[1], None, after=tuple(blocks)))
            elif key in plain:  # what is handed on as a value has its own name
                out.append(Replacement(key[1], plain[key], after=tuple(blocks)))
            else:
                out.append(Replacement(key[1], by_place[key][0].function, after=tuple(blocks[1:])))
        return out

    def kernel(self, family: Family) -> Replacement:
        loaded = family.loaded
        line, node = loaded.line, self.file.function_at(loaded.line).node
        if self.general:
            self.persistent(family, "", False)
            return self.with_general(family, node)
        plain = self.is_plain(family)
        jit = f"{family.name}{'.fn' * sum(d.kind != 'jit' for d in loaded.decorators)}"
        runs = self.persistent(family, jit, plain)
        asked = self.asked(family)
        if not self.checks.arguments(asked):
            return Replacement(line, family.function, family.before, runs)
        if plain:
            check = definitions(formatted(self.checks.call(jit, asked)))
            # The grid of the source is checked; of programs that share steps, their own.
            after = (check, *runs) if family.shared is not None else (*runs, check)
            return Replacement(line, family.function, family.before, after)
        # A kernel that host code may wrap or make again: its launches are checked where the jit function is made.
        checked, by_run = checked_name(family.name), self.is_run_by_inductor(family)
        decorator = definitions(formatted(self.checks.decorator(checked, asked)))
        return Replacement(line, family.function, (*family.before, decorator), hook=checked, around_all=by_run)

    def asked(self, family: Family) -> Asked:
        """What a kernel asks of launches, as this file launches it."""
        asked = replace(asked_by(family), states_options=any(stated_of(v) is not None for v in family.versions))
        if not self.is_run_by_inductor(family):
            return asked
        return replace(asked, run_with=tuple(p.name for p in family.loaded.fn.params if not p.is_constexpr))

    def is_plain(self, family: Family) -> bool:
        """Whether a kernel is defined at the top level, under Triton's own decorators alone."""
        loaded = family.loaded
        if self.file.function_at(loaded.line).node not in self.file.statements or loaded.node is None:
            return False
        above = {d.kind for d in loaded.decorators} - {"jit", "autotune", "heuristics"}
        return not above and not _made_by_call(loaded)

    def is_run_by_inductor(self, family: Family) -> bool:
        """Whether the file itself launches a kernel of Inductor's, `kernel.run(...)`: of one that is alone in a file of the cache other
        processes make copies, which cannot take a function of this one along."""
        if all(stated_of(version) is None for version in family.versions):
            return False
        called = (n.func for n in self.names.every if isinstance(n, ast.Call))
        runs = (f.value for f in called if isinstance(f, ast.Attribute) and f.attr == "run")
        return any(isinstance(value, ast.Name) and value.id == family.name for value in runs)

    def persistent(self, family: Family, jit: str, plain: bool) -> tuple[Block, ...]:
        """What has host code launch as many programs as there is room for. Raises: TranslationError."""
        if family.tiles is None and family.shared is None:
            return ()
        if not plain or self.general:
            why = "what launches fewer programs stands around a kernel that is defined at the top level, with decorators alone"
            why = "beside a kernel for any launch there is one grid" if self.general else why
            message = f"programs of {family.name} cannot go from tile to tile here"
            help = "leave the choice of programs out"
            code = "persistent" if family.shared is None else "stream-k"
            raise TranslationError(Diagnostic(code, message, self.facts.path, family.loaded.line, 1, why, help))
        if family.shared is not None:
            return (definitions(stream_k_run(family.name, jit, family.shared)),)
        return (definitions(persistent_run(family.name, jit, family.tiles)),)

    def with_general(self, family: Family, node: cst.FunctionDef) -> Replacement:
        if node not in self.file.statements:
            place = (
                self.facts.path,
                family.loaded.line,
                self.file.function_at(family.loaded.line).written.col_offset + 1,
            )
            why = "the launcher takes its name at the top level of the file"
            raise TranslationError(
                Diagnostic("fallback", f"{family.name} is defined inside something else", *place, why)
            )
        picked_later = any(d.kind != "jit" for d in family.loaded.decorators)
        as_written = node.with_changes(name=cst.Name(f"{family.name}_general"), leading_lines=())
        after = (
            (as_written,),
            definitions(fallback.fits_function(family, picked_later)),
            definitions(fallback.installed(family, self.facts.fuses)),
        )
        return Replacement(family.loaded.line, family.function, family.before, after)

    def replace(self, r: Replacement, edits: FileEdits) -> set[ast.AST]:
        """Edit a function and what is around its statement; -> what of the file is no longer read."""
        place = self.file.function_at(r.line)
        edits.above.setdefault(place.top, []).extend(r.before)
        edits.below.setdefault(place.top, []).extend(r.after)
        if r.function is None:
            return set()
        function, number = r.function, self.jit_decorator(place.node)
        columns = place.written.col_offset

        def translated(known: cst.FunctionDef) -> cst.FunctionDef:
            hook = "" if r.around_all else r.hook
            decorators = known.decorators if number is None else _under_gluon(known.decorators, number, hook)
            decorators = restated(decorators, [v for v in self.versions if v.loaded.line == r.line], self.facts.target)
            if r.around_all:
                decorators = [cst.Decorator(cst.Name(r.hook)), *decorators]
            node = shifted(function.written(), columns)
            return edits.aliases.within(
                node.with_changes(
                    decorators=decorators,
                    leading_lines=known.leading_lines,
                    lines_after_decorators=known.lines_after_decorators,
                )
            )

        edits.change(place.top, {place.node: translated})
        gone: set[ast.AST] = set()
        if number is None:
            loaded = next(v.loaded for v in self.versions if v.loaded.line == r.line)
            gone |= {*edit_calls(self.file, loaded, r.hook, edits)}
        if self.general and any(v.loaded.line == r.line for v in self.versions):
            return gone
        if number is not None:
            decorator = place.written.decorator_list[number]
            gone.add(decorator.func if isinstance(decorator, ast.Call) else decorator)
        written = place.written
        return gone | {part for part in (written.args, written.returns, *written.body) if part is not None}

    def jit_decorator(self, node: cst.FunctionDef) -> int | None:
        """Which decorator makes a function a kernel; None where a call does."""
        for number, decorator in enumerate(node.decorators):
            maker = decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
            last = maker.attr if isinstance(maker, cst.Attribute) else maker
            if dotted(maker) in self.jit_names or isinstance(last, cst.Name) and last.value == "jit":
                return number
        return None

    # What they need --------------------------------------------------------------------------------------------------

    def needs(self) -> None:
        """Bring in what copied helpers mention; the names of this file are there already."""
        for version in self.versions:
            for name, (value, user) in version.emitted.record.globals_needed.items():
                if self.here(user) and name in self.names.bound_anywhere:
                    continue
                if not self.here(user) and name in self.names.bound:
                    self.check_same(version.loaded, name, value, user)
                else:
                    self.prelude.add(name, value, user)

    def check_same(self, loaded: LoadedKernel, name: str, value: Any, user: Any) -> None:
        """A copied helper means by a name of this file what the file means by it. Raises: TranslationError."""
        if isinstance(value, types.ModuleType) and binds(self.names.imported.get(name), value.__name__):
            return
        held = loaded.fn.__globals__[name] if name in loaded.fn.__globals__ else self.meaning(loaded, name)
        if held is value or (held is not _UNKNOWN and not callable(value) and held == value):
            return
        where = getattr(user, "file_name", ""), getattr(user, "def_file_line_number", 0), 1
        why = f"{os.path.basename(self.facts.path)} has another {name}, so the helper cannot be copied into it"
        raise TranslationError(Diagnostic("global", f"`{name}` of {user.__name__} cannot be carried over", *where, why))

    def meaning(self, loaded: LoadedKernel, name: str) -> Any:
        """What a name of the file is that its kernel does not mention."""
        if loaded.program is None:
            return _UNKNOWN
        try:
            return loaded.program.import_known(loaded.module).lookup(name)
        except NoValue:
            return _UNKNOWN

    def imports(self, edits: FileEdits, new: Sequence[Statement], gone: set[ast.AST], copied: set[str]) -> None:
        """Import what the output needs, and no longer what only replaced code read, or what a copy has the name of."""
        lines = {*BASE_IMPORTS, *self.prelude.imports, *(fallback.LAUNCHER_IMPORTS if self.general else ())}
        lines |= {*INDUCTOR_IMPORTS} if self.of_inductor else set()
        needed = in_order(lines.union(*(v.emitted.record.imports for v in self.versions)))
        left = self.names.read_without(gone)
        unread = self.names.read - left.names.union(*map(loads, new)) - left.texts
        unread -= {text for s in new for text in _texts(s, unread)} if unread else set()
        kernels = [fn for v in self.versions for fn in (v.loaded.fn, *(h.value for h in v.loaded.helpers))]
        self.moved = moved_imports(
            self.names.tree, left.names.union(*map(loads, new), left.texts), kernels, self.facts.path
        )
        edits.dropped = unread | (copied & self.names.imported.keys()) | self.moved.dropped
        edits.aliases = aliases(needed, new, self.names, self.facts.triton, edits.dropped)
        if edits.aliases.through_language:
            edits.dropped -= {TRITON_LANGUAGE.binds}
        loaded = [v.loaded for v in self.versions]
        package = fork_of(self.names, loaded)
        lines = [of_package(line, package) for line in edits.aliases.imported(needed)]
        lines = [line for line in lines if not is_imported(line, self.names, edits.dropped, loaded)]
        edits.imports = in_order({*lines, *self.moved.added})


_UNKNOWN = object()


def _under_gluon(decorators: Sequence[cst.Decorator], number: int, hook: str) -> list[cst.Decorator]:
    """Decorators of a Gluon kernel. number: of the one that makes it a kernel; hook: the name of one above it, or ""."""
    jit, made = decorators[number], expression(JIT)
    made = jit.decorator.with_changes(func=made) if isinstance(jit.decorator, cst.Call) else made
    pair = [jit.with_changes(decorator=made)]
    if hook:
        above = cst.Decorator(cst.Name(hook), leading_lines=jit.leading_lines)
        pair = [above, pair[0].with_changes(leading_lines=())]
    return [*decorators[:number], *pair, *decorators[number + 1 :]]


def _texts(statement: Statement, names: Collection[str]) -> Iterator[str]:
    """Those names that are constants in a statement, or in its annotations that are text."""
    for node in walk(statement):
        if isinstance(node, cst.SimpleString):
            yield node.raw_value
        elif isinstance(node, cst.Annotation) and isinstance(node.annotation, cst.SimpleString):
            yield from (name for name in names if name in node.annotation.raw_value)


def _made_by_call(loaded: LoadedKernel) -> bool:
    """Whether a kernel is made by a call of `triton.jit`, below its definition."""
    own = loaded.node.decorator_list if loaded.node is not None else []
    return not any(d.kind == "jit" and any(d.node is node for node in own) for d in loaded.decorators)
