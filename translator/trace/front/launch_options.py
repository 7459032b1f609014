"""Launch options that cannot be translated for: clusters where there are none, and what Triton's AMD backend does not take."""

from __future__ import annotations

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import TARGETS
from gluonize.rules.targets import target as target_row
from gluonize.trace.front.offline import offline_target
from gluonize.triton_api.backend import make_backend
from gluonize.triton_api.differences import shares_out_clusters, with_numerics


def check_options(loaded: LoadedKernel, spec: LaunchSpec, target: str) -> None:
    """Raises: TranslationError `clusters` for more workgroups per program than the target has in a cluster, `launch-option` for
    what Triton refuses; both at the kernel."""
    place = loaded.path, loaded.line, 1
    count = spec.options.get("num_ctas", 1)
    most = target_row(target).cluster_ctas
    if isinstance(count, int) and count > most:
        able = ", ".join(f"{row.name} (at most {row.cluster_ctas})" for row in TARGETS.values() if row.cluster_ctas > 1)
        why = f"a cluster of {target} has at most {most}" if most > 1 else f"{target} has no clusters of workgroups"
        raise TranslationError(
            Diagnostic(
                "clusters",
                f"num_ctas={count}: a program of several workgroups",
                *place,
                why,
                (
                    f"launch with num_ctas={most}"
                    if most > 1
                    else f"launch with num_ctas=1; targets with clusters: {able}"
                ),
            )
        )
    if isinstance(count, int) and count > 1 and not shares_out_clusters():
        message, why = (
            f"num_ctas={count}: a program of several workgroups",
            "this Triton does not share tensors out among them",
        )
        raise TranslationError(
            Diagnostic("clusters", message, *place, why, "use Triton 3.9, or launch with num_ctas=1")
        )
    with offline_target(target) as gpu:
        try:
            make_backend(gpu).parse_options(with_numerics(spec.options))
        except (ValueError, AssertionError, TypeError) as error:
            message = f"Triton does not take these launch options for {target}"
            raise TranslationError(Diagnostic("launch-option", message, *place, str(error))) from error
