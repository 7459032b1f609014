"""Python expressions evaluated statically: literals, arithmetic, names, attributes, and calls of what is known to be pure.

Nothing of the user's program is executed: host functions are interpreted (`interpret.py`) by these same rules.
"""

from __future__ import annotations

import ast
import functools
import operator
import os
import types
from typing import Any

from gluonize.read.evaluate.bodies.defaults import bound_defaults
from gluonize.read.evaluate.calls import Calls
from gluonize.read.evaluate.host_objects import UserClass, UserFunction
from gluonize.read.evaluate.host_values import (
    ASKS_FOR_DEVICE,
    ATTRIBUTE_FACTS,
    OTHER_VENDORS,
    ActiveDriver,
    ActiveTarget,
    HostName,
)
from gluonize.read.evaluate.jit_function import JitBuilder
from gluonize.read.evaluate.operators import BINARY, COMPARE, IN_PLACE, UNARY
from gluonize.read.files.torch_runtime import READ as RUNTIME_MODULES
from gluonize.read.names.effects import CONTAINERS
from gluonize.read.names.renamed import is_tritons, renamed_value
from gluonize.read.names.scope import Frame, ProgramOfScope, Scope
from gluonize.read.unresolved import Place, Raised, Undetermined
from gluonize.triton_api.backend import DriverConfig
from gluonize.triton_api.language import tl

# Limits that keep evaluation fast: nodes evaluated per program, bits of an integer, items of a sequence.
_MAX_STEPS = 2_000_000
_MAX_BITS = 4096
_MAX_ITEMS = 100_000

_OPERATORS = ("torch.library.custom_op", "torch.library.triton_op")


class Evaluator:
    def __init__(self, program: ProgramOfScope):
        self.program = program
        self.calls = Calls(self)
        self.builder = JitBuilder(self)
        self.steps = 0

    def evaluate(self, node: ast.expr, scope: Scope | Frame, before: float | None = None) -> Any:
        """The value of an expression. Raises: Undetermined or Raised, with the place of the innermost cause."""
        effects = self.program.effects
        if not effects.running:
            with effects.body():  # nothing that is there already is changed by it
                return self.evaluate(node, scope, before)
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise Undetermined("evaluating it takes too long", scope.place(node))
        method = getattr(self, "_" + type(node).__name__, None)
        if method is None:
            raise Undetermined(f"a {type(node).__name__} expression is not evaluated statically", scope.place(node))
        try:
            return effects.check(method(node, scope, before))
        except (Undetermined, Raised) as error:
            if error.place is None:
                error.place = scope.place(node)
            raise
        except RecursionError:
            raise Undetermined("it is nested too deeply", scope.place(node)) from None

    def truth(self, node: ast.expr, scope: Scope | Frame, before: float | None = None) -> bool:
        return self.true(self.evaluate(node, scope, before), scope.place(node))

    def true(self, value: Any, place: Place) -> bool:
        if isinstance(value, HostName):
            if value.certainly_true:
                return True
            raise Undetermined(f"whether {value.dotted} is true is known only when the host program runs", place)
        if isinstance(value, tl.constexpr):
            value = value.value
        return bool(value) if not isinstance(value, (Scope, UserFunction, UserClass)) else True

    def guarded(self, function: Any, *args: Any, place: Place, **kwargs: Any) -> Any:
        """Run an operation known to be pure; its exception becomes `Raised`."""
        try:
            return function(*args, **kwargs)
        except (Undetermined, Raised):
            raise
        except RecursionError:
            raise Undetermined("it is nested too deeply", place) from None
        except (
            ArithmeticError,
            AssertionError,
            AttributeError,
            LookupError,
            NameError,
            TypeError,
            ValueError,
            ImportError,
        ) as error:
            raise Raised(error, place) from None

    def _Constant(self, node, scope, before):
        return node.value

    def _Name(self, node, scope, before):
        return scope.lookup(node.id, before)

    def _Attribute(self, node, scope, before):
        return self.attribute(self.evaluate(node.value, scope, before), node.attr, scope.place(node))

    def _Tuple(self, node, scope, before):
        return tuple(self.items(node.elts, scope, before))

    def _List(self, node, scope, before):
        return self.program.effects.made(self.items(node.elts, scope, before))

    def _Set(self, node, scope, before):
        items = self.items(node.elts, scope, before)
        return self.program.effects.made(self.guarded(set, items, place=scope.place(node)))

    def items(self, nodes, scope, before) -> list:
        out = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                out.extend(self.iterate(self.evaluate(node.value, scope, before), scope.place(node)))
            else:
                out.append(self.evaluate(node, scope, before))
        return out

    def _Dict(self, node, scope, before):
        out: dict = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                self.guarded(out.update, self.evaluate(value, scope, before), place=scope.place(value))
            else:
                name = self.evaluate(key, scope, before)
                self.guarded(out.__setitem__, name, self.evaluate(value, scope, before), place=scope.place(key))
        return self.program.effects.made(out)

    def _BinOp(self, node, scope, before):
        left, right = self.evaluate(node.left, scope, before), self.evaluate(node.right, scope, before)
        return self.binary(node.op, left, right, scope.place(node))

    def binary(self, op: ast.operator, left: Any, right: Any, place: Place) -> Any:
        self.known(left, place)
        self.known(right, place)
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right if isinstance(op, ast.Pow) else left.bit_length() + right
            if isinstance(op, (ast.Pow, ast.LShift)) and bits > _MAX_BITS:
                raise Undetermined("the number is too large", place)
        elif isinstance(op, ast.Mult):
            sizes = [len(side) for side in (left, right) if isinstance(side, (str, bytes, tuple, list))]
            counts = [side for side in (left, right) if isinstance(side, int)]
            if sizes and counts and sizes[0] * counts[0] > _MAX_ITEMS:
                raise Undetermined("the sequence is too long", place)
        return self.program.effects.made(self.guarded(BINARY[type(op)], left, right, place=place))

    def in_place(self, op: ast.operator, left: Any, right: Any, place: Place) -> Any:
        """What `left op= right` binds: a container is changed, and stays itself."""
        if not isinstance(left, CONTAINERS):
            return self.binary(op, left, right, place)
        self.known(right, place)
        if (change := IN_PLACE.get(type(op))) is None:
            raise Undetermined("a value is changed after it was made", place)
        return self.guarded(change, self.program.effects.changeable(left, place), right, place=place)

    def known(self, value: Any, place: Place) -> Any:
        if isinstance(value, HostName):
            raise Undetermined(f"{value.dotted} is known only when the host program runs", place)
        return value

    def _UnaryOp(self, node, scope, before):
        if isinstance(node.op, ast.Not):
            return not self.truth(node.operand, scope, before)
        operand = self.known(self.evaluate(node.operand, scope, before), scope.place(node))
        return self.guarded(UNARY[type(node.op)], operand, place=scope.place(node))

    def _BoolOp(self, node, scope, before):
        """`a and b`: an undetermined operand does not matter when another one decides."""
        decides_on = isinstance(node.op, ast.Or)
        undetermined = None
        value = None
        for operand in node.values:
            try:
                value = self.evaluate(operand, scope, before)
                if self.true(value, scope.place(operand)) == decides_on:
                    if undetermined is None or isinstance(value, bool):
                        return value
            except Undetermined as error:
                undetermined = undetermined or error
        if undetermined is not None:
            raise undetermined
        return value

    def _Compare(self, node, scope, before):
        try:
            left = self.evaluate(node.left, scope, before)
        except (Undetermined, Raised):
            if (answer := self._other_vendor(node, scope)) is None:
                raise
            return answer
        for op, right_node in zip(node.ops, node.comparators):
            right = self.evaluate(right_node, scope, before)
            if not self.true(self.compare(op, left, right, scope.place(node)), scope.place(node)):
                return False
            left = right
        return True

    def _other_vendor(self, node: ast.Compare, scope: Scope | Frame) -> bool | None:
        """`device.vendor_name == "nvidia"` and `in ("npu", "xpu")`: no, the target is an AMD GPU."""
        asked = node.comparators[0]
        texts = asked.elts if isinstance(asked, (ast.Tuple, ast.List, ast.Set)) else [asked]
        names = [text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]
        if (
            len(node.ops) != 1
            or len(names) != len(texts)
            or not names
            or not all(n.lower() in OTHER_VENDORS for n in names)
        ):
            return None
        if not isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) or not ASKS_FOR_DEVICE.search(
            ast.unparse(node.left)
        ):
            return None
        answer = isinstance(node.ops[0], (ast.NotEq, ast.NotIn))
        self.program.note(
            f"{scope.path}:{node.lineno}: `{ast.unparse(node)}` is taken to be {answer}: the target is an AMD GPU"
        )
        return answer

    def compare(self, op: ast.cmpop, left: Any, right: Any, place: Place) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self._same(left, right, place) == isinstance(op, ast.Is)
        if isinstance(op, (ast.In, ast.NotIn)) and right is os.environ:
            found = self.calls.apply(os.environ.get, [left], {}, place)
            return (found is not None) == isinstance(op, ast.In)
        if isinstance(op, (ast.In, ast.NotIn)):
            items = right if isinstance(right, (str, dict, set, frozenset)) else self.iterate(right, place)
            if isinstance(left, HostName) and not left.torch_dtype:
                self.known(left, place)
            return self.guarded(operator.contains, items, left, place=place) == isinstance(op, ast.In)
        if isinstance(left, HostName) and isinstance(right, HostName) and left.torch_dtype and right.torch_dtype:
            if isinstance(op, (ast.Eq, ast.NotEq)):
                return (left.torch_dtype == right.torch_dtype) == isinstance(op, ast.Eq)
        self.known(left, place)
        self.known(right, place)
        return self.guarded(COMPARE[type(op)], left, right, place=place)

    def _same(self, left: Any, right: Any, place: Place) -> bool:
        for side, other in ((left, right), (right, left)):
            if isinstance(side, HostName) and not (other is None and side.certainly_true):
                if isinstance(other, HostName) and side.torch_dtype and other.torch_dtype:
                    return side.torch_dtype == other.torch_dtype
                raise Undetermined(f"{side.dotted} is known only when the host program runs", place)
        return left is right

    def _IfExp(self, node, scope, before):
        return self.evaluate(node.body if self.truth(node.test, scope, before) else node.orelse, scope, before)

    def _Subscript(self, node, scope, before):
        value = self.evaluate(node.value, scope, before)
        index = self.evaluate(node.slice, scope, before)
        return self.element(value, index, scope.place(node))

    def element(self, value: Any, index: Any, place: Place) -> Any:
        if isinstance(value, HostName):
            return HostName(f"{value.dotted}[...]")
        if isinstance(value, (UserClass, UserFunction, Scope)):
            raise Undetermined("a host object is indexed", place)
        return self.guarded(operator.getitem, value, index, place=place)

    def _Slice(self, node, scope, before):
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.evaluate(part, scope, before) for part in parts))

    def _JoinedStr(self, node, scope, before):
        return "".join(str(self.evaluate(part, scope, before)) for part in node.values)

    def _FormattedValue(self, node, scope, before):
        place = scope.place(node)
        value = self.known(self.evaluate(node.value, scope, before), place)
        if not isinstance(value, (str, int, float, bool, tuple, list, type(None))):
            raise Undetermined("a host object is formatted", place)
        conversion = {ord("r"): repr, ord("s"): str, ord("a"): ascii}.get(node.conversion, lambda item: item)
        spec = "" if node.format_spec is None else self.evaluate(node.format_spec, scope, before)
        return self.guarded(format, conversion(value), spec, place=place)

    def _Lambda(self, node, scope, before):
        return UserFunction(node, scope, held=bound_defaults(self, node.args, scope))

    def _NamedExpr(self, node, scope, before):
        value = self.evaluate(node.value, scope, before)
        home = scope
        while isinstance(home, Frame) and home.is_comprehension:
            home = home.outer
        if isinstance(home, Frame):
            home.locals[node.target.id] = value
        elif home.now is not None:
            home.overlay[node.target.id] = value
        return value

    def _ListComp(self, node, scope, before):
        out = self._comprehension(node, scope, before, lambda frame: self.evaluate(node.elt, frame))
        return self.program.effects.made(out)

    def _GeneratorExp(self, node, scope, before):
        """An iterator, as Python has it: what goes through it a second time finds nothing."""
        return iter(self._comprehension(node, scope, before, lambda frame: self.evaluate(node.elt, frame)))

    def _SetComp(self, node, scope, before):
        made = self.guarded(set, self._ListComp(node, scope, before), place=scope.place(node))
        return self.program.effects.made(made)

    def _DictComp(self, node, scope, before):
        def pair(frame):
            return self.evaluate(node.key, frame), self.evaluate(node.value, frame)

        made = self.guarded(dict, self._comprehension(node, scope, before, pair), place=scope.place(node))
        return self.program.effects.made(made)

    def _comprehension(self, node, scope, before, result) -> list:
        frame = Frame(scope, scope.path, scope.module, scope.qualname, is_comprehension=True)
        out: list = []

        def descend(depth: int) -> None:
            if depth == len(node.generators):
                out.append(result(frame))
                return
            generator = node.generators[depth]
            source = self.evaluate(generator.iter, scope if depth == 0 else frame, before if depth == 0 else None)
            for item in self.iterate(source, scope.place(generator.iter)):
                self.calls.interpreter.assign(generator.target, item, frame)
                if all(self.truth(condition, frame) for condition in generator.ifs):
                    descend(depth + 1)

        descend(0)
        return out

    def iterate(self, value: Any, place: Place) -> list:
        """The items of a finite, plain iterable."""
        self.program.effects.check(value)
        if isinstance(value, type) and hasattr(value, "__members__"):
            return list(value)
        plain = (
            str,
            bytes,
            tuple,
            list,
            dict,
            set,
            frozenset,
            range,
            zip,
            enumerate,
            map,
            reversed,
            filter,
            tl.tuple,
            type(iter([])),
        )
        views = (type({}.keys()), type({}.values()), type({}.items()), types.MappingProxyType)
        if not isinstance(value, (*plain, *views)) and type(value).__module__ != "itertools":
            self.known(value, place)
            raise Undetermined(f"a {type(value).__name__} is iterated over", place)
        if isinstance(value, range) and len(value) > _MAX_ITEMS:
            raise Undetermined("the range is too long", place)
        if type(value).__name__ in ("count", "cycle", "repeat"):
            raise Undetermined("the iteration may not end", place)
        if isinstance(value, (set, frozenset)):
            return sorted(value, key=repr)  # the order of a set of strings differs from run to run
        return self.guarded(list, value, place=place)

    def attribute(self, value: Any, name: Any, place: Place) -> Any:
        """`value.name`, or what `getattr` gives for a name that is computed."""
        if not isinstance(name, str):
            raise Undetermined("which attribute it is is known only when the host program runs", place)
        if isinstance(value, Scope):
            return self.program.member(value, name)
        if isinstance(value, HostName):
            dotted = f"{value.dotted}.{name}"
            if dotted in RUNTIME_MODULES:
                return self.program.import_module(dotted)
            return ATTRIBUTE_FACTS[dotted] if dotted in ATTRIBUTE_FACTS else HostName(dotted)
        if isinstance(value, DriverConfig) and name in ("active", "default"):
            return ActiveDriver()
        if isinstance(value, (ActiveDriver, ActiveTarget)):
            return self._device(value, name, place)
        if isinstance(value, UserClass):
            return value.member(name)
        if isinstance(value, UserFunction):
            if name in ("__name__", "__qualname__"):
                return value.name
            if self._is_operator(value):
                return HostName(f"torch.library.CustomOpDef.{name}")  # which keeps what it is given
            raise Undetermined(f"attribute {name} of a host function", place)
        if isinstance(value, types.ModuleType):
            return self._module_attribute(value, name, place)
        if name == "fn" and self.builder.is_decorated(value):
            return value  # without the outermost of its launch decorators, which are looked through
        if name.startswith("_") and name not in ("__name__", "_fields", "__version__", "__members__", "__doc__"):
            raise Undetermined(f"attribute {name} of a {type(value).__name__}", place)
        return self.guarded(getattr, value, name, place=place)

    def _is_operator(self, function: UserFunction) -> bool:
        """Whether a function is made an operator of torch: `@torch.library.custom_op(...)`."""
        made = [d.func for d in getattr(function.node, "decorator_list", ()) if isinstance(d, ast.Call)]
        return any(getattr(self.evaluate(f, function.scope), "dotted", "") in _OPERATORS for f in made)

    def _device(self, value: Any, name: str, place: Place) -> Any:
        if isinstance(value, ActiveDriver) and name == "get_current_target":
            return functools.partial(ActiveTarget)
        if isinstance(value, ActiveTarget) and name == "backend":
            return value.backend
        raise Undetermined(f"`{name}` of the device is known only when the host program runs", place)

    def _module_attribute(self, module: types.ModuleType, name: str, place: Place) -> Any:
        if module.__name__ == "sys" and name == "modules":
            return self.program.loaded
        if module.__name__ == "sys" and name not in ("version_info", "platform", "maxsize", "byteorder", "version"):
            raise Undetermined(f"sys.{name} is known only when the host program runs", place)
        found = self.guarded(getattr, module, name, place=place) if hasattr(module, name) else None
        if found is None and not hasattr(module, name):
            try:
                return self.program.import_module(f"{module.__name__}.{name}")
            except Raised:
                if is_tritons(module) and (moved := renamed_value(module.__name__, name)) is not None:
                    return moved
                error = AttributeError(f"module {module.__name__} has no attribute {name}")
                raise Raised(error, place) from None
        if isinstance(found, types.ModuleType) and found.__name__.partition(".")[0] not in ("triton", module.__name__):
            return self.program.import_module(found.__name__)
        return found

    def _Call(self, node, scope, before):
        return self.calls.call(node, scope, before)
