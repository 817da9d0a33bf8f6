"""`diffuco serve` over HTTP: answers, limits, batches, streams and clients that leave, on a real server."""

import asyncio
import json
import re
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx
import networkx
import numpy as np
import pytest

import diffuco
from diffuco.foundation.extras import install_hint
from diffuco.graphs.formats import TEXT_FORMATS, parse_graph, read_graph, write_graph
from diffuco.graphs.graph import Graph
from diffuco.inference import memory
from diffuco.inference.solver import Solver
from diffuco.methods import ModelMethod
from diffuco.problems import all_problems, get_problem
from diffuco.web.app import create_app
from diffuco.web.events import EventResponse, packed
from diffuco.web.limits import Limits
from diffuco.web.messages import NAMES
from diffuco.web.queue import Job, Options
from serving import serving

STATIC = Path(__file__).parents[1] / "src/diffuco/web/static"
HOUSE = "p edge 5 6\ne 1 2\ne 2 3\ne 3 4\ne 4 1\ne 1 5\ne 2 5\n"
HOUSE_GRAPH = {"kind": "text", "text": HOUSE, "name": "house.clq"}
SMALL = Limits(max_nodes=200, max_edges=2000, max_samples=8, max_waiting=3, max_body_bytes=20_000)


@pytest.fixture(scope="module")
def client(models) -> Iterator[httpx.Client]:
    """A server with small limits, whose default models are tiny."""
    app = create_app(SMALL, models=[str(path) for path in models.values()], device="cpu")
    with serving(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client


@contextmanager
def client_of(models, **limits) -> Iterator[httpx.Client]:
    """A client of a server with limits of its own."""
    app = create_app(Limits(**limits), models=[str(models["mis"])], device="cpu")
    with serving(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client


def solve(client: httpx.Client, problem: str = "mis", graph: dict | None = None, **options) -> httpx.Response:
    return client.post("/api/solve", json={"problem": problem, "graph": graph or HOUSE_GRAPH, **options})


def read_events(response: httpx.Response) -> Iterator[tuple[str, dict]]:
    kind = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize("problem", [problem.name for problem in all_problems()])
def test_answers_are_checked_and_compared_with_greedy(client, problem):
    answer = solve(client, problem, samples=3, seed=1).json()
    graph = parse_graph(HOUSE, "house.clq")
    chosen = np.isin(np.array(graph.labels), answer["solution"])
    verdict = get_problem(problem).check(graph, chosen)
    assert (answer["objective"], answer["feasible"]) == (verdict.objective, True)
    assert len(answer["objectives"]) == 3
    assert answer["greedy"]["feasible"]
    assert answer["greedy"]["comparison"] in ("better", "equal", "worse")
    assert (answer["found_by"], answer["optimal"], answer["bound"]) == (f"{problem}-untrained", False, None)


@pytest.mark.parametrize("problem", [problem.name for problem in all_problems()])
def test_small_graphs_are_proven_unless_told_otherwise(client, problem):
    answer = solve(client, problem, seed=1).json()
    expected = diffuco.solve(parse_graph(HOUSE, "house.clq"), problem, seed=1, device="cpu")
    assert (answer["optimal"], answer["objective"], answer["bound"]) == (True, expected.objective, expected.objective)
    assert (answer["found_by"], answer["reason"]) == (expected.found_by, f"proven optimal by {expected.found_by}")
    assert answer["greedy"]["comparison"] in ("better", "equal")


def test_a_method_or_a_model_may_be_named(client, models):
    answer = solve(client, method="greedy").json()
    assert (answer["found_by"], answer["greedy"]["comparison"], answer["reason"]) == ("greedy", "equal", "")
    assert solve(client, method="rlsa", time_limit_s=0.05).json()["found_by"] == "rlsa"
    for options in ({"model": "mis-rb-small"}, {"model": "mis-rb-small", "method": "diffuco", "samples": 2}):
        answer = solve(client, **options).json()
        assert (answer["found_by"], answer["reason"]) == ("mis-rb-small", "")
        assert len(answer["energies"]) == options.get("samples", 8)
    assert solve(client, method="diffuco").json()["found_by"] == "mis-untrained"
    answer = solve(client, method="diffuco", time_limit_s=0.05).json()
    assert (answer["found_by"], len(answer["energies"])) == ("mis-untrained", 32)


def test_a_model_that_the_server_chooses_says_why(models):
    with client_of(models) as client:  # which has a model of its own for mis alone
        for graph in ({"kind": "ba", "num_nodes": 20}, {"kind": "ba", "num_nodes": 220}):
            answer = solve(client, "max-cut", graph, samples=1).json()
            assert answer["found_by"].startswith("max-cut-")
            assert answer["reason"].startswith("the closest of the")
            body = {"problem": "max-cut", "graph": graph, "samples": 1}
            with client.stream("POST", "/api/solve/stream", json=body) as response:
                (_, start), *_ = read_events(response)
            assert start["model"] == answer["found_by"]


def test_exact_solvers_do_not_outlast_the_server(models):
    with client_of(models, max_seconds=1.0) as client:
        started = time.monotonic()
        answer = solve(client, "max-cut", {"kind": "er", "num_nodes": 300, "edge_probability": 0.5}, method="highs")
        if answer.status_code == 200:
            assert not answer.json()["optimal"]
        else:
            assert answer.status_code == 408
        assert solve(client, method="greedy").status_code in (200, 408)
        _until(lambda: solve(client, method="greedy").status_code == 200)
        assert time.monotonic() - started < 30  # not the minute that it has elsewhere


def test_a_seed_gives_the_answer_of_the_library(client, models):
    (expected,) = Solver("mis", models["mis"], device="cpu").solve([parse_graph(HOUSE, "house.clq")], samples=2, seed=5)
    for _ in range(2):
        answer = solve(client, samples=2, seed=5).json()
        assert answer["solution"] == expected.nodes
        assert (answer["seed"], answer["solved_together"]) == (5, 1)


def test_an_answer_tells_the_seed_that_gives_it_again(client):
    graph = {"kind": "ba", "num_nodes": 100}
    answer = solve(client, samples=2, refine=0, graph=graph).json()
    assert isinstance(answer["seed"], int)
    again = solve(client, samples=2, refine=0, graph=graph, seed=answer["seed"]).json()
    assert (again["solution"], again["energies"]) == (answer["solution"], answer["energies"])


def test_an_answer_is_a_solution_file(client, run, house, tmp_path):
    path = tmp_path / "answer.json"
    path.write_text(solve(client).text)
    assert run("check", "mis", house, path).code == 0


def test_a_stream_tells_all_steps_and_then_the_answer_of_solve(client):
    body = {"problem": "mis", "graph": HOUSE_GRAPH, "samples": 2, "step_factor": 3, "seed": 4}
    with client.stream("POST", "/api/solve/stream", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        (first, start), *steps, (last, answer) = read_events(response)
    assert (first, last, start["num_steps"]) == ("start", "solution", 6)
    assert [(kind, step["index"]) for kind, step in steps] == [("step", index) for index in range(7)]
    assert all(len(step["states"]) == len(step["energies"]) == 2 for _, step in steps)
    expected = solve(client, samples=2, step_factor=3, seed=4).json()
    assert answer["solution"] == expected["solution"]
    assert answer["chosen"] in answer["states"]
    chosen = [index for index, label in enumerate(range(1, 6)) if label in answer["solution"]]
    assert answer["chosen"] == packed(np.isin(np.arange(5), chosen)[:, None])[0]


def test_the_steps_are_those_of_the_library(client, models):
    body = {"problem": "mis", "graph": HOUSE_GRAPH, "samples": 3, "seed": 2}
    with client.stream("POST", "/api/solve/stream", json=body) as response:
        steps = [content for kind, content in read_events(response) if kind == "step"]
    expected = list(Solver("mis", models["mis"], device="cpu").stream(parse_graph(HOUSE, "a.clq"), samples=3, seed=2))
    assert [step["states"] for step in steps] == [packed(step.states) for step in expected]
    np.testing.assert_allclose([step["energies"] for step in steps], [step.energies for step in expected])


def test_a_stream_of_samples_that_do_not_fit_together_is_refused(client, monkeypatch):
    monkeypatch.setattr(memory, "ROWS_AT_ONCE", 10)
    body = {"problem": "mis", "graph": HOUSE_GRAPH, "samples": 3}
    refused = client.post("/api/solve/stream", json=body)
    assert refused.status_code == 422
    assert "3 samples of 5 nodes cannot be watched together; ask for 2" in refused.json()["error"]
    assert client.post("/api/solve", json=body).json()["feasible"]
    assert client.post("/api/solve/stream", json=body | {"samples": 2}).status_code == 200


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "greedy"}, "only models can be watched; leave out the method greedy"),
        ({"time_limit_s": 1}, "a solve with a time limit cannot be watched"),
        ({"model": "none"}, "there is no such model"),
    ],
)
def test_what_cannot_be_watched_is_refused(client, options, reason):
    refused = client.post("/api/solve/stream", json={"problem": "mis", "graph": HOUSE_GRAPH, **options})
    assert refused.status_code == 422
    assert reason in refused.json()["error"]


@pytest.mark.parametrize("known", TEXT_FORMATS, ids=lambda known: known.name)
def test_every_text_format_is_read(client, known, tmp_path):
    nodes, links = [{"id": node} for node in range(3)], [{"source": 0, "target": 1}, {"source": 1, "target": 2}]
    path_graph = networkx.path_graph(3)
    texts = {
        "dgcnn": "1\n3 0\n0 1 1\n0 2 0 2\n0 1 1\n",
        "adjlist": "0 1\n1 2\n",
        "gml": "\n".join(networkx.generate_gml(path_graph)),
        "gexf": "\n".join(networkx.generate_gexf(path_graph)),
        "node-link": json.dumps({"nodes": nodes, "links": links}),
        "graph6": networkx.to_graph6_bytes(path_graph).decode(),
    }
    path = tmp_path / f"path{known.suffixes[0]}"
    if known.write is None:
        path.write_text(texts[known.name])
    else:
        write_graph(Graph.from_edges([(0, 1), (1, 2)]), path)
    shown = client.post("/api/graph", json={"graph": {"kind": "text", "text": path.read_text(), "name": path.name}})
    assert shown.status_code == 200, shown.text
    assert (shown.json()["nodes"], shown.json()["edges"]) == (3, [0, 1, 1, 2])


@pytest.mark.parametrize("name", ["house", "house.data", "house.txt", "house.gr.gz"])
def test_a_named_format_is_taken_whatever_the_name_says(client, name):
    shown = client.post("/api/graph", json={"graph": HOUSE_GRAPH | {"name": name, "format": "dimacs"}})
    assert (shown.status_code, shown.json()["nodes"]) == (200, 5)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"name": "house.data"}, "house.data: the name does not tell the format; choose it from dimacs, pace, metis, "),
        ({"name": ""}, "the name does not tell the format"),
        ({"name": "house.npz"}, "the format npz cannot be given as text; convert the file"),
        ({"format": "npz"}, "no format 'npz'; choose one of dimacs, pace, metis, "),
        ({"format": "xyz"}, "no format 'xyz'; choose one of dimacs, pace, metis, "),
        ({"format": ""}, "no format ''; choose one of dimacs"),
        ({"format": "graphml"}, "house.clq"),
        ({"format": 7}, "graph.text.format: Input should be a valid string"),
    ],
)
def test_formats_that_cannot_be_are_refused(client, source, reason):
    for path, rest in (("/api/graph", {}), ("/api/solve", {"problem": "mis"})):
        response = client.post(path, json={"graph": HOUSE_GRAPH | source, **rest})
        assert response.status_code == 422
        assert reason in response.json()["error"]
        assert "--" not in response.json()["error"]


@pytest.mark.parametrize(
    ("graph", "nodes"),
    [
        ({"kind": "rb", "num_cliques": 4, "clique_size": 3}, 12),
        ({"kind": "ba", "num_nodes": 30, "attachments": 2}, 30),
        ({"kind": "er", "num_nodes": 25}, 25),
        ({"kind": "random-qubo", "num_nodes": 10}, 10),
        ({"kind": "edges", "edges": [[0, 1]], "num_nodes": 3}, 3),
        ({"kind": "edges", "edges": []}, 0),
    ],
)
def test_graphs_are_drawn_the_same_again(client, graph, nodes):
    first, second = (client.post("/api/graph", json={"graph": graph}).json() for _ in range(2))
    assert first == second
    assert first["nodes"] == nodes
    assert solve(client, "qubo", graph).json()["feasible"]


def test_what_is_dropped_is_noted(client):
    graph = {"kind": "edges", "edges": [[0, 1], [1, 0]], "edge_weights": [2, 3]}
    notes = solve(client, "mis", graph).json()["notes"]
    assert notes == ["dropped 1 repeated edge", "graph: mis ignores the edge weights in it"]


def test_node_weights_are_weighed(client):
    graph = {"kind": "edges", "edges": [[0, 1], [1, 2]], "node_weights": [1, 5, 1]}
    answer = solve(client, "mvc", graph).json()
    assert (answer["objective"], answer["greedy"]["objective"], answer["notes"]) == (2, 2, [])


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (
            {"problem": "mds", "graph": {"kind": "edges", "edges": [[0, 1]], "node_weights": [1, -1]}},
            422,
            "node 1 weighs -1; mds takes node weights from 0",
        ),
        (
            {"problem": "tsp", "graph": HOUSE_GRAPH},
            422,
            "problem: unknown problem 'tsp'; choose one of mis, mvc, max-c",
        ),
        ({"problem": "miss", "graph": HOUSE_GRAPH}, 422, "problem: unknown problem 'miss'; did you mean 'mis'?"),
        ({"problem": "mis", "graph": HOUSE_GRAPH, "method": "gredy"}, 422, "did you mean 'greedy'?"),
        ({"problem": "mis", "graph": HOUSE_GRAPH, "method": "sdp"}, 422, "'sdp' does not solve mis"),
        (
            {"problem": "mis", "graph": HOUSE_GRAPH, "method": "greedy", "samples": 2},
            422,
            "samples is for models and excludes the method greedy; give one of the two",
        ),
        (
            {"problem": "mis", "graph": HOUSE_GRAPH, "method": "greedy", "model": "mis-rb-small"},
            422,
            "model is for models and excludes the method greedy",
        ),
        (
            {"problem": "mis", "graph": HOUSE_GRAPH, "samples": 2, "time_limit_s": 1},
            422,
            "a time limit decides on samples",
        ),
        ({"problem": "mis", "graph": HOUSE_GRAPH, "time_limit_s": 61}, 422, "time_limit_s is 61.0; this server allows"),
        ({"problem": "mis", "graph": HOUSE_GRAPH, "time_limit_s": 0}, 422, "time_limit_s: Input should be greater"),
        ({"problem": "mis"}, 422, "graph: Field required"),
        ({"problem": "mis", "graph": HOUSE_GRAPH, "sample": 3}, 422, "sample: Extra inputs are not permitted"),
        ({"problem": "mis", "graph": HOUSE_GRAPH, "samples": 9}, 422, "samples is 9; this server allows at most 8"),
        ({"problem": "mis", "graph": HOUSE_GRAPH, "samples": 0}, 422, "samples: Input should be greater"),
        (
            {"problem": "mis", "graph": HOUSE_GRAPH, "step_factor": 11},
            422,
            "step_factor is 11; this server allows at most 10",
        ),
        (
            {"problem": "mis", "graph": {"kind": "ba", "num_nodes": 201}},
            422,
            "the graph has 201 nodes; this server allows",
        ),
        ({"problem": "mis", "graph": {"kind": "er", "num_nodes": 200, "edge_probability": 1}}, 422, "20000 edges;"),
        ({"problem": "mis", "graph": {"kind": "rb", "num_cliques": 9999, "clique_size": 9999}}, 422, "99980001 nodes"),
        ({"problem": "mis", "graph": {"kind": "edges", "edges": [[0, 10**9]]}}, 422, "1000000001 nodes;"),
        ({"problem": "mis", "graph": {"kind": "text", "text": "a b c d e"}}, 422, "graph.txt"),
        (
            {"problem": "qubo", "graph": {"kind": "edges", "edges": [[0, 1]], "edge_weights": [1e101]}},
            422,
            "edge weight number 0 is 1e+101; scale the weights to at most 1e+100",
        ),
        (
            {"problem": "mis", "graph": {"kind": "edges", "edges": [[0, 1]], "node_weights": [1, 1e31]}},
            422,
            "node 1 weighs 1e+31; mis takes node weights from 0 to 1e+30",
        ),
        (
            {"problem": "mis", "graph": {"kind": "text", "text": "p edge 40000000 0\n", "name": "a.clq"}},
            422,
            "a.clq:1: 40000000 nodes; at most 200 are allowed here; give a smaller graph",
        ),
        ({"problem": "mis", "graph": HOUSE_GRAPH, "model": "mds-untrained"}, 422, "was trained for mds, not mis"),
        ({"problem": "mis", "graph": {"kind": "text", "text": "x" * 30_000}}, 413, "larger than 20000 bytes"),
    ],
)
def test_bad_requests_are_refused_in_one_line(client, body, status, reason):
    response = client.post("/api/solve", json=body)
    assert response.status_code == status
    assert reason in response.json()["error"]
    assert "\n" not in response.json()["error"]


@pytest.mark.parametrize("method", ["auto", "anneal", "diffuco", "bifurcation", "cp-sat"])
@pytest.mark.parametrize(
    ("problem", "weights", "chosen"),
    [
        ("max-cut", {"edge_weights": [1e100, -1e100]}, [[0], [1, 2]]),
        ("qubo", {"edge_weights": [-1e100, 1e99], "node_weights": [3e99, 3e99, 1e99]}, [[0, 1]]),
        ("mis", {"node_weights": [2e29, 5e29, 1e29]}, [[1]]),
    ],
)
def test_large_weights_give_the_right_answer(client, method, problem, weights, chosen):
    graph = {"kind": "edges", "edges": [[0, 1], [1, 2]]} | weights
    answer = client.post("/api/solve", json={"problem": problem, "graph": graph, "method": method}).json()
    assert answer["solution"] in chosen
    assert answer["objective"] == pytest.approx({"max-cut": 1e100, "qubo": -4e99, "mis": 5e29}[problem])


def test_json_has_to_be_sent_as_json(client):
    response = client.post("/api/solve", content=json.dumps({"problem": "mis", "graph": HOUSE_GRAPH}).encode())
    if response.status_code != 200:  # FastAPI before 0.132 reads a body without any type as JSON
        assert "not sent as JSON; add the header Content-Type: application/json" in response.json()["error"]
    form = {"content-type": "application/x-www-form-urlencoded"}
    response = client.post("/api/solve", content=b'{"problem": "mis"}', headers=form)
    assert (response.status_code, "Content-Type: application/json" in response.json()["error"]) == (422, True)


def test_a_body_is_counted_even_if_it_does_not_tell_its_size(client):
    response = client.post(
        "/api/solve", content=(b"x" * 5000 for _ in range(10)), headers={"content-type": "application/json"}
    )
    assert response.status_code == 413


def test_no_request_reaches_the_file_system(client, models, tmp_path):
    (tmp_path / "secret.clq").write_text(HOUSE)
    (tmp_path / "x_A.txt").write_text("1, 2\n")
    (tmp_path / "x_graph_indicator.txt").write_text("1\n1\n")
    for name in (str(tmp_path / "secret.clq"), f"../../{tmp_path}/secret.clq", "-"):
        response = client.post(
            "/api/graph", json={"graph": {"kind": "text", "text": "p edge 2 1\ne 1 2\n", "name": name}}
        )
        assert response.status_code == 422 or response.json()["nodes"] == 2
    collection = {"kind": "text", "text": "1 2\n", "name": str(tmp_path / "x_A.txt")}
    as_edge_list = client.post("/api/graph", json={"graph": collection}).json()
    assert as_edge_list["labels"] == [1, 2]
    for kind in ("tu", "npz"):
        response = client.post("/api/graph", json={"graph": HOUSE_GRAPH | {"format": kind}})
        assert response.status_code == 422
    for name in (str(models["mis"]), "../pretrained/mis-rb-small", "/etc/passwd"):
        assert "no such model" in solve(client, model=name).json()["error"]
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/etc/passwd"):
        assert client.get(path).status_code == 404
    assert str(models["mis"].parent) not in client.get("/api/models").text + solve(client).text


def test_requests_that_wait_together_are_solved_together(models):
    with client_of(models) as client, ThreadPoolExecutor() as pool:
        with _held(client):
            alike = [pool.submit(solve, client, samples=2, graph={"kind": "ba", "num_nodes": n}) for n in (9, 20, 30)]
            other, seeded = pool.submit(solve, client, samples=3), pool.submit(solve, client, samples=2, seed=0)
            _until(lambda: client.get("/healthz").json()["waiting"] == 5)
        answers = [each.result().json() for each in (*alike, other, seeded)]
    assert [answer["solved_together"] for answer in answers] == [3, 3, 3, 1, 1]
    assert [answer["seed"] for answer in answers[:3]] == [None, None, None]
    assert answers[4]["seed"] == 0
    assert all(answer["feasible"] for answer in answers)


def test_too_many_that_wait_are_told_when_to_come_back(models):
    with client_of(models, max_waiting=1) as client, ThreadPoolExecutor() as pool:
        with _held(client):
            waiting = pool.submit(solve, client, samples=1)
            _until(lambda: client.get("/healthz").json()["waiting"] == 1)
            refused = solve(client, samples=1)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert "1 request already waiting" in refused.json()["error"]
        assert waiting.result().status_code == 200


def test_proofs_do_not_wait_for_samples(models):
    """What needs no batch is solved beside the samples of others."""
    with client_of(models) as client, _held(client):
        answers = [solve(client, graph={"kind": "ba", "num_nodes": 40}).json() for _ in range(2)]
        assert [(answer["found_by"], answer["solved_together"]) for answer in answers] == [("cp-sat", 1)] * 2
        assert _metric(client, "diffuco_abandoned_total") == 0


def test_a_stop_answers_whoever_waits_or_is_being_solved(models):
    body = {"problem": "mis", "graph": {"kind": "ba", "num_nodes": 3000}, "samples": 32, "step_factor": 10}
    with ThreadPoolExecutor() as pool, httpx.Client(timeout=60) as client:
        with serving(create_app(models=[str(models["mis"])], device="cpu")) as address:
            pending = [pool.submit(client.post, f"{address}/api/solve", json=body | {"seed": n}) for n in (1, 2)]
            _until(lambda: client.get(f"{address}/healthz").json()["waiting"] == 1)
        for each in pending:
            assert each.result().status_code == 503
            assert each.result().json() == {"error": "the server is stopping; send the request again later"}
            assert int(each.result().headers["retry-after"]) >= 1


def test_every_answer_has_an_id_that_the_log_names(client, caplog):
    with caplog.at_level("INFO", logger="diffuco.web.access"):
        ids = [client.get(path).headers["x-request-id"] for path in ("/healthz", "/api/%0anowhere")]
        _until(lambda: len(caplog.messages) == 2)
    assert len(set(ids)) == 2
    (known, unknown) = caplog.messages
    assert re.fullmatch(rf"{ids[0]} 127\.0\.0\.1 GET /healthz 200 \d+ ms", known)
    assert re.fullmatch(rf"{ids[1]} 127\.0\.0\.1 GET /api/%0anowhere 404 \d+ ms", unknown)


def test_a_failure_of_our_own_is_a_line_with_its_id(client, monkeypatch, caplog):
    monkeypatch.setattr("diffuco.web.app.shown_graph", lambda _: 1 / 0)
    response = client.post("/api/graph", json={"graph": HOUSE_GRAPH})
    assert response.status_code == 500
    assert response.headers["x-request-id"] in response.json()["error"]
    assert "ZeroDivisionError" in caplog.text
    assert f"request {response.headers['x-request-id']} failed" in caplog.text


def test_connections_are_limited_in_number_and_silence(models):
    with client_of(models, max_connections=3, max_header_seconds=0.3) as client:
        address = (client.base_url.host, client.base_url.port)
        silent, slow, late = (socket.create_connection(address) for _ in range(3))
        with silent, slow, late:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Half: ")
            with socket.create_connection(address) as refused:  # the fourth
                assert _ends(refused)
            assert _ends(silent)
            assert _ends(slow)
        assert client.get("/healthz").status_code == 200  # there is room again


def test_a_body_that_trickles_in_is_refused(models):
    head = b"POST /api/graph HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n"
    with client_of(models, max_seconds=0.5) as client:
        address = (client.base_url.host, client.base_url.port)
        with socket.create_connection(address) as connection:
            connection.sendall(head)
            while not select.select([connection], [], [], 0.1)[0]:
                connection.sendall(b" ")  # each part in time, all of them not
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("place", ["text", "problem"])
def test_half_of_a_surrogate_pair_is_refused(client, place):
    body = {"problem": "mis", "graph": {"kind": "text", "text": "a b\n"}}
    (body if place == "problem" else body["graph"])[place] = "a \ud800\n"
    response = client.post("/api/solve", content=json.dumps(body), headers={"content-type": "application/json"})
    assert response.status_code == 422
    assert "character 2 is half of a surrogate pair" in response.json()["error"]


def test_the_api_is_described_for_people(client):
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for path in client.get("/openapi.json").json()["paths"]:
        assert f"{path}</code></h2>" in page.text
    assert "<code>edge_weights</code>" in page.text  # also what a nested choice takes
    assert not re.search(r"(src|href)=.https?:", page.text)


def test_clients_that_leave_free_their_work(models):
    with client_of(models) as client:
        body = {"problem": "mis", "graph": {"kind": "ba", "num_nodes": 3000}, "samples": 32, "step_factor": 10}
        with client.stream("POST", "/api/solve/stream", json=body) as response:
            kinds = [kind for kind, _ in zip((kind for kind, _ in read_events(response)), range(3), strict=False)]
            assert kinds == ["start", "step", "step"]
            with pytest.raises(httpx.ReadTimeout):  # waits for its turn, then goes
                client.post("/api/solve", json=body, timeout=0.3)
        _until(lambda: _metric(client, "diffuco_abandoned_total") == 2)
        assert solve(client).status_code == 200
        assert _metric(client, "diffuco_waiting") == 0


@pytest.mark.parametrize("method", ["anneal", "rlsa", "numvc"])
def test_searches_of_clients_that_left_end_soon(models, method):
    with client_of(models) as client:
        graph = {"kind": "er", "num_nodes": 200, "edge_probability": 0.5}
        body = {"problem": "mis", "graph": graph, "method": method, "time_limit_s": 30}
        with ThreadPoolExecutor(2) as clients:
            for left in [clients.submit(client.post, "/api/solve", json=body, timeout=0.5) for _ in range(2)]:
                with pytest.raises(httpx.ReadTimeout):
                    left.result()
        started = time.monotonic()
        assert solve(client).status_code == 200
        assert client.get("/healthz").json()["running"] <= 2
        assert time.monotonic() - started < 10


def test_time_is_limited(models):
    with client_of(models, max_seconds=0.5) as client:
        body = {"problem": "mis", "graph": {"kind": "ba", "num_nodes": 3000}, "samples": 32, "step_factor": 10}
        response = client.post("/api/solve", json=body)
        assert response.status_code == 408
        assert "not solved within 0.5 s" in response.json()["error"]
        with client.stream("POST", "/api/solve/stream", json=body) as response:
            kind, content = list(read_events(response))[-1]
        assert kind == "error"
        assert "not solved within 0.5 s" in content["error"]


def test_examples_of_the_documentation(client):
    page = (Path(__file__).parents[1] / "docs/serving.md").read_text()
    examples = re.findall(r"localhost:8000(\S+) --json '(.*)'", page)
    assert [path for path, _ in examples] == ["/api/solve", "/api/solve/stream"]
    for path, body in examples:
        response = client.post(path, json=json.loads(body))
        assert response.status_code == 200, response.text
        assert '"feasible"' in response.text


def test_what_there_is(client):
    about = client.get("/api/about").json()
    assert about["limits"]["max_nodes"] == 200
    assert list(about["formats"]) == [known.name for known in TEXT_FORMATS]
    assert ".clq" in about["formats"]["dimacs"]["suffixes"]
    assert "p edge N M" in about["formats"]["dimacs"]["description"]
    names = {card["name"] for card in client.get("/api/models").json()["models"]}
    assert {"mis-untrained", "mis-rb-small"} <= names
    assert client.get("/healthz").json()["status"] == "ok"
    solve(client)
    assert _metric(client, 'diffuco_solved_total{problem="mis"}') > 0
    assert _metric(client, "process_resident_memory_bytes") > 0


def test_the_page_asks_nobody_else(client):
    page = client.get("/")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    texts = [page.text] + [client.get(path).text for path in _static_paths()]
    assert not [text for text in texts if "https://" in text]
    assert all(client.get(path).status_code == 200 for path in _static_paths())


def test_all_problems_are_served():
    names = [problem.name for problem in all_problems()]
    assert names == NAMES
    described = create_app(device="cpu").openapi()["components"]["schemas"]["SolveRequest"]["properties"]["problem"]
    assert described["enum"] == names
    page = (STATIC / "problems.js").read_text()
    assert re.findall(r'^  "?([\w-]+)"?: \{$', page, re.MULTILINE) == names


def test_a_port_that_is_taken_is_told(run, client):
    outcome = run("serve", "--port", client.base_url.port)
    assert outcome.code == 2
    assert "cannot listen on 127.0.0.1" in outcome.errors[0]


def test_missing_packages_are_named(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    monkeypatch.delitem(__import__("sys").modules, "diffuco.web.server", raising=False)
    outcome = run("serve")
    assert (outcome.code, outcome.errors) == (2, [f"error: serving needs uvicorn; {install_hint('serve')}"])


def test_a_text_is_read_like_a_file(house):
    from_text, from_file = parse_graph(house.read_text(), "house.clq"), read_graph(house)
    assert from_text.digest == from_file.digest
    assert (from_text.name, from_text.labels) == (from_file.name, from_file.labels)


def _static_paths() -> list[str]:
    return [f"/static/{path.name}" for path in STATIC.iterdir() if path.name != "index.html"]


@contextmanager
def _held(client: httpx.Client) -> Iterator[None]:
    """The device busy with a stream for a while."""
    body = {"problem": "mis", "graph": {"kind": "ba", "num_nodes": 2000}, "samples": 16, "step_factor": 10}
    with client.stream("POST", "/api/solve/stream", json=body) as response:
        events = read_events(response)
        assert [next(events)[0], next(events)[0]] == ["start", "step"]
        yield


def _ends(connection: socket.socket) -> bool:
    """Whether the server closes the connection without an answer."""
    connection.settimeout(10)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def _metric(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def _until(condition, timeout_s: float = 20.0) -> None:
    ends = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.01)


def test_events_end_when_a_client_leaves_while_one_is_being_sent():
    is_ended, abandoned = [], []
    job = Job(parse_graph(HOUSE, "a.clq"), Options(get_problem("mis"), ModelMethod()))

    async def events():
        try:
            yield "one"
        finally:
            is_ended.append(True)

    async def leave():
        await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()  # nobody reads

    async def serve():
        await response({"type": "http"}, leave, send)
        return list(is_ended)  # now, as the end of a loop ends all generators

    response = EventResponse(events(), job, SimpleNamespace(abandon=abandoned.append))
    assert asyncio.run(serve()) == [True]
    assert abandoned == [job]


def test_only_known_hosts_are_answered_where_they_are_given(models):
    app = create_app(Limits(), models=[str(models["mis"])], device="cpu", hosts=("127.0.0.1", "localhost", "::1"))
    with serving(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        assert client.get("/api/about").status_code == 200
        for named in ("localhost:80", "LOCALHOST", "[::1]:9"):
            assert client.get("/api/about", headers={"host": named}).status_code == 200
        for named in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "["):
            refused = client.get("/api/about", headers={"host": named})
            assert refused.status_code == 421
            assert "answers to 127.0.0.1, localhost, ::1 only" in refused.json()["error"]


def test_no_other_page_may_frame_the_page(client):
    assert "frame-ancestors 'none'" in client.get("/").headers["content-security-policy"]
