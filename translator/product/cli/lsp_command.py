"""`gluonize lsp`: the language server, where the package that speaks the protocol is installed."""

from __future__ import annotations

from importlib.util import find_spec

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.cli import exit_status
from gluonize.product.editor.settings import Settings
from gluonize.rules.targets import target as target_row


def run_lsp(settings: Settings) -> int:
    """Serve until the editor ends it. Raises: TranslationError `extra-missing` without pygls, `unknown-target`."""
    if find_spec("pygls") is None:
        message = "gluonize lsp needs pygls, which is not installed"
        raise TranslationError(Diagnostic("extra-missing", message, help="pip install 'gluonize[lsp]'"))
    if settings.target:
        target_row(settings.target)
    from gluonize.product.editor.server import serve

    serve(settings)
    return exit_status.DONE
