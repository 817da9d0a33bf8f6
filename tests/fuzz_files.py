"""Mutated graph files of every format: each is read or refused in one line; nothing else may happen.

    python tests/fuzz_files.py --seconds 300 --seed 1

A file that causes another exception, takes longer than `SLOW_S`, or is read as a graph that breaks its own rules is
kept in the folder `build/fuzz`. What is read is also written and read again, which must give the same graph. The last
line of the output is a count as JSON. `tests/test_fuzz.py` runs a few files.
"""

import argparse
import bz2
import gzip
import json
import lzma
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import networkx
import numpy as np

from diffuco.foundation.errors import GraphWarning, InputError
from diffuco.graphs.formats import FORMATS, read_graphs, write_graph
from diffuco.graphs.graph import Graph

KEPT = Path(__file__).parents[1] / "build/fuzz"
SLOW_S = 20
MAX_GIB = 16
COMPRESSORS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
TOKENS = [
    *("0", "1", "-1", "2", "3", "00", "1.5", "-0", "1e308", "-1e309", "nan", "inf", "1e-320", "0x10", "1_000", "+7"),
    *("2147483647", "2147483648", "4294967296", "9223372036854775808", "99999999999999999999", "1" * 5000),
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r\n",
        "\0",
        "\ufeff",
        "é",
        "\u2028",
        "a",
        "e",
        "p",
        "n",
        "%",
        "#",
        "%%",
        '"',
        "'",
        ",",
        ";",
    ),
    *(
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        "<!DOCTYPE x>",
        "&amp;",
        "&x;",
        "]]>",
        "null",
        "true",
        "{}",
        "[" * 2000,
        "(" * 2000,
    ),
]


def seed_files(folder: Path) -> list[tuple[str, bytes]]:
    """Names and contents of valid files of all formats, with and without weights."""
    plain = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4)], num_nodes=6)
    weighted = Graph.from_edges(
        [(0, 1), (1, 2), (2, 3)], edge_weights=[0.5, -2.0, 3e10], node_weights=[1.0, 2.5, 0.0, 7.0], labels=list("abcd")
    )
    graphs, found = {"plain": plain, "weighted": weighted}, []
    for known in FORMATS:
        for kind, graph in graphs.items():
            path = folder / f"{kind}{known.suffixes[0]}"
            if known.write is None:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", GraphWarning)
                    write_graph(graph, path, known)
            except InputError:  # such as negative weights in a format without them
                continue
            found.append((path.name, path.read_bytes()))
    cycle = networkx.cycle_graph(5)
    networkx.set_edge_attributes(cycle, 2.5, "weight")
    found += [(f"cycle.{kind}", "\n".join(make(cycle)).encode()) for kind, make in _NETWORKX.items()]
    found += [
        ("cycle.g6", networkx.to_graph6_bytes(cycle)),
        ("link.json", json.dumps(networkx.node_link_data(cycle, edges="links")).encode()),
        ("pandas.csv", b",source,target,weight\n0,Ann,Bob,1.5\n1,Bob,Cid,2\n"),
        ("half.csv", b"a;b\n1;2\n2;3\n"),
        ("two.dgcnn.txt", b"2\n1 0\n0 0\n2 0\n0 1 1\n0 1 0\n"),
        ("rudy.txt", b"3 2\n1 2 5\n2 3 -1\n"),
        ("adjacency.adjlist", b"# a\n0 1 2\n1 2\n"),
    ]
    return found


_NETWORKX = {"gml": networkx.generate_gml, "gexf": networkx.generate_gexf, "graphml": networkx.generate_graphml}


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content after some random changes."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((1, 1, 2, 4, 16, 64)))
        change = rng.randrange(9)
        if change == 0 and data:
            data[min(start, len(data) - 1)] ^= 1 << rng.randrange(8)
        elif change == 1:
            del data[start:end]
        elif change == 2:
            data[start:start] = data[start:end] * rng.choice((1, 2, 50))
        elif change == 3:
            data[start:end] = rng.choice(TOKENS).encode()
        elif change == 4:
            data[start:start] = rng.randbytes(rng.choice((1, 2, 9)))
        elif change == 5:
            del data[start:]
        else:
            data = _change_words(data, change, rng)
    return bytes(data)


def _change_words(data: bytearray, change: int, rng: random.Random) -> bytearray:
    """Replace a word, swap two lines, or repeat a line."""
    separator = b" " if change == 6 else b"\n"
    parts = bytes(data).split(separator)
    first, second = rng.randrange(len(parts)), rng.randrange(len(parts))
    if change == 6:
        parts[first] = rng.choice(TOKENS).encode()
    elif change == 7:
        parts[first], parts[second] = parts[second], parts[first]
    else:
        parts.insert(first, parts[second])
    return bytearray(separator.join(parts))


def complaint(path: Path) -> str:
    """What is wrong with how a file is treated; `read` or `refused` if nothing is."""
    content = path.read_bytes()
    try:
        with _time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graphs = read_graphs(path)
            for graph in graphs[:3]:
                _check(graph, path)
    except InputError as error:
        text = str(error)
        return "refused" if text and "\n" not in text.strip() else f"several lines: {text!r}"
    except (Exception, _TooSlowError) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "read" if path.read_bytes() == content else "the file was changed"


def _check(graph: Graph, path: Path) -> None:
    """The rules of a graph, and that nothing is lost when it is written."""
    assert len(graph.labels) == graph.num_nodes, "labels"
    u, v = graph.edges.T
    assert ((u >= 0) & (u < v) & (v < graph.num_nodes)).all(), "edges out of order"
    assert len(np.unique(graph.edges, axis=0)) == graph.num_edges, "an edge twice"
    for weights in (graph.edge_weights, graph.node_weights):
        assert weights is None or np.isfinite(weights).all(), "weights that are not finite"
    if graph.num_nodes <= 1000:
        again = path.with_name("again.npz")
        write_graph(graph, again)
        assert read_graphs(again)[0].digest == graph.digest, "another graph after writing"


class _TooSlowError(BaseException):
    """Not an Exception, so that no reader takes it for a fault of the file."""


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooSlowError(f"more than {SLOW_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SLOW_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(*, seed: int, count: int | None = None, seconds: float | None = None) -> tuple[Counter[str], list[str]]:
    """Try so many files, or for so long; how many were read and refused, and the complaints about others."""
    rng, outcomes, complaints = random.Random(seed), Counter[str](), []
    ends = None if seconds is None else time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = seed_files(folder)
        while (count is None or outcomes.total() < count) and (ends is None or time.monotonic() < ends):
            file, content = rng.choice(files)
            suffix = rng.choice(("", "", "", *COMPRESSORS))
            changed = COMPRESSORS[suffix](mutated(content, rng))
            path = folder / f"{file}{suffix}"
            path.write_bytes(mutated(changed, rng) if suffix and rng.random() < 0.3 else changed)
            found = complaint(path)
            outcomes[found if found in ("read", "refused") else "wrong"] += 1
            if found not in ("read", "refused"):
                KEPT.mkdir(parents=True, exist_ok=True)
                kept = KEPT / f"{seed}-{outcomes.total()}-{path.name}"
                kept.write_bytes(path.read_bytes())
                complaints.append(f"{kept}: {found}")
    return outcomes, complaints


def main() -> int:
    """Run for a while and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_GIB << 30, MAX_GIB << 30))
    outcomes, complaints = run(seed=arguments.seed, seconds=arguments.seconds)
    print(*complaints, sep="\n", file=sys.stderr)
    print(json.dumps({"files": outcomes.total(), **outcomes}))
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
