"""Graphs with a hidden independent set of known size, as files for `own_graphs.py`.

    python benchmarks/planted.py FOLDER --cliques 35 40 45 50 53
    python benchmarks/own_graphs.py FOLDER/* --problems mis --methods auto anneal numvc --limit 20

Model RB as in BHOSLIB (Xu et al. 2007): n cliques of n^0.8 nodes, tightness 1/4, and as many draws as make a solution
unlikely. One node of every clique is hidden: no edge joins two of them, so the largest independent set has n nodes.
"""

import argparse
import math
from pathlib import Path

import networkx as nx
import numpy as np

TIGHTNESS = 0.25


def planted_graph(num_cliques: int, seed: int) -> nx.Graph:
    """A graph of `num_cliques` cliques with an independent set of as many nodes."""
    rng = np.random.default_rng(seed)
    size = round(num_cliques**0.8)
    nodes = np.arange(num_cliques * size).reshape(num_cliques, size)
    hidden = rng.integers(size, size=num_cliques)
    graph = nx.Graph()
    for clique in nodes:
        graph.add_edges_from((a, b) for a in clique.tolist() for b in clique.tolist() if a < b)
    for _ in range(round(-0.8 / math.log(1 - TIGHTNESS) * num_cliques * math.log(num_cliques))):
        first, second = rng.choice(num_cliques, 2, replace=False)
        may_join = np.delete(np.arange(size**2), hidden[first] * size + hidden[second])
        one, other = np.divmod(rng.choice(may_join, round(TIGHTNESS * size**2), replace=False), size)
        graph.add_edges_from(zip(nodes[first, one].tolist(), nodes[second, other].tolist(), strict=True))
    return graph


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cliques", type=int, nargs="+", default=[35, 40, 45, 50, 53])
    parser.add_argument("--count", type=int, default=2, help="graphs of each size")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for num_cliques in arguments.cliques:
        for seed in range(arguments.count):
            path = arguments.folder / f"planted-{num_cliques}-{seed}.edges"
            nx.write_edgelist(planted_graph(num_cliques, seed), path, data=False)


if __name__ == "__main__":
    main()
