"""A kernel, ready to be traced, from a file or a module name; the user's host code is read and never executed."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.block_pointers.without_block_pointers import desugar_block_pointers
from gluonize.read.evaluate.lookup import find_kernel
from gluonize.read.evaluate.program import Program
from gluonize.read.evaluate.unresolved_names import UnresolvedDefault
from gluonize.read.files.modules import ModuleFile, find_module, full_search_path, is_file, module_of_path, parse_file
from gluonize.read.kernels.decorators import Decorator, kernel_decorators
from gluonize.read.kernels.real_import import import_kernel, imported_function
from gluonize.read.names.reached import Reached
from gluonize.read.spec.launch import LaunchSpec
from gluonize.read.unresolved import NoValue
from gluonize.triton_api.front_end import CompilationError
from gluonize.triton_api.jit_functions import JITFunction

__all__ = [
    "Decorator",
    "LoadedKernel",
    "Reached",
    "explain_trace_error",
    "load_for_launch",
    "load_kernel",
    "load_side",
    "resolve_source",
]


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel that can be traced.

    `fn` is the jit function; `path`, `text`, `module`, `qualname` and `line` (of its `def`) say where it is. `reached` is
    every name that the kernel and the jit functions it reaches mention, with its origin; `helpers` are the jit functions
    among them, once each, in order of discovery. `unresolved` are names without a static value, by (file, name): they
    matter only when tracing gets to them (`explain_trace_error`). `notes` are what a reader of the result should know.
    `lifted` is the text of the Triton kernel that stands for one that is Gluon already, "" for any other.
    """

    fn: JITFunction
    path: str
    text: str
    line: int
    module: str
    qualname: str
    node: ast.FunctionDef | None
    decorators: tuple[Decorator, ...]
    reached: tuple[Reached, ...]
    notes: tuple[str, ...]
    unresolved: dict[tuple[str, str], Diagnostic]
    program: Program | None = field(default=None, compare=False, repr=False)
    lifted: str = ""

    @property
    def helpers(self) -> tuple[Reached, ...]:
        """The jit functions that the kernel reaches, itself left out."""
        first: dict[int, Reached] = {}
        for item in self.reached:
            if item.kind == "jit" and item.value is not self.fn:
                first.setdefault(id(item.value), item)
        return tuple(first.values())

    @property
    def constants(self) -> tuple[Reached, ...]:
        """The constants that the kernel and its helpers mention."""
        return tuple(item for item in self.reached if item.kind in ("constant", "class"))

    def load_jit(self, reference: str, arguments: list | None = None) -> Any:
        """What a `$jit`, `$class` or `$call` constexpr names, `"module:function"`, from the same program."""
        if self.program is None and arguments is None:
            return imported_function(*reference.split(":"))
        assert self.program is not None, "a call needs a program that was read"
        try:
            fn = self.program.load_reference(reference, arguments)
            self.program.evaluator.builder.want(fn)
            self.program.evaluator.builder.fill()
        except NoValue as error:
            raise TranslationError(
                Diagnostic("source-unresolved", f"{reference} cannot be loaded", why=error.reason)
            ) from None
        return fn


def load_for_launch(
    spec: LaunchSpec, source: str | None = None, search_path: Iterable[str] | None = None, import_hosts: bool = False
) -> LoadedKernel:
    """`load_kernel` for a launch; `source` stands in for a spec that names none.

    Raises: TranslationError `spec-missing` when neither names a source, or what `load_kernel` raises.
    """
    source = spec.source or source
    if not source:
        raise TranslationError(
            Diagnostic("spec-missing", f"launch {spec.id} names no source", help="give SOURCE on the command line")
        )
    return _of_launch(source, spec.kernel, spec, search_path, import_hosts)


def _of_launch(source: str, kernel: str, spec: LaunchSpec, search_path, import_hosts: bool) -> LoadedKernel:
    """A kernel with the compile-time values that a launch gives it."""
    constants = {n: v for n, v in spec.constexprs.items() if v is None or isinstance(v, int | str)}
    return load_kernel(
        source, kernel, globals=spec.globals, search_path=search_path, import_hosts=import_hosts, constants=constants
    )


def load_side(source: str, spec: LaunchSpec, search_path: Iterable[str], import_hosts: bool = False) -> LoadedKernel:
    """The kernel of `spec` as the source or a translation of it has it, its defaults checked against the launch.

    Raises: TranslationError as `load_kernel` and `check_defaults` do.
    """

    def load(kernel: str) -> LoadedKernel:
        return _of_launch(source, kernel, spec, search_path, import_hosts)

    try:
        loaded = load(spec.kernel)
    except TranslationError as error:
        # A kernel defined in a class or a function stands at the top of its translation.
        plain = spec.kernel.rpartition(".")[2]
        if plain == spec.kernel or error.diagnostics[0].code != "kernel-missing":
            raise
        loaded = load(plain)
    check_defaults(loaded, spec)
    return loaded


def load_kernel(
    source: str, kernel: str, *, globals: dict[str, Any] | None = None, search_path: Iterable[str] | None = None,
    import_hosts: bool = False, constants: dict[str, Any] | None = None,
) -> LoadedKernel:  # fmt: skip
    """The kernel `kernel` (`f`, `Class.f`, `outer.<locals>.f`) of `source`, a path or the name of a module.

    Modules are looked for in `search_path`, then in `sys.path`. `globals` gives module constants that have no static
    value, as `{"pkg.module:NAME": encoded value}`. With `import_hosts` the module is really imported instead. `constants` are
    compile-time values of parameters, where they are known. Block pointers are written as what stands for them.
    Raises: TranslationError `source-missing`, `source-syntax`, `source-not-python`, `source-unreadable`,
    `kernel-missing`, `kernel-not-jit`, `source-unresolved`, `block-pointer`.
    """
    folders = full_search_path(tuple(search_path or ()))
    file, folders = resolve_source(source, folders)
    if import_hosts:
        return _load_imported(file, kernel, folders)
    program = Program(folders, globals)
    program.entry = file.path
    scope = program.module_of(file)
    builder = program.evaluator.builder
    fn, node, home = find_kernel(builder, scope, kernel)
    builder.want(fn)
    builder.fill()
    desugar_block_pointers(fn, constants)
    decorators = kernel_decorators(node, home)
    for found in decorators:
        place = f"{home.path}:{found.line}: "
        if found.kind == "other" and not any(note.startswith(place) for note in program.notes):
            program.note(f"{place}decorator @{found.name} of {node.name} was looked through")
    text = parse_file(home.path).text
    return LoadedKernel(
        fn, home.path, text, node.lineno, home.module, fn.__qualname__, node, decorators, tuple(builder.reached),
        tuple(program.notes), builder.unresolved, program,
    )  # fmt: skip


def resolve_source(source: str, search_path: tuple[str, ...]) -> tuple[ModuleFile, tuple[str, ...]]:
    """The file that a path or module name means, and the search path with that file's own root in front.

    Raises: TranslationError `source-missing`.
    """
    if source.endswith(".py") or os.sep in source or is_file(source):
        path = source
        if not os.path.isabs(path) and not is_file(path):
            path = next((p for folder in search_path if is_file(p := os.path.join(folder, source))), path)
        parse_file(path)
        file, root = module_of_path(path)
        # A script in a folder that is not a package itself imports its neighbours by their bare names.
        beside = os.path.dirname(file.path)
        script = () if is_file(os.path.join(beside, "__init__.py")) else (beside,)
        return file, tuple(dict.fromkeys((root, *script, *search_path)))
    file = find_module(source, search_path)
    if file is None or not file.path:
        why = (
            "it is a folder without __init__.py"
            if file
            else f"looked in {', '.join(search_path[:4])}{', ...' if len(search_path) > 4 else ''}"
        )
        raise TranslationError(
            Diagnostic(
                "source-missing",
                f"no file or module named {source}",
                why=why,
                help="give a path, or put its folder on PYTHONPATH",
            )
        )
    return file, search_path


def explain_trace_error(loaded: LoadedKernel, error: BaseException) -> TranslationError | None:
    """The located diagnostic for a Triton error that was raised because a name has no static value, else None.

    Triton's `CompilationError`s wrap each other from the kernel inwards; one of them says that the name is missing, and its
    `src` is the text of the function that needs it.
    """
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, (NameError, AttributeError, CompilationError)):
            message = str(getattr(current, "error_message", None) or current)
            found = [d for (_, name), d in loaded.unresolved.items() if says_missing(message, name)]
            first_line = str(getattr(current, "src", "") or "").partition("\n")[0]
            found.sort(key=lambda d: first_line not in parse_file(d.file).text)
            if found:
                return TranslationError(found[0])
        current = current.__cause__ or current.__context__
    return None


def says_missing(message: str, name: str) -> bool:
    """Whether an error of the front end is that a name has no value."""
    first, last = name.partition(".")[0], name.rpartition(".")[2]
    return bool(re.search(rf"(?<!\w){re.escape(first)}'? is not defined|has no attribute '{re.escape(last)}'", message))


def check_defaults(loaded: LoadedKernel, spec: LaunchSpec) -> None:
    """Refuse a launch that relies on a default argument without a static value. Raises: TranslationError."""
    found = [
        param.default.diagnostic
        for param in loaded.fn.params
        if isinstance(param.default, UnresolvedDefault) and param.name not in {**spec.constexprs, **spec.signature}
    ]
    if found:
        raise TranslationError(*found)


def _load_imported(file: ModuleFile, kernel: str, folders: tuple[str, ...]) -> LoadedKernel:
    """`--import`: really import the module and take the kernel from it."""
    fn = import_kernel(file, kernel, folders)
    desugar_block_pointers(fn)  # in place, for all launches
    text = parse_file(fn.file_name).text
    note = f"{file.name} was imported: its host code ran"
    return LoadedKernel(
        fn, fn.file_name, text, fn.def_file_line_number, file.name, fn.__qualname__, None, (), (), (note,), {}
    )
