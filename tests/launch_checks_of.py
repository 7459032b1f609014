"""The launch checks of a text, to be asked without a launch."""

from __future__ import annotations

import ast
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
    assume = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "_assume"]
    called = [n for n in tree.body if isinstance(n, ast.Expr) and ast.unparse(n).startswith(f"_assume({kernel},")]
    assert len(assume) == len(called) == 1, text
    exec(compile(ast.Module(assume + called, []), "output.py", "exec"), {kernel: found})
    return found


def check_for(
    contract: RunTimeContract, arguments: Sequence[str], constants: Sequence[str] = (), optional: Sequence[str] = ()
) -> Jit:
    """What refuses launches outside of a contract."""
    asked = Asked(contract, frozenset(arguments), frozenset(constants), frozenset(optional))
    checks = Checks((asked,))
    found = Jit(arguments)
    exec(f"{checks.function()}\n\n{checks.call('kernel', asked)}", {"kernel": found})
    return found
