"""Plain Python statements of Table 2 and enumeration of all states: the start of the chain of correctness."""

import itertools
from functools import cache

import numpy as np
import torch

from diffuco.graphs.graph import Graph
from diffuco.problems import NodeSetProblem


@cache
def all_states(num_nodes: int) -> np.ndarray:
    return np.array(list(itertools.product([0, 1], repeat=num_nodes)), dtype=np.float64).reshape(
        2**num_nodes, num_nodes
    )


def dominating_sets(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """All dominating sets of a graph and what they weigh. [N, sets], [sets]."""
    states = all_states(graph.num_nodes).T.astype(bool)
    near = np.eye(graph.num_nodes)
    near[graph.edges[:, 0], graph.edges[:, 1]] = near[graph.edges[:, 1], graph.edges[:, 0]] = 1
    sets = states[:, (near @ states > 0).all(axis=0)]
    return sets, graph.node_weights_or(1.0) @ sets


def energy(problem, graph: Graph, x: np.ndarray) -> float:
    """H(X) of one state, term by term as the table prints it."""
    edges = {(int(u), int(v)) for u, v in graph.edges}
    weights = dict.fromkeys(edges, 1.0)
    if graph.edge_weights is not None:
        weights = {(int(u), int(v)): float(w) for (u, v), w in zip(graph.edges, graph.edge_weights, strict=True)}
    nodes = range(graph.num_nodes)
    w = np.ones(graph.num_nodes) if graph.node_weights is None else graph.node_weights
    heaviest = max(w, default=1.0) or 1.0
    # What a node weighs in a penalty: never less than a 1,024th of the heaviest, rounded up to its 65,536ths.
    b = heaviest * np.maximum(np.ceil(w / heaviest * 2**16 - 1e-3) / 2**16, 2**-10)
    if problem.name == "mis":
        return -w @ x + problem.penalty * sum(max(b[i], b[j]) * x[i] * x[j] for i, j in edges)
    if problem.name == "mvc":
        return w @ x + problem.penalty * sum(max(b[i], b[j]) * (1 - x[i]) * (1 - x[j]) for i, j in edges)
    if problem.name == "max-clique":
        missing = [pair for pair in itertools.combinations(nodes, 2) if pair not in edges]
        return -w @ x + problem.penalty * heaviest * sum(x[i] * x[j] for i, j in missing)
    if problem.name == "max-cut":
        spin = 2 * x - 1
        return -sum(w * (1 - spin[i] * spin[j]) / 2 for (i, j), w in weights.items())
    if problem.name == "mds":
        neighbours = {i: [i] + [b if a == i else a for a, b in edges if i in (a, b)] for i in nodes}
        uncovered = (max(b[neighbours[i]]) * np.prod([1 - x[j] for j in neighbours[i]]) for i in nodes)
        return w @ x + problem.penalty * sum(uncovered)
    if problem.name == "qubo":
        diagonal = np.zeros(graph.num_nodes) if graph.node_weights is None else graph.node_weights
        return float(diagonal @ x) + sum(w * x[i] * x[j] for (i, j), w in weights.items())
    raise AssertionError(problem.name)


@cache
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


def small_graphs(problem=None) -> list[Graph]:
    """The odd cases: no node, one node, isolated nodes, disconnected, complete, a path, and weights.

    Of both signs, or for problems that count nodes none below 0: some equal, some 0, all 0, of another unit.
    """
    return [*unweighted_graphs(), *(node_weighted_graphs() if is_node_set(problem) else [weighted_graph()])]


def is_node_set(problem) -> bool:
    return isinstance(problem, NodeSetProblem)


@cache
def node_weighted_graphs() -> tuple[Graph, ...]:
    rng = np.random.default_rng(1)
    edges = [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4), (2, 6), (5, 6)]
    some = [7.0, 0.0, 2.5, 0.0, 0.0, 2.5, 1.0, 3.0]  # the last node is isolated
    return (
        Graph.from_edges(edges, 8, node_weights=some, name="some weigh nothing"),
        Graph.from_edges(edges, 7, node_weights=np.zeros(7), name="all weigh nothing"),
        Graph.from_edges(edges, 8, node_weights=1e-12 * rng.random(8), edge_weights=rng.normal(size=7), name="light"),
        Graph.from_edges(edges, 8, node_weights=1e12 * rng.exponential(size=8) ** 4, name="heavy"),
    )


@cache
def unweighted_graphs() -> tuple[Graph, ...]:
    complete = list(itertools.combinations(range(5), 2))
    return (
        Graph.from_edges([], num_nodes=0, name="empty"),
        Graph.from_edges([], num_nodes=1, name="one node"),
        Graph.from_edges([], num_nodes=4, name="isolated nodes"),
        Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)], num_nodes=6, name="path and an isolated node"),
        Graph.from_edges([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)], name="two triangles"),
        Graph.from_edges(complete, name="complete"),
    )


@cache
def weighted_graph() -> Graph:
    rng = np.random.default_rng(0)
    return Graph.from_edges(
        [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4), (2, 6), (5, 6)],
        edge_weights=rng.normal(size=7),
        node_weights=rng.normal(size=7),
        name="weighted",
    )
