"""What a request may ask for. Anything beyond is refused before any work."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of one server, for all its clients."""

    max_nodes: int = 50_000
    max_edges: int = 250_000
    max_samples: int = 32
    max_step_factor: int = 10
    max_sweeps: int = 2_000
    """Most sweeps that refine each sample."""
    max_waiting: int = 256
    """Most requests that may wait for the device; further ones are told to come back later."""
    max_body_bytes: int = 8 * 2**20
    max_seconds: float = 60.0
    """Most seconds from the arrival of a request to its answer; also the limit for its body to arrive."""
    max_connections: int = 1_000
    """Most open connections; further ones are closed at once."""
    max_header_seconds: float = 20.0
    """Most seconds that the headers of a request may take. Waiting for the next request counts too."""


class RefusalError(Exception):
    """A refused request, with the HTTP status that says why."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers or {}


def stopping() -> RefusalError:
    """The refusal of a server that is being stopped."""
    return RefusalError(503, "the server is stopping; send the request again later", {"Retry-After": "10"})


def too_slow(max_seconds: float) -> RefusalError:
    """The refusal of a request whose time has run out."""
    reason = f"not solved within {max_seconds:g} s; ask for fewer samples or a smaller graph, or come back later"
    return RefusalError(408, reason)
