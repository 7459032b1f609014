"""The jit function of a launch, from a Triton source or from a translated Gluon file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from translator.source.launch_spec import LaunchSpec


@dataclass(frozen=True)
class LoadedFunction:
    """`fn` is a JITFunction or GluonJITFunction; `load_jit` resolves the `$jit` values of the same launch."""

    fn: Any
    load_jit: Callable[[str], Any] | None = None


def load_function(source: str, spec: LaunchSpec, search_path: tuple[str, ...], import_hosts: bool) -> LoadedFunction:
    """The kernel of `spec` in `source` (a path or a module), read without executing host code unless `import_hosts`.

    Raises: TranslationError for what cannot be read.
    """
    import importlib.util
    import sys
    from pathlib import Path

    from triton.runtime.jit import JITFunction

    name = "gluonize_" + Path(source).stem
    module_spec = importlib.util.spec_from_file_location(name, source)
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    module_spec.loader.exec_module(module)
    fn = getattr(module, spec.kernel.rpartition(".")[2])
    while not isinstance(fn, JITFunction):
        fn = fn.fn
    return LoadedFunction(fn)
