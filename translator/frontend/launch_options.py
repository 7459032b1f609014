"""Launch options that cannot be translated for: clusters of workgroups, and what Triton's AMD backend does not take."""

from __future__ import annotations

from triton.compiler.compiler import make_backend

from translator.diagnostics import Diagnostic, TranslationError
from translator.frontend.offline import offline_target
from translator.source.launch_spec import LaunchSpec
from translator.source.load import LoadedKernel


def check_options(loaded: LoadedKernel, spec: LaunchSpec, target: str) -> None:
    """Raises: TranslationError `clusters` for more than one workgroup per program, `launch-option` for what Triton refuses;
    both at the kernel."""
    place = loaded.path, loaded.line, 1
    count = spec.options.get("num_ctas", 1)
    if isinstance(count, int) and count > 1:
        raise TranslationError(
            Diagnostic(
                "clusters",
                f"num_ctas={count}: a program of several workgroups",
                *place,
                "the layouts and copies that are written are those of one workgroup",
                "launch with num_ctas=1",
            )
        )
    with offline_target(target) as gpu:
        try:
            make_backend(gpu).parse_options(dict(spec.options))
        except (ValueError, AssertionError, TypeError) as error:
            message = f"Triton does not take these launch options for {target}"
            raise TranslationError(Diagnostic("launch-option", message, *place, str(error))) from error
