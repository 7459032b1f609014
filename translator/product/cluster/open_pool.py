"""The pool that a command runs its jobs in: child processes here, or those of a cluster, behind the cache."""

from __future__ import annotations

from gluonize.judge.lower.children.worker import WorkerPool, job_count
from gluonize.product.project.cache.kept_jobs import KeptJobs, Pool
from gluonize.product.project.cache.results import ContentCache


def open_pool(jobs: int, timeout: float, cached: bool = True, cluster: str | None = None) -> KeptJobs:
    """`jobs` child processes (0: one per core), or jobs under way on a cluster (0: what its workers need).

    timeout: seconds of CPU time for a job. cached: keep and use answers.
    Raises: TranslationError `cluster-address`, `cluster-patience`; a scheduler that does not answer is told when the first job is sent.
    """
    pool: Pool
    if cluster:
        from gluonize.product.cluster.connection import check_address
        from gluonize.product.cluster.pool import ClusterPool

        check_address(cluster)
        pool = ClusterPool(cluster, jobs, timeout=timeout)
    else:
        pool = WorkerPool(job_count(jobs), timeout=timeout)
    return KeptJobs(pool, ContentCache.of_user(cached))
