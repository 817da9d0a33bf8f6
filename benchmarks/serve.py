"""`diffuco serve` under load on this machine: many clients at once compared with one client at a time.

    python benchmarks/serve.py --clients 200 --seconds 60 --json serve.json
    python benchmarks/serve.py --clients 50 --seconds 20 --samples 0 --nodes 60 60 --edges 0.13

Every client sends small random graphs over its own connection, the next one after the answer to the last. Each answer
is checked against the graph that was sent. A status of 429 is deliberate; the client then waits as long as the server
asks. The memory of the server is read every second. A batch saves the cost of a step that does not depend on the
graphs, so the gain falls as nodes times samples grow: try `--nodes` and `--samples`.
"""

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from evidence import Record, add_options, measured_limits, require_green, write_record
from rich.console import Console
from rich.table import Table

from diffuco.foundation.provenance import hardware
from diffuco.graphs.generate import er_graph
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem

TESTS = ("tests/test_web_api.py",)
NUM_GRAPHS = 256


@dataclass
class Outcome:
    """Outcome of the requests of one phase."""

    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    together: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Answers that are infeasible or have a wrong objective, and connections that broke."""
    memory_mib: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def record(self, clients: int) -> Record:
        """The numbers of the phase."""
        ordered = sorted(self.latencies)
        later = self.memory_mib[len(self.memory_mib) // 4 :]  # by then, every shape of batch has occurred
        half = len(later) // 2
        return {
            "clients": clients,
            "seconds": self.seconds,
            "answers": self.statuses[200],
            "answers_per_s": self.statuses[200] / self.seconds,
            "refused_429": self.statuses[429],
            "other_statuses": sum(n for status, n in self.statuses.items() if status not in (200, 429)),
            "wrong": len(self.wrong),
            "mean_batch": statistics.mean(self.together),
            **{f"p{p}_s": ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 95, 99)},
            "memory_mib_first": self.memory_mib[0],
            "memory_mib_last": self.memory_mib[-1],
            "memory_mib_growth": statistics.mean(later[half:]) - statistics.mean(later[:half]) if half else 0.0,
        }


def main() -> None:
    """Measure, print a table, and write JSON if a path is given; end with an error if anything but a 429 went wrong."""
    arguments = _arguments()
    device = torch.device("cpu")
    tests = require_green(TESTS, skip=arguments.skip_tests)
    graphs = _graphs(*arguments.nodes, arguments.edges)
    options: Record = {"problem": arguments.problem}
    if arguments.samples:
        options |= {"samples": arguments.samples, "step_factor": arguments.step_factor}
    records: list[Record] = []
    with server() as port:
        asyncio.run(phase(port, graphs, options, clients=8, seconds=arguments.warm_up_seconds))
        for clients, seconds in ((1, arguments.single_seconds), (arguments.clients, arguments.seconds)):
            outcome = asyncio.run(phase(port, graphs, options, clients=clients, seconds=seconds))
            records.append(outcome.record(clients))
            for complaint in outcome.wrong[:5]:
                print(complaint, file=sys.stderr)
    records[-1]["gain"] = records[-1]["answers_per_s"] / records[0]["answers_per_s"]
    _print(records, device)
    write_record(arguments, device, tests, measured_limits(device), records)
    if any(record["wrong"] or record["other_statuses"] for record in records):
        raise SystemExit("some requests were not answered correctly")


@contextmanager
def server() -> Iterator[int]:
    """`diffuco serve` on a free port of this machine."""
    command = [sys.executable, "-m", "diffuco", "serve", "--port", "0", "--device", "cpu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            if found is None:
                raise SystemExit("the server did not start")
            yield int(found[1])
        finally:
            process.terminate()


async def phase(port: int, graphs: list[Graph], options: Record, *, clients: int, seconds: float) -> Outcome:
    """Let `clients` clients send requests for `seconds` seconds."""
    outcome, started = Outcome(), time.perf_counter()
    memory = asyncio.create_task(_watch_memory(port, outcome))
    ends = started + seconds
    await asyncio.gather(*(_client(port, graphs, options, index, ends, outcome) for index in range(clients)))
    outcome.seconds = time.perf_counter() - started
    memory.cancel()
    return outcome


async def _client(port: int, graphs: list[Graph], options: Record, first: int, ends: float, outcome: Outcome) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    position = first
    while time.perf_counter() < ends:
        graph = graphs[position % len(graphs)]
        position += 1
        body = options | {"graph": {"kind": "edges", "edges": graph.edges.tolist(), "num_nodes": graph.num_nodes}}
        sent = time.perf_counter()
        try:
            status, headers, content = await _exchange(reader, writer, "POST", "/api/solve", json.dumps(body))
        except (OSError, asyncio.IncompleteReadError) as error:
            outcome.wrong.append(f"a connection broke: {error!r}")
            return
        outcome.statuses[status] += 1
        if status == 200:
            outcome.latencies.append(time.perf_counter() - sent)
            answer = json.loads(content)
            outcome.together.append(answer["solved_together"])
            outcome.wrong += _complaints(options["problem"], graph, answer)
        elif status == 429:
            await asyncio.sleep(float(headers["retry-after"]))
        else:
            outcome.wrong.append(f"{status}: {content.decode()}")
    writer.close()


def _complaints(problem: str, graph: Graph, answer: dict[str, Any]) -> list[str]:
    chosen = np.zeros(graph.num_nodes, dtype=np.bool_)
    chosen[answer["solution"]] = True
    verdict = get_problem(problem).check(graph, chosen)
    if verdict.feasible and answer["feasible"] and verdict.objective == answer["objective"]:
        return []
    return [f"objective {answer['objective']} is {verdict.objective} with {verdict.violations} violations"]


async def _watch_memory(port: int, outcome: Outcome) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        _, _, content = await _exchange(reader, writer, "GET", "/metrics")
        found = re.search(rb"^process_resident_memory_bytes (\S+)$", content, re.MULTILINE)
        assert found is not None
        outcome.memory_mib.append(float(found[1]) / 2**20)
        await asyncio.sleep(1)


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, body: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """One request on an open connection; a library's client would take more processor time than the server."""
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}\r\n{body}".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


def _graphs(fewest: int, most: int, probability: float) -> list[Graph]:
    rng = np.random.default_rng(0)
    return [er_graph(int(rng.integers(fewest, most + 1)), probability, rng) for _ in range(NUM_GRAPHS)]


def _print(records: list[Record], device: torch.device) -> None:
    table = Table("", *(f"{record['clients']} clients" for record in records), title=hardware(device))
    for name in records[0]:
        table.add_row(name, *(f"{record[name]:.4g}" for record in records))
    Console(width=120).print(table)
    print(f"{records[-1]['gain']:.1f} times the throughput of one client at a time")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--single-seconds", type=float, default=20, help="duration with one client")
    parser.add_argument("--warm-up-seconds", type=float, default=5)
    parser.add_argument("--problem", default="mis")
    parser.add_argument("--nodes", type=int, nargs=2, default=(12, 24), metavar=("FEWEST", "MOST"))
    parser.add_argument("--edges", type=float, default=0.2, metavar="PROBABILITY", help="of every edge")
    parser.add_argument("--samples", type=int, default=2, help="0: the method auto instead of samples")
    parser.add_argument("--step-factor", type=int, default=3)
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
