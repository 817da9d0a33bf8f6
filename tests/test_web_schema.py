"""Whatever the OpenAPI description of `diffuco serve` allows, and much that it does not, is answered as it says."""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode, checks

from diffuco.web.app import create_app
from diffuco.web.limits import Limits
from serving import serving

LIMITS = Limits(max_nodes=40, max_edges=200, max_samples=2, max_step_factor=1, max_sweeps=20, max_seconds=20)
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
ADDRESSES = {
    "GET": ("/api/about", "/api/models", "/healthz", "/metrics"),
    "POST": ("/api/graph", "/api/solve", "/api/solve/stream"),
}


@pytest.fixture(scope="module")
def description(models) -> Iterator["schemathesis.BaseSchema"]:
    app = create_app(LIMITS, models=[str(path) for path in models.values()], device="cpu")
    with serving(app) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


def test_all_addresses_are_described(description):
    described = [(found.ok().method.upper(), found.ok().path) for found in description.get_all_operations()]
    assert sorted(described) == sorted((method, path) for method, paths in ADDRESSES.items() for path in paths)


@pytest.mark.parametrize("path", ADDRESSES["GET"])
def test_what_is_there_is_as_described(description, path):
    description[path]["GET"].Case().call_and_validate(checks=CHECKS)


@pytest.mark.parametrize("path", ADDRESSES["POST"])
def test_a_good_answer_is_as_described(description, path):
    graph = {"kind": "edges", "edges": [[0, 1], [1, 2]], "edge_weights": [1.5, 2.0]}
    options = {} if path == "/api/graph" else {"problem": "max-cut", "samples": 2, "step_factor": 1}
    case = description[path]["POST"].Case(body={"graph": graph} | options, media_type="application/json")
    assert case.call_and_validate(checks=CHECKS).status_code == 200


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("path", ADDRESSES["POST"])
def test_every_answer_is_as_described(description, path, mode):
    @settings(max_examples=25, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=description[path]["POST"].as_strategy(generation_mode=mode))
    def answer(case: "schemathesis.Case") -> None:
        case.call_and_validate(checks=CHECKS, timeout=30)

    answer()
