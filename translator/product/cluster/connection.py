"""The line to a Dask scheduler: opened when first needed, opened again when it is lost, within limits."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from typing import Any

from gluonize.diagnostics import ClusterLost, Diagnostic, TranslationError

PATIENCE_SECONDS = 120.0  # for a scheduler that is being restarted; GLUONIZE_CLUSTER_PATIENCE
_TRY_SECONDS = 5.0
log = logging.getLogger("gluonize")


class Lost(Exception):
    """A job's answer will not come: its workers died, or the scheduler forgot it."""


def check_address(address: str) -> None:
    """Refuse an address that cannot be one, a cluster without Dask, and a patience that is none.

    Raises: TranslationError `cluster-address`, `cluster-patience`.
    """
    kind, _, rest = address.partition(":")
    local = kind == "local" and rest.isdigit() and int(rest) > 0
    if not local and "://" not in address:
        help = "tcp://HOST:8786 of a scheduler, or local:N for N workers on this machine"
        raise TranslationError(Diagnostic("cluster-address", f"--cluster {address}: no address", help=help))
    import importlib.util

    if importlib.util.find_spec("distributed") is None:
        help = "pip install 'gluonize[cluster]'"
        raise TranslationError(Diagnostic("cluster-address", f"--cluster {address} needs Dask", help=help))
    patience()


def patience() -> float:
    """Seconds for which a scheduler may not answer. Raises: TranslationError `cluster-patience` where the variable has no number."""
    given = os.environ.get("GLUONIZE_CLUSTER_PATIENCE") or str(PATIENCE_SECONDS)
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        message = f"GLUONIZE_CLUSTER_PATIENCE={given}: no number of seconds"
        help = f"the time that a scheduler may take to come back, such as {PATIENCE_SECONDS:.0f}"
        raise TranslationError(Diagnostic("cluster-patience", message, help=help))
    return seconds


class Connection:
    """A Dask client for one address, shared by the threads of a pool."""

    def __init__(self, address: str):
        self.address = address
        self.patience = patience()
        self._client: Any = None
        self._cluster: Any = None
        self._lock = threading.Lock()
        self._closed = False
        self._gone: ClusterLost | None = None
        self._under_way: dict[str, str] = {}  # Dask's key of a job -> what it is

    def run(self, payload: bytes, what: str) -> bytes:
        """Run a pickled job on some worker. Raises: Lost when it has to be sent again, ClusterLost when that is in vain.

        A job whose worker ends is given to another one by Dask, which we only tell.
        """
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        from gluonize.product.cluster.worker_side import run_job

        client, key = self.client(), f"gluonize-{uuid.uuid4().hex}"
        self._under_way[key] = what
        try:
            future = client.submit(run_job, payload, key=key, pure=False)
            try:
                return future.result()
            finally:
                future.release()
        except KilledWorker as error:
            raise Lost(f"workers died: {error.last_worker.address}") from None
        except (ImportError, AttributeError) as error:
            message = f"a worker of {self.address} cannot run gluonize"
            help = "install the same gluonize, Triton and Python there, and restart the worker"
            raise ClusterLost(Diagnostic("cluster-version", message, why=str(error), help=help)) from None
        except (CancelledError, CommClosedError, OSError, TimeoutError, RuntimeError) as error:
            # A client that lost its scheduler cancels everything and raises one of these, whatever it was doing.
            raise Lost(f"the line to the scheduler broke ({type(error).__name__})") from None
        finally:
            del self._under_way[key]

    def _heard(self, event: tuple[float, Any]) -> None:
        """Tell of a worker that ended; jobs of ours that it had are with another one by now, or wait for one."""
        _, message = event
        if isinstance(message, dict) and message.get("action") == "remove-worker":
            under_way = dict(self._under_way)
            ours = sorted(under_way[key] for key in message.get("processing-tasks", ()) if key in under_way)
            for what in ours:
                log.warning("%s: its worker %s ended: sent again", what, message.get("worker"))
            if not ours:
                log.info("worker %s ended", message.get("worker"))

    def client(self) -> Any:
        """The client, connected. Raises: ClusterLost when no scheduler answers within the patience."""
        with self._lock:
            if self._gone is not None:
                raise self._gone
            if self._closed:
                raise Lost("the pool is closed")
            if self._client is None or self._client.status != "running":
                self._client = self._connected()
            return self._client

    def threads(self) -> int:
        """Threads of all workers that are there now."""
        try:
            return sum(self.client().nthreads().values())
        except (OSError, TimeoutError, ValueError, RuntimeError):  # lost meanwhile
            return 0

    def close(self) -> None:
        """Give up what runs and disconnect; a cluster of our own ends."""
        self._closed = True
        with self._lock:
            for part in (self._client, self._cluster):
                if part is not None:
                    _close(part)
            self._client = self._cluster = None

    def _connected(self) -> Any:
        import distributed

        _keep_dask_quiet()
        again = self._client is not None
        if again:
            _close(self._client)
        where = self.address if not self.address.startswith("local:") else self._local().scheduler_address
        deadline, told = time.monotonic() + self.patience, 0.0
        while not self._closed:
            try:
                client = distributed.Client(where, timeout=_TRY_SECONDS, set_as_default=False)
            except (OSError, TimeoutError) as error:
                if time.monotonic() > deadline:
                    self._gone = ClusterLost(_lost(self.address, error))
                    raise self._gone from None
                if time.monotonic() > told + 10:
                    told = time.monotonic()
                    log.warning("no scheduler answers at %s: waiting for it", self.address)
                time.sleep(0.5)
                continue
            client.subscribe_topic("all", self._heard)
            log.info(
                "%s to %s, dashboard %s", "connected again" if again else "connected", where, client.dashboard_link
            )
            return client
        raise Lost("the pool is closed")

    def _local(self) -> Any:
        import distributed

        if self._cluster is None:
            self._cluster = distributed.LocalCluster(
                n_workers=int(self.address.partition(":")[2]), threads_per_worker=1, processes=True,
                dashboard_address=":0", silence_logs=logging.ERROR,
            )  # fmt: skip
        return self._cluster


def _close(part: Any) -> None:
    try:
        part.close(timeout=2)
    except (OSError, TimeoutError, RuntimeError) as error:
        log.info("closing the line to the cluster: %s", error)


def _lost(address: str, error: Exception) -> Diagnostic:
    message = f"the scheduler at {address} does not answer"
    help = "start it again and give the same command: what was done is in the cache"
    return Diagnostic("cluster-lost", message, why=str(error), help=help)


def _keep_dask_quiet() -> None:
    """Dask tells of every worker that comes and goes; what matters of that is told by us."""
    import dask

    dask.config.set({"distributed.comm.timeouts.connect": f"{_TRY_SECONDS}s"})
    for name in (
        "distributed",
        "distributed.client",
        "distributed.core",
        "distributed.comm.tcp",
        "distributed.batched",
    ):
        logging.getLogger(name).setLevel(logging.CRITICAL)
