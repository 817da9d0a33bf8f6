"""What the server counts, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60)


class Metrics:
    """The counters of one server. Each server has its own registry, so that several can run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        counter, histogram = self._counter, self._histogram
        self.requests = counter("diffuco_requests", "Requests answered.", "path", "status")
        self.solved = counter("diffuco_solved", "Graphs solved.", "problem")
        self.abandoned = counter("diffuco_abandoned", "Requests whose client left or whose time ran out.")
        self.batch_graphs = histogram("diffuco_batch_graphs", "Graphs solved together.", (1, 2, 4, 8, 16, 32, 64, 128))
        self.waiting_seconds = histogram(
            "diffuco_waiting_seconds", "Seconds from the arrival of a request to its turn on the device.", SECONDS
        )
        self.device_seconds = histogram("diffuco_device_seconds", "Seconds of the device per batch.", SECONDS)
        self.waiting = Gauge("diffuco_waiting", "Requests waiting for the device.", registry=self.registry)

    def text(self) -> bytes:
        """All counters in the format that Prometheus reads."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)
