"""What a request may ask for; beyond that it is refused before any work."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Of one server, for all its clients."""

    max_nodes: int = 5_000
    max_edges: int = 250_000
    max_samples: int = 32
    max_step_factor: int = 10
    max_sweeps: int = 2_000
    """Sweeps that refine each sample."""
    max_waiting: int = 256
    """Requests that wait for the device; more are told to come back later."""
    max_body_bytes: int = 8 * 2**20
    max_seconds: float = 60.0
    """From the arrival of a request to its answer, and for its body to arrive."""


class RefusalError(Exception):
    """A request that is not served, with the HTTP status that says why."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers or {}


def too_slow(max_seconds: float) -> RefusalError:
    """The refusal of a request whose time is over."""
    reason = f"not solved within {max_seconds:g} s; ask for fewer samples or a smaller graph, or come back later"
    return RefusalError(408, reason)
