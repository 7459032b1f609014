"""Validating the launches of one text: in full the first of each structure, with two sets of inputs those that are like it, or proved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future

from gluonize.diagnostics import InternalError, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.project.output.verdict import is_settled
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest

STRUCTURE = "gluonize.judge.verdict.structure:structure_of"


class Validating:
    """The validations of a text's launches, as they run in the children of a pool.

    Configurations of a kernel (launches that differ in constexpr values and options alone) for which source and text have the same
    operations go the same ways: what is tried of one beyond its own inputs would be tried again of each.
    """

    def __init__(
        self, request: TranslateRequest, draft: str, specs: Sequence[LaunchSpec], pool: WorkerPool, validate: str
    ):
        """validate: the job, validate_launch(source, output, spec, target, search_path, import_hosts, most=..., prove=True) -> {"status": ..., ...}."""
        self.request, self.draft, self.pool, self.validate = request, draft, pool, validate
        groups: dict[tuple[str, str], list[LaunchSpec]] = {}
        for spec in specs:
            groups.setdefault((spec.kernel, _run_time(spec)), []).append(spec)
        self.structures = {
            spec.id: self._submit(STRUCTURE, spec) for group in groups.values() if len(group) > 1 for spec in group
        }
        self.groups = list(groups.values())
        self.full = {group[0].id: self._submit(self.validate, group[0]) for group in self.groups}
        self.brief: dict[str, tuple[Future, str]] = {}  # and the launch that it is like

    def go_on(self) -> None:
        """Start what depends on the structures of launches."""
        for group in self.groups:
            first: dict[str, LaunchSpec] = {}
            for spec in group:
                like = first.setdefault(self._structure(spec), spec)
                if like is not spec:
                    self.brief[spec.id] = self._submit(self.validate, spec, most=1), like.id
                elif spec.id not in self.full:
                    self.full[spec.id] = self._submit(self.validate, spec)

    def found(self, spec: LaunchSpec) -> dict:
        """What is found of a launch. Raises: TranslationError, InternalError, CancelledError."""
        if spec.id in self.full:
            return self.full[spec.id].result()
        future, like = self.brief[spec.id]
        found = future.result()
        if is_settled(found):
            return found
        if found["status"] == "validated" and not self._is_validated(like):
            self.full[spec.id] = self._submit(self.validate, spec)  # nothing that it is like was tried
            return self.full[spec.id].result()
        note = f"of the same structure as {like}: two sets of inputs were tried"
        return {**found, "notes": [*found.get("notes", ()), note]}

    def _is_validated(self, id: str) -> bool:
        """Whether all of a launch was tried."""
        try:
            found = self.full[id].result()
            return found["status"] == "validated" and not is_settled(found)
        except (TranslationError, InternalError):
            return False

    def _structure(self, spec: LaunchSpec) -> str:
        """What launches that are alike have in common; of one that does not compile its own name."""
        try:
            return self.structures[spec.id].result() if spec.id in self.structures else spec.id
        except (TranslationError, InternalError):
            return spec.id

    def _submit(self, function: str, spec: LaunchSpec, **more: int) -> Future:
        request = self.request
        arguments = request.source, self.draft, spec, request.target, request.search_path, request.import_hosts
        what = f"validating {spec.kernel} on {request.target}"
        if function == self.validate:
            more |= {"prove": True}
        return self.pool.submit(function, *arguments, what=what, **more)


def _run_time(spec: LaunchSpec) -> str:
    """What a launch passes at run time."""
    kinds = {name: kind for name, kind in spec.signature.items() if kind != "constexpr"}
    return json.dumps([kinds, spec.attrs, spec.globals, spec.values], sort_keys=True, default=repr)
