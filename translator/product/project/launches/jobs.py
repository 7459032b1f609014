"""The jobs that read the launches in host code, and bind them to a text that was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.project.cache.recorded import Reads
from gluonize.product.project.launches.judge import (
    HostLaunch,
    WrittenText,
    findings,
    host_launches,
)
from gluonize.read.launches.bound.completed import asked_launches, bound_launches
from gluonize.read.spec.launch import LaunchSpec, compiled_as
from gluonize.request import TranslateRequest, TranslateResult

READ_LAUNCHES = "gluonize.read.launches.bound.launches:launch_bindings"
REFUSED_LAUNCHES = "gluonize.judge.lower.accepted:refused_launches"
RECORDED = "gluonize.product.project.cache.recorded:run_recorded"


class HostLaunchJobs:
    """Reads the launches in host code while a text is checked, and then judges them by the text."""

    def __init__(self, request: TranslateRequest, result: TranslateResult, compiles: bool, pool: WorkerPool):
        self.request, self.result, self.pool = request, result, pool
        self.reading = None
        self.bug, self.notes = "", ()
        # Those of kernels whose launches were derived are known already.
        self.known = {derivation.kernel: derivation.bindings for derivation in result.derivations}
        self.kernels = tuple(dict.fromkeys(outcome.spec.kernel for outcome in result.outcomes))
        if not compiles or self.request.standalone or self.request.emit:
            self.kernels = ()
        if kernels := tuple(name for name in self.kernels if name not in self.known):
            arguments = (self.request.source, kernels, self.request.search_path)
            what = f"reading the launches in {self.request.source}"
            self.reading = pool.submit(RECORDED, READ_LAUNCHES, arguments, {}, what=what)

    def found(
        self, draft: str, served: Sequence[LaunchSpec], untranslated: Mapping[str, str]
    ) -> tuple[tuple[HostLaunch, ...], Reads]:
        """What is said of each, and what was read for that. draft: the file with the text; served: the launches that it was written for;
        untranslated: why a kernel has no translation."""
        try:
            return self._found(draft, served, untranslated)
        except InternalError as error:  # the translation is what it is
            self.bug = str(error)
        except TranslationError as error:  # it took too long, or too much memory
            self.notes = (f"launches in host code were not looked at: {error.diagnostics[0].message}",)
        return (), Reads()

    def _found(
        self, draft: str, served: Sequence[LaunchSpec], untranslated: Mapping[str, str]
    ) -> tuple[tuple[HostLaunch, ...], Reads]:
        read, reads = dict(self.known), Reads()
        if self.reading is not None:
            (kind, bindings), reads = self.reading.result()
            for binding in bindings if kind != "refused" else ():
                read[binding.kernel] = (*read.get(binding.kernel, ()), binding)
        bindings = [binding for kernel in self.kernels for binding in read.get(kernel, ())]
        if not bindings:
            return (), reads
        text = WrittenText(self.result.text or "")
        bound = bound_launches(bindings, served)
        by_text = {} if self.request.fallback else self.refused(draft, asked_launches(bound, served))
        wrong = [spec for spec, why in by_text.values() if why is not None]
        by_source = self.refused(self.request.source, wrong)
        reasons, others = ({key: why for key, (_, why) in x.items()} for x in (by_text, by_source))
        judged = findings(bound, reasons, others, text)
        asserted = {spec.kernel: text.asserted(spec.kernel) for spec in served if not self.request.fallback}
        return host_launches(bindings, judged, self.request.source, asserted, untranslated), reads

    def refused(self, path: str, specs: list[LaunchSpec]) -> dict[str, tuple[LaunchSpec, Diagnostic | None]]:
        """Why the front end refuses a launch of a file, by what it is compiled as; None where it does not."""
        if not specs:
            return {}
        request = self.request
        what = f"binding the launches in {request.source} on {request.target}"
        arguments = path, tuple(specs), request.target, request.search_path, request.import_hosts
        try:
            reasons = self.pool.call(REFUSED_LAUNCHES, *arguments, what=what, timeout=self.pool.timeout * len(specs))
        except TranslationError as error:  # one of them makes the compiler abort, or never end
            parts = [self.refused(path, [spec]) for spec in specs] if len(specs) > 1 else []
            reasons = [why for part in parts for _, why in part.values()] or [error.diagnostics[0]]
        return {compiled_as(spec.as_json()): (spec, why) for spec, why in zip(specs, reasons)}
