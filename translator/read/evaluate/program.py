"""One program that is read statically: its modules, what their names mean, and what was noticed on the way."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from types import ModuleType
from typing import Any

from gluonize.read.evaluate.bodies.foreign_changes import foreign_change
from gluonize.read.evaluate.bodies.module_run import BodyRun, spoil_changed
from gluonize.read.evaluate.expressions import Evaluator
from gluonize.read.evaluate.host_objects import UserClass, UserFunction
from gluonize.read.evaluate.host_values import HOST_PACKAGES, PURE_MODULES, VERSIONS, HostName
from gluonize.read.evaluate.lookup import find_kernel
from gluonize.read.evaluate.spec_values import decode_value
from gluonize.read.files.by_path import LoadedModules
from gluonize.read.files.environment import ALL
from gluonize.read.files.modules import ModuleFile, find_module, is_file, module_of_path, parse_file
from gluonize.read.files.torch_runtime import READ as RUNTIME_MODULES
from gluonize.read.files.torch_runtime import runtime_module
from gluonize.read.names.bindings import Binding
from gluonize.read.names.effects import Effects
from gluonize.read.names.renamed import renamed_value
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.names.triton_by_use import forked, is_fork, module_of_fork, stands_for, used_as
from gluonize.read.unresolved import NoValue, Place, Raised, Undetermined
from gluonize.triton_api.jit_functions import JITCallable

# Managers of test libraries that take exceptions.
_TAKING = ("raises", "assertRaises", "assertRaisesRegex", "ExitStack")
# Modules under `triton` are compiler-side and are imported for real, as are the standard modules of PURE_MODULES.
_REAL_PACKAGES = frozenset({"triton"})


class Program:
    """Modules on `search_path`, read on demand. `overrides` are a launch's globals: `"pkg.module:NAME"` to encoded value."""

    def __init__(self, search_path: tuple[str, ...], overrides: dict[str, Any] | None = None):
        self.search_path = search_path
        self.overrides = dict(overrides or {})
        self.notes: list[str] = []
        self._collecting: list[list[str]] = [self.notes]
        self.effects = Effects()
        self.environment: dict[str, str] = {}  # what the program has set itself
        self.set_unseen: dict[str, Undetermined] = {}  # variables that it may have set, by code that cannot be followed
        self.entry = ""  # the file that is translated
        self._spoiling = 0  # what is to be forgotten need not be right
        self.imported_files: tuple[str, ...] = ()
        self.files_around: dict[str, tuple[str, ...]] = {}
        self.loaded = LoadedModules(self._can_be_imported)
        self.fork = ""  # the package that stands for Triton in this program
        self._modules: dict[str, Any] = {}
        self._decoded: dict[str, Any] = {}
        self.evaluator = Evaluator(self)
        self.evaluate = self.evaluator.evaluate
        self.truth = self.evaluator.truth

    def note(self, text: str) -> None:
        """Note what a reader should know of what is being evaluated; it is said where the value is used."""
        if text not in self._collecting[-1]:
            self._collecting[-1].append(text)

    def collect(self) -> list[str]:
        """Keep what is noted from now on apart."""
        self._collecting.append([])
        return self._collecting[-1]

    def collected(self) -> list[str]:
        """What was noted since the last `collect`."""
        return self._collecting.pop()

    def run_body(self, scope: Scope) -> BodyRun:
        return BodyRun(scope)

    def spoil_changed(self, node: ast.AST, scope: Scope | Frame, reason: str, place: Place) -> None:
        """Forget what code may change that is run, but cannot be followed."""
        if self._bodies_run():
            self._spoiling += 1
            try:
                spoil_changed(self, node, scope, reason, place)
            finally:
                self._spoiling -= 1

    def set_environment(self, name: str, value: str, place: Place) -> None:
        """Raises: Undetermined where it is not certain, or not now, that the program sets it."""
        if not self.effects.certain or not self._bodies_run():
            raise Undetermined(f"environment variable {name} is set when the host program runs", place)
        self.environment[name] = value

    def forget_environment(self, names: frozenset[str], reason: str, place: Place) -> None:
        """Code that cannot be followed may set these variables; ALL: any."""
        if ALL in names:
            self.effects.spoil(os.environ, reason, place)
        for name in names:
            self.set_unseen.setdefault(name, Undetermined(reason, place))

    def _bodies_run(self) -> bool:
        return any(isinstance(m, Scope) and m.now is not None for m in self._modules.values())

    def override(self, key: str) -> Any:
        if key not in self._decoded:
            self._decoded[key] = decode_value(self.overrides[key], self.load_reference)
        return self._decoded[key]

    def load_reference(self, reference: str, arguments: list | None = None) -> Any:
        """What `"module:name"` or `"folder/file.py:name"` names: a jit function, a class, or what a call of it gives.

        Raises: NoValue, TranslationError.
        """
        module, _, name = reference.partition(":")
        value = self._at_path(module) if module.endswith(".py") else self.import_module(module)
        if isinstance(value, Scope):
            found = value.bindings.by_name.get(name, [])
            if arguments is None and not any(binding.kind == "class" for binding in found):
                return find_kernel(self.evaluator.builder, value, name)[0]
            made = self.member(value, name)
            place = Place(value.path, 1, 1)
            return made if arguments is None else self.evaluator.calls.apply(made, arguments, {}, place)
        for part in name.split("."):
            value = getattr(value, part)
        return value

    def _at_path(self, path: str) -> Scope:
        """The module at a path below the search path or one of the folders around it."""
        for folder in self.search_path:
            while True:
                if is_file(found := os.path.join(folder, path)):
                    return self.module_of(module_of_path(found)[0])
                folder, last = os.path.dirname(folder), folder
                if folder == last:
                    break
        raise Undetermined(f"no file {path} beside the source or around it")

    # --- modules

    def module_of(self, file: ModuleFile) -> Scope:
        """The scope of a module file; the empty scope for a namespace package."""
        known = self._modules.get(file.name)
        if isinstance(known, Scope):
            return known
        body = parse_file(file.path).tree.body if file.path else []
        scope = Scope(self, file.path, file.name, body, package=file.package, folders=file.folders)
        self._modules[file.name] = scope
        return scope

    def module_at(self, path: str) -> Scope:
        """The module in a file that the program names by its path. Raises: Undetermined where there is none."""
        if not is_file(path):
            raise Undetermined(f"no file {path}")
        return self.module_of(module_of_path(path)[0])

    def _can_be_imported(self, name: str) -> bool:
        try:
            self.import_module(name)
        except Raised:
            return False
        return True

    def import_module(self, name: str) -> Any:
        """A `Scope` for a user's module, the real module for Triton's and pure standard ones, else a `HostName`.

        Raises: Raised(ModuleNotFoundError) when there is no such module.
        """
        if name in self.loaded.put:
            return self.loaded.put[name]
        if name in self._modules:
            known = self._modules[name]
            if isinstance(known, Raised):
                raise known
            return known
        try:
            value = self._import(name)
        except Raised as error:
            self._modules[name] = error
            raise
        self._modules[name] = value
        return value

    def _import(self, name: str) -> Any:
        top = name.partition(".")[0]
        if top in _REAL_PACKAGES or (top in PURE_MODULES and not self._is_shadowed(top)):
            try:
                return importlib.import_module(name)
            except ImportError as error:
                raise Raised(error) from None
        if name in RUNTIME_MODULES:
            return self.module_of(runtime_module(name, self.search_path))
        if top in HOST_PACKAGES or top in sys.stdlib_module_names:
            return HostName(name, is_module=True)
        if is_fork(top, self.search_path):
            try:
                found = module_of_fork(name)
            except ImportError as error:
                raise Raised(error) from None
            self._read_as_triton(top)
            return found
        if (file := find_module(name, self.search_path)) is None:
            raise Raised(ModuleNotFoundError(f"no module named {name} on the search path", name=name))
        return self.module_of(file)

    def import_known(self, name: str) -> Scope:
        """The scope of a user's module that has been read already."""
        known = self._modules[name]
        assert isinstance(known, Scope), f"bug in gluonize: {name} is {known!r}, not a module of the user"
        return known

    def _is_shadowed(self, top: str) -> bool:
        return top == "numpy" and find_module(top, self.search_path) is None

    def submodule(self, scope: Scope, name: str) -> Any:
        """The submodule `name` of a package. Raises: Raised(AttributeError)."""
        if scope.folders:
            try:
                return self.import_module(f"{scope.module}.{name}")
            except Raised:
                pass
        raise Raised(AttributeError(f"module {scope.module} has no attribute {name}"))

    def member(self, scope: Scope, name: str) -> Any:
        """`module.name`: what the module binds, else its submodule."""
        try:
            value = scope.own(name)
        except KeyError:
            pass
        else:
            if scope.kind == "module" and scope.now is None and not isinstance(value, (UserFunction, JITCallable)):
                self.check_others(scope, name, value)
            return value
        if name == "__name__":
            return scope.module
        if name == "__file__":
            return scope.path
        return self.submodule(scope, name)

    def check_others(self, scope: Scope, name: str, value: Any) -> None:
        """Raises: Undetermined for a name of a module that another file may change."""
        key = f"{scope.module}:{name}"
        if (
            key not in self.overrides
            and not self._spoiling
            and (found := foreign_change(self, scope, name, value)) is not None
        ):
            raise Undetermined(*found)

    def absolute_name(self, node: ast.ImportFrom, scope: Scope | Frame) -> str:
        """The dotted name of the module a from-import is from."""
        if not node.level:
            return node.module or ""
        home: Any = scope
        while isinstance(home, Frame) or home.kind != "module":
            home = home.outer if isinstance(home, Frame) else home.parent
        parts = home.package.split(".") if home.package else []
        if node.level - 1 > len(parts) or not parts:
            error = ImportError("attempted relative import beyond the top-level package")
            raise Raised(error, scope.place(node))
        parts = parts[: len(parts) - (node.level - 1)]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def import_from(self, node: ast.ImportFrom, name: str, scope: Scope | Frame) -> Any:
        module_name = self.absolute_name(node, scope)
        try:
            module = self.import_module(module_name)
        except Raised:
            top = module_name.partition(".")[0]
            if top in _REAL_PACKAGES and (moved := renamed_value(module_name, name)) is not None:
                return moved
            raise
        if isinstance(module, Scope):
            try:
                return self.member(module, name)
            except Raised as error:
                if isinstance(error.error, AttributeError):
                    message = f"cannot import name {name} from {module_name} ({module.path or 'a folder'})"
                    raise Raised(ImportError(message), scope.place(node)) from None
                raise
        if isinstance(module, ModuleType):
            if hasattr(module, name):
                return self.evaluator.attribute(module, name, scope.place(node))
            try:
                return self.import_module(f"{module_name}.{name}")
            except Raised:
                if (moved := renamed_value(module.__name__, name)) is not None:
                    return moved
                raise Raised(ImportError(f"cannot import name {name} from {module_name}"), scope.place(node)) from None
        return self.evaluator.attribute(module, name, scope.place(node))

    def attempt_import(self, node: ast.Import | ast.ImportFrom, scope: Scope | Frame) -> None:
        """Raises what the import statement would certainly raise; a name that exists but has no static value is fine."""
        for alias in node.names:
            try:
                if isinstance(node, ast.Import):
                    self.import_module(alias.name)
                elif alias.name == "*":
                    self.import_module(self.absolute_name(node, scope))
                else:
                    self.import_from(node, alias.name, scope)
            except Undetermined:
                pass
            except Raised:
                if alias.name == "*" or self._triton_by_use(node, alias, scope) is None:
                    raise

    def _triton_by_use(self, node: ast.Import | ast.ImportFrom, alias: ast.alias, scope: Scope | Frame) -> Any:
        """What of Triton an import that cannot be followed is taken for (`triton_by_use.py`), or None."""
        module = alias.name
        if isinstance(node, ast.ImportFrom):
            try:
                module = self.absolute_name(node, scope)
            except Raised:
                module = node.module or ""
        return None if module.partition(".")[0] in _REAL_PACKAGES else stands_for(node, alias, module, scope)

    def _taken_for_triton(self, binding: Binding, scope: Scope, error: NoValue) -> Any:
        """`_triton_by_use` of a binding, with a note. Raises: the error where it is nothing of Triton's."""
        assert isinstance(binding.node, (ast.Import, ast.ImportFrom)) and binding.alias is not None
        found = self._triton_by_use(binding.node, binding.alias, scope)
        if found is None:
            raise error
        if package := forked(binding.node, binding.alias):
            self._read_as_triton(package)
        else:
            node = binding.node
            module = node.module if isinstance(node, ast.ImportFrom) else binding.alias.name
            self.note(
                f"{scope.path}:{node.lineno}: what comes from {module} and is used like Triton is taken to be Triton's: {error.reason}"
            )
        return found

    def _read_as_triton(self, package: str) -> None:
        self.fork = self.fork or package
        self.note(f"{package} is taken to be a distribution of Triton, and read as the one that runs here")

    def taken_by(self, node: ast.With, scope: Scope | Frame) -> tuple[ast.expr, ...] | None:
        """The kinds of exceptions that a `with` statement takes, None where they are not known: those of `contextlib.suppress`, and of
        the user's own managers whatever they return; what other libraries have takes none."""
        kinds: list[ast.expr] = []
        for item in node.items:
            made = item.context_expr
            try:
                called = self.evaluate(made.func if isinstance(made, ast.Call) else made, scope)
            except NoValue:
                return None
            if isinstance(called, HostName) and isinstance(made, ast.Call):
                if called.dotted == "contextlib.suppress":
                    kinds += made.args
                elif called.dotted.rpartition(".")[2] in _TAKING:
                    return None
            elif isinstance(called, (UserFunction, UserClass)):
                return None
        return tuple(kinds)

    def star_exports(self, scope: Scope, binding: Binding, name: str) -> bool:
        """Whether `from m import *` binds `name`."""
        node = binding.node
        assert isinstance(node, ast.ImportFrom)
        try:
            module = self.import_module(self.absolute_name(node, scope))
        except Raised:
            return False
        if isinstance(module, Scope):
            public = module.public_names()
            if public is not None:
                return name in public
            return module is not scope and not name.startswith("_") and module.defines(name)
        if isinstance(module, ModuleType):
            public = getattr(module, "__all__", None)
            return hasattr(module, name) and (name in public if public else not name.startswith("_"))
        return False

    # --- what a binding means

    def bind(self, binding: Binding, scope: Scope) -> Any:
        """The value that a binding gives its name in `scope`."""
        node = binding.node
        if binding.kind == "import":
            assert binding.alias is not None
            try:
                module = self.import_module(binding.alias.name)
            except Raised as error:
                if binding.alias.name.partition(".")[0] in _REAL_PACKAGES and not binding.alias.asname:
                    # A module that Triton no longer has: what it was used for is asked where it is used.
                    self.note(f"{scope.path}:{node.lineno}: this Triton has no {binding.alias.name}")
                    return self.import_module(binding.alias.name.partition(".")[0])
                return self._taken_for_triton(binding, scope, error)
            if binding.alias.asname:
                return module
            return self.import_module(binding.alias.name.partition(".")[0])
        if binding.kind == "from":
            assert isinstance(node, ast.ImportFrom) and binding.alias is not None
            try:
                found = self.import_from(node, binding.alias.name, scope)
            except NoValue as error:
                # Of a package that is not here: what has one of these names compares versions.
                missing = isinstance(error, Raised) and isinstance(error.error, ModuleNotFoundError)
                if missing and (known := VERSIONS.get(binding.alias.name)):
                    return HostName(known)
                return self._taken_for_triton(binding, scope, error)
            return found
        if binding.kind == "star":
            assert isinstance(node, ast.ImportFrom)
            return self.import_from(node, binding.name, scope)
        if binding.kind == "def":
            assert isinstance(node, ast.FunctionDef)
            return self.evaluator.builder.define(node, scope)
        if binding.kind == "class":
            assert isinstance(node, ast.ClassDef)
            return self.evaluator.builder.define_class(node, scope)
        before = scope.bindings.positions.get(id(node))
        if binding.kind == "assign":
            assert binding.value is not None
            try:
                value = scope.right_side(node)
            except NoValue as error:
                found = used_as(binding.name, scope) if isinstance(scope, Scope) and not binding.path else None
                if found is None:
                    raise
                what = f"{scope.path}:{node.lineno}: {binding.name} is used like Triton, and taken to be Triton's"  # type: ignore[attr-defined]
                self.note(f"{what}: {error.reason}")
                return found
            for index in binding.path:
                if isinstance(index, tuple):
                    items = self.evaluator.iterate(value, scope.place(node))
                    value = self.effects.made(items[index[0] : len(items) - index[1]])
                else:
                    value = self.evaluator.element(value, index, scope.place(node))
            return value
        if binding.kind == "augmented":
            assert isinstance(node, ast.AugAssign)
            old = scope.lookup(binding.name, before)
            return self.evaluator.in_place(node.op, old, self.evaluate(node.value, scope, before), scope.place(node))
        if binding.kind == "parameter":
            if binding.value is not None:
                return self.evaluate(binding.value, scope.parent)
            raise Undetermined(
                f"{binding.name} is an argument of {scope.qualname.removesuffix('.<locals>')}",
                Place.of(scope.path, node),
            )
        raise Undetermined(f"{binding.name} cannot be read statically: {binding.reason}", Place.of(scope.path, node))
