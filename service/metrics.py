"""What Prometheus may scrape: the sandboxes of the workers, and what waits for them."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.dispatch.base import Dispatcher

_COUNTS = {
    "started": "Sandboxes started.",
    "jobs": "Jobs run in sandboxes.",
    "recycled": "Sandboxes replaced after their number of jobs, or since they had grown.",
    "lost": "Sandboxes that died or stopped making sense.",
    "doubted": "Sandboxes replaced because a job got past a bound.",
}


class Metrics:
    """The metrics of one gateway; their values are read when they are asked for."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_DispatcherCollector(dispatcher))

    def text(self) -> bytes:
        """Return all of them in Prometheus's text format."""
        return generate_latest(self._registry)


class _DispatcherCollector(Collector):
    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def collect(self) -> Iterable[Metric]:
        """Yield the dispatcher's state."""
        states = self._dispatcher.pool()
        warm = GaugeMetricFamily("assay_sandboxes_warm", "Sandboxes there now, spares among them.", labels=["profile"])
        for state in states:
            warm.add_metric([state.profile], state.warm)
        yield warm
        for name, meaning in _COUNTS.items():
            counted = CounterMetricFamily(f"assay_sandboxes_{name}", meaning, labels=["profile"])
            for state in states:
                counted.add_metric([state.profile], getattr(state, name))
            yield counted
        waiting = self._dispatcher.waiting_tasks
        yield GaugeMetricFamily("assay_queue_tasks", "Tasks that no worker has yet.", value=waiting)
        ready = float(self._dispatcher.ready)
        yield GaugeMetricFamily("assay_ready", "1 when a task submitted now would be started.", value=ready)
