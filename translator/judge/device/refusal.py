"""The one way in which this package says no."""

from __future__ import annotations

from gluonize.diagnostics import Diagnostic, TranslationError


class Refused(TranslationError):
    """Something that cannot be bundled or re-targeted; `what` names it (an op, an encoding, a type, a limit)."""

    def __init__(self, what: str, why: str, code: str = "not-retargetable", help: str = ""):
        super().__init__(Diagnostic(code, what, why=why, help=help))
        self.what, self.why, self.help = what, why, help

    def __reduce__(self):
        return (Refused, (self.what, self.why, self.diagnostics[0].code, self.help))
