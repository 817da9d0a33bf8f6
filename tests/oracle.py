"""Plain Python statements of Table 2 and enumeration of all states: the start of the chain of correctness."""

import itertools

import numpy as np
import torch

from diffuco.graphs.graph import Graph


def all_states(num_nodes: int) -> np.ndarray:
    return np.array(list(itertools.product([0, 1], repeat=num_nodes)), dtype=np.float64).reshape(
        2**num_nodes, num_nodes
    )


def energy(problem, graph: Graph, x: np.ndarray) -> float:
    """H(X) of one state, term by term as the table prints it."""
    edges = {(int(u), int(v)) for u, v in graph.edges}
    weights = dict.fromkeys(edges, 1.0)
    if graph.edge_weights is not None:
        weights = {(int(u), int(v)): float(w) for (u, v), w in zip(graph.edges, graph.edge_weights, strict=True)}
    nodes = range(graph.num_nodes)
    if problem.name == "mis":
        return -sum(x) + problem.penalty * sum(x[i] * x[j] for i, j in edges)
    if problem.name == "mvc":
        return sum(x) + problem.penalty * sum((1 - x[i]) * (1 - x[j]) for i, j in edges)
    if problem.name == "max-clique":
        missing = [pair for pair in itertools.combinations(nodes, 2) if pair not in edges]
        return -sum(x) + problem.penalty * sum(x[i] * x[j] for i, j in missing)
    if problem.name == "max-cut":
        spin = 2 * x - 1
        return -sum(w * (1 - spin[i] * spin[j]) / 2 for (i, j), w in weights.items())
    if problem.name == "mds":
        neighbours = {i: [i] + [b if a == i else a for a, b in edges if i in (a, b)] for i in nodes}
        return sum(x) + problem.penalty * sum(np.prod([1 - x[j] for j in neighbours[i]]) for i in nodes)
    if problem.name == "qubo":
        diagonal = np.zeros(graph.num_nodes) if graph.node_weights is None else graph.node_weights
        return float(diagonal @ x) + sum(w * x[i] * x[j] for (i, j), w in weights.items())
    raise AssertionError(problem.name)


def energies(problem, graph: Graph) -> np.ndarray:
    """H of all 2^N states."""
    return np.array([energy(problem, graph, x) for x in all_states(graph.num_nodes)])


def expected_energy(problem, graph: Graph, probs: np.ndarray) -> float:
    """E[H(X)] under independent Bernoulli variables, by enumeration."""
    states = all_states(graph.num_nodes)
    likelihood = np.prod(np.where(states == 1, probs, 1 - probs), axis=1)
    return float(likelihood @ energies(problem, graph))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_graphs() -> list[Graph]:
    """The odd cases: no node, one node, isolated nodes, disconnected, complete, a path, weights of both signs."""
    rng = np.random.default_rng(0)
    complete = list(itertools.combinations(range(5), 2))
    return [
        Graph.from_edges([], num_nodes=0, name="empty"),
        Graph.from_edges([], num_nodes=1, name="one node"),
        Graph.from_edges([], num_nodes=4, name="isolated nodes"),
        Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)], num_nodes=6, name="path and an isolated node"),
        Graph.from_edges([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)], name="two triangles"),
        Graph.from_edges(complete, name="complete"),
        Graph.from_edges(
            [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4), (2, 6), (5, 6)],
            edge_weights=rng.normal(size=7),
            node_weights=rng.normal(size=7),
            name="weighted",
        ),
    ]
