"""The launch checks of a text, to be asked without a launch."""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace

from gluonize.output.contracts.launch_checks import Asked, Checks, RunTimeContract


class Jit:
    """A jit function, as launch checks see one."""

    def __init__(self, arg_names: Sequence[str], name: str = "kernel"):
        self.arg_names, self.__name__ = arg_names, name
        self.params = [SimpleNamespace(name=each, has_default=False) for each in arg_names]
        self.hooks: list[Callable] = []

    def add_pre_run_hook(self, hook: Callable) -> None:
        self.hooks.append(hook)

    def run(self, *args, grid, warmup=False, **kwargs) -> None:
        for hook in self.hooks:
            hook(*args, **kwargs)

    def __call__(self, *args, grid=(1,), **kwargs) -> None:
        """Raises: ValueError where a launch is refused."""
        self.run(*args, grid=grid, **kwargs)


def check_of(text: str, kernel: str) -> Jit:
    """What refuses launches of a kernel of a generated text."""
    tree = ast.parse(text)
    (node,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel)
    found = Jit([a.arg for a in node.args.args], kernel)
    own = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("_check")]
    installed = [n for n in tree.body if isinstance(n, ast.If) and f"{kernel}." in ast.unparse(n)]
    assert own and len(installed) == 1, text
    exec(compile(ast.Module(own + installed, []), "output.py", "exec"), {kernel: found, "os": os})
    return found


def check_for(
    contract: RunTimeContract, arguments: Sequence[str], constants: Sequence[str] = (), optional: Sequence[str] = ()
) -> Jit:
    """What refuses launches outside of a contract."""
    asked = Asked(contract, tuple(arguments), frozenset(constants), frozenset(optional))
    checks = Checks((asked,))
    found = Jit(arguments)
    space = {"kernel": found, "os": os, "builtins": builtins}
    exec("\n\n".join([*checks.functions(), checks.below("kernel", "kernel", asked)]), space)
    return found
