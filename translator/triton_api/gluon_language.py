"""Gluon's namespaces. An operation that the installed Triton calls otherwise has its name in the vocabulary here too (`rules/gluon.py`)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gluonize.rules import gluon as table
from gluonize.triton_api import language
from gluonize.triton_api.row import Row, names_of
from gluonize.versions import triton_version


class _InOurWords(ModuleType):
    """A module of Gluon's whose operations go by the names of the vocabulary."""

    def __init__(self, module: ModuleType, words: dict[str, str], modules: dict[str, dict[str, str]]):
        super().__init__(module.__name__)
        self.__dict__.update(_module=module, _words=words, _modules=modules)

    def __getattr__(self, name: str) -> Any:
        word = self._words.get(name, name)
        if word.startswith("tl."):
            return getattr(language.tl, word.removeprefix("tl."))
        if not word:
            raise AttributeError(f"Triton {triton_version()} has no {self._module.__name__}.{name}")
        found = getattr(self._module, word)
        return _InOurWords(found, self._modules[name], {}) if name in self._modules else found

    def __dir__(self) -> list[str]:
        return [*dir(self._module), *(name for name, word in self._words.items() if word)]


class _Namespace(Row):
    """A row of a module of Gluon's: loaded with the names of the vocabulary where a version has others."""

    def load(self) -> Any:
        found = super().load()
        words = _words_of(self.name)
        inner = {"amd": _words_of("amd")} if self.name == "gl" and _words_of("amd") else {}
        return _InOurWords(found, words, inner) if words or inner else found


def _words_of(home: str) -> dict[str, str]:
    return {name: word for (of, name), word in table.in_words_of(triton_version()).items() if of == home}


def _rows() -> tuple[Row, ...]:
    named = (("gl", "the language"), ("cdna4", "layouts that it computes"), ("cdna5", "layouts of its own"))
    version = triton_version()
    rows = [_Namespace(name, table.MODULES[name].path_in(version), use) for name, use in named]
    layouts = f"{table.MODULES['gl'].path}._layouts"
    return (
        *rows,
        Row("gluon", table.MODULES["gluon"].path_in(version), "the decorators of Gluon kernels"),
        Row("DistributedLayout", f"{layouts}:DistributedLayout", "whether a value is a layout"),
        Row("SharedLayout", f"{layouts}:SharedLayout", "whether a value is a layout in LDS"),
        Row("_layouts", layouts, "layouts that sources are called with"),
        Row("amd", table.MODULES["amd"].path_in(version), "layouts that sources are called with"),
        Row("amd_layouts", f"{table.MODULES['amd'].path}._layouts", "layouts that sources are called with"),
        Row("blackwell", f"{table.MODULES['gl'].path}.nvidia.blackwell", "layouts that sources are called with"),
        Row("mbarrier", f"{table.MODULES['gl'].path}.nvidia.hopper.mbarrier", "layouts that sources are called with"),
    )


ROWS = _rows()
__getattr__ = names_of(__name__, ROWS)
