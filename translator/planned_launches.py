"""The launches that a request is translated for: those given, and for kernels without any those derived from the source."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean
from gluonize.read.inductor.launches import stated_launch
from gluonize.read.kernels.listing import list_kernels
from gluonize.read.launches.derivation import derive_kernel, launchable_kernels
from gluonize.read.launches.derive.set_options import check_types, parse_settings, settings_for
from gluonize.read.launches.table import Derivation
from gluonize.read.spec.launch import AMD_OPTIONS, LaunchSpec
from gluonize.request import LaunchOutcome, TranslateRequest, with_options
from gluonize.rules.targets import target as target_row
from gluonize.trace.acceptance import FrontEndJudge


@dataclass(frozen=True)
class PlannedLaunches:
    """launches: what to translate. notes: for the reader of the run. assumed: lines for the output's header. unknown: kernels for
    which there is no launch. derivations: how launches were derived, one per kernel."""

    launches: tuple[LaunchSpec, ...]
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    unknown: tuple[LaunchOutcome, ...] = ()
    derivations: tuple[Derivation, ...] = ()


def planned_launches(request: TranslateRequest) -> PlannedLaunches:
    """The launches to translate, `_planned`, as clusters where a choice makes them one."""
    planned = _planned(request)
    launches = tuple(with_options(spec, request.choices_for(spec.kernel)) for spec in planned.launches)
    return replace(planned, launches=launches)


def _planned(request: TranslateRequest) -> PlannedLaunches:
    """The launches to translate.

    With `strict`, launches are derived only from what the source says for certain, and what is missing is asked for.
    Raises: TranslationError when a source cannot be read, or with `strict` (and no `keep_going`) when a value is missing.
    """
    given = [spec for spec in request.launches if not request.kernels or spec.kernel in request.kernels]
    without = [name for name in request.kernels if name not in {spec.kernel for spec in given}]
    if given and not without:
        told = "--set changes launches that are guessed, and these were given: change them in their file"
        return PlannedLaunches(tuple(given), (told,) * bool(request.assignments))
    settings = parse_settings(f"{name}={value}" for name, value in request.assignments)
    check_types(settings)
    names = without or launchable_kernels(request.source, request.search_path)
    _check_settings(request, names, settings)
    derivations: list[Derivation] = []
    unknown: list[LaunchOutcome] = []
    missing: list[Diagnostic] = []
    for name in names:
        try:
            own = settings_for(settings, name)
            row = target_row(request.target)
            about = {"settings": own, "search_path": request.search_path}
            derivations.append(
                stated_launch(request.source, name, row.warp_size, row.compute_units, **about)
                or derive_kernel(
                    request.source, name, lambda loaded: FrontEndJudge(loaded, request.target), **about,
                    all_configs=request.all_configs, fp8=_fp8(request.target), certain=request.strict,
                )
            )  # fmt: skip
        except TranslationError as error:
            code = error.diagnostics[0].code
            misspelt = code in ("kernel-missing", "kernel-not-jit") and name in request.kernels
            if misspelt and not request.keep_going:
                raise  # nobody wants what is left of a misspelled request
            spec = LaunchSpec(id=name, kernel=name, source=request.source)
            asked = code == "spec-missing"
            missing += error.diagnostics if asked else ()
            unknown.append(LaunchOutcome(spec, "refused" if asked else "passed-over", error.diagnostics))
    if missing and not request.keep_going:
        raise TranslationError(*missing)
    launches = [*given, *(spec for derivation in derivations for spec in derivation.launches)]
    notes = [f"{d.kernel}: {note}" for d in derivations for note in d.notes]
    notes += [_kept(o) for o in unknown if o.status == "passed-over"]
    assumed = tuple(f"guessed for {line}" for derivation in derivations for line in derivation.lines())
    return PlannedLaunches(tuple(launches), tuple(notes), assumed, tuple(unknown), tuple(derivations))


def derived_unseen(source: str, kernel: str, search_path: tuple[str, ...], target: str) -> tuple[Derivation, float]:
    """The launches of one kernel as if nothing was known of them, and the seconds that it took (`bench/derive.py`)."""
    started = time.perf_counter()
    judging = lambda loaded: FrontEndJudge(loaded, target)  # noqa: E731
    found = derive_kernel(source, kernel, judging, search_path=search_path, fp8=_fp8(target))
    return found, time.perf_counter() - started


def _fp8(target: str) -> str:
    """The 8-bit floating-point type of a target; OCP's e4m3 where its matrix instructions take none."""
    return next(iter(target_row(target).native_fp8), "fp8e4nv")


def _kept(outcome: LaunchOutcome) -> str:
    """What is said of a kernel that stays as it is, and what to do where no launch can help."""
    found = outcome.diagnostics[0]
    if found.code == "spec-not-found":
        return f"{outcome.spec.kernel} stays Triton: {found.message.partition(': ')[2]}"
    return f"{outcome.spec.kernel} stays as it is: {found.message}" + (f"; {found.help}" if found.help else "")


def _check_settings(request: TranslateRequest, names: list[str], settings: dict[str, Any]) -> None:
    """Refuse settings for arguments that no kernel has. Raises: TranslationError `spec-unknown-argument`."""
    listed = list_kernels(request.source, request.search_path)
    infos = {name: k.args for k in listed for name in (k.name, *k.aliases)}
    problems = []
    for name in settings:
        owner, _, argument = name.rpartition(".")
        owners = [k for k in infos if not owner or k == owner or k.rpartition(".")[2] == owner]
        if argument in AMD_OPTIONS and (owners or not owner):
            continue
        if not any(argument in infos[k] for k in owners):
            whom = (
                f"there is no kernel {owner}"
                if owner and not owners
                else f"none of the kernels {', '.join(owners)} has this argument"
            )
            known = list(dict.fromkeys(arg for k in owners for arg in infos[k])) if owners else list(infos)
            help = did_you_mean(argument if owners else owner, known, f"there are {', '.join(known)}")
            problems.append(Diagnostic("spec-unknown-argument", f"--set {name}: {whom}", request.source, help=help))
    if problems:
        raise TranslationError(*problems)
