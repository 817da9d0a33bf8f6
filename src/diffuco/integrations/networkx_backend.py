"""The backend for NetworkX: `networkx.approximation.max_clique(G, backend="diffuco")` and four more functions.

NetworkX finds this module by the entry point `networkx.backends` and imports it at the first call that may use it. If
`diffuco` has priority, that can be a call of any function, so torch is imported only when something is solved. Options
are those of `networkx.config.backends.diffuco`; their defaults are in `diffuco_networkx`.
"""

import inspect
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import networkx
import numpy as np
from numpy.typing import NDArray

from diffuco.graphs.graph import Graph

if TYPE_CHECKING:
    from diffuco.solution.result import Solution

Cut = tuple[float, tuple[set[Hashable], set[Hashable]]]


@dataclass(frozen=True, eq=False)
class BackendGraph:
    """What NetworkX passes to the functions. It holds the graph itself, so nothing here can become outdated."""

    source: Any

    __networkx_backend__: ClassVar[str] = "diffuco"

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return bool(self.source.is_directed())

    def is_multigraph(self) -> bool:
        """Whether nodes may be joined by several edges."""
        return bool(self.source.is_multigraph())


def convert_from_nx(graph: Any, **_: object) -> BackendGraph:
    """Called by NetworkX before a function. The function itself knows which attributes it needs."""
    return BackendGraph(graph)


def convert_to_nx(result: object, **_: object) -> object:
    """Called by NetworkX after a function."""
    return result.source if isinstance(result, BackendGraph) else result


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a call is supported, or why not."""
    given = inspect.signature(globals()[name]).bind_partial(*args, **kwargs).arguments
    graph = given["G"]
    if graph.is_directed() and name != "min_weighted_vertex_cover":
        return "directed graphs are not supported"
    if graph.is_multigraph() and name not in ("min_weighted_vertex_cover", "min_weighted_dominating_set"):
        return "multigraphs are not supported"
    weight = given.get("weight")
    if callable(weight):
        return "weights as a function are not supported; give the name of an attribute"
    if name in ("min_weighted_vertex_cover", "min_weighted_dominating_set"):
        values = _node_weights(_source(graph), weight)
        if values is not None and min(values) < 0:
            return "node weights below 0 are not supported"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether to take a call that names no backend, or why not."""
    graph = args[0] if args else kwargs["G"]
    limit = networkx.config.backends.diffuco.max_nodes
    if len(_source(graph)) > limit:
        return f"the graph has more than {limit} nodes, the limit in networkx.config.backends.diffuco.max_nodes"
    return True


def maximum_independent_set(G: BackendGraph) -> set[Hashable]:
    """A large set of nodes no two of which are adjacent.

    >>> G = networkx.cycle_graph(5)
    >>> len(networkx.approximation.maximum_independent_set(G, backend="diffuco"))
    2
    """
    return _nodes("mis", _simple_graph(G.source))


def max_clique(G: BackendGraph) -> set[Hashable]:
    """A large set of nodes that are all adjacent to each other.

    >>> networkx.approximation.max_clique(networkx.complete_graph(4), backend="diffuco")
    {0, 1, 2, 3}
    """
    return _nodes("max-clique", _simple_graph(G.source))


def min_weighted_vertex_cover(G: BackendGraph, weight: str | None = None) -> set[Hashable]:
    """A light set of nodes that touches every edge, no heavier than NetworkX's own.

    >>> len(networkx.approximation.min_weighted_vertex_cover(networkx.cycle_graph(5), backend="diffuco"))
    3
    """
    # An edge from a node to itself is covered by that node alone.
    forced = {u for u, v in G.source.edges() if u == v}
    rest = G.source.subgraph(set(G.source) - forced) if forced else G.source
    found = forced | _nodes("mvc", _simple_graph(rest, node_weight=weight))
    other: set[Hashable] = networkx.approximation.min_weighted_vertex_cover(G.source, weight, backend="networkx")
    weights = dict(G.source.nodes(data=weight, default=1)) if weight else dict.fromkeys(G.source, 1)
    return min(found, other, key=lambda cover: sum(weights[node] for node in cover))


def min_weighted_dominating_set(G: BackendGraph, weight: str | None = None) -> set[Hashable]:
    """A light set such that every node is in it or next to it.

    >>> len(networkx.approximation.min_weighted_dominating_set(networkx.cycle_graph(6), backend="diffuco"))
    2
    """
    return _nodes("mds", _simple_graph(G.source, node_weight=weight))


def one_exchange(
    G: BackendGraph,
    initial_cut: set[Hashable] | None = None,
    seed: Any = None,
    weight: str | None = None,
) -> Cut:
    """A heavy cut and its two sides; moving any single node to the other side does not improve it.

    >>> networkx.approximation.one_exchange(networkx.cycle_graph(4), seed=1, backend="diffuco")[0]
    4
    """
    source = G.source
    if not source:
        return 0, (set(), set())
    graph = _simple_graph(source, weight)
    solution = _solve("max-cut", graph, None if seed is None else seed.randint(0, 2**31 - 1))
    starts = [*solution.states.T]
    if initial_cut is not None:
        starts.append(np.array([label in initial_cut for label in source]))
    sides = [exchange(graph, start) for start in starts]
    side = max(sides, key=lambda side: solution.problem.check(graph, side).objective)
    cut = {label for label, inside in zip(source, side, strict=True) if inside}
    # Summed from the attributes, so that whole weights give a whole number.
    edges = _weighted_edges(source, weight)
    return sum(value for u, v, value in edges if (u in cut) != (v in cut)), (cut, set(source) - cut)


def exchange(graph: Graph, side: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Move the node that gains most to the other side, until no node gains. [num_nodes] -> [num_nodes].

    >>> square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> exchange(square, np.zeros(4, dtype=np.bool_)).tolist()
    [True, False, True, False]
    """
    indptr, neighbors, weights = graph.csr
    sign = np.where(side, 1.0, -1.0)
    rows = np.repeat(np.arange(graph.num_nodes), np.diff(indptr))
    gains = np.bincount(rows, weights * sign[rows] * sign[neighbors], minlength=graph.num_nodes)
    # A gain that is only a rounding error would move a node back and forth for ever.
    rounding = 1e-12 * np.abs(weights).sum()
    while gains[node := int(gains.argmax())] > rounding:
        near = slice(indptr[node], indptr[node + 1])
        gains[neighbors[near]] -= 2 * weights[near] * sign[node] * sign[neighbors[near]]
        gains[node] *= -1
        sign[node] *= -1
    return sign > 0


def _nodes(problem: str, graph: Graph) -> set[Hashable]:
    return set(_solve(problem, graph).nodes) if graph.num_nodes else set()


def _solve(problem: str, graph: Graph, seed: int | None = None) -> "Solution":
    from diffuco.solving.entry import solve

    options = networkx.config.backends.diffuco
    solution: Solution = solve(
        graph,
        problem,
        method=options.method,
        time_limit_s=options.time_limit_s,
        model=options.models.get(problem),
        samples=options.samples,
        step_factor=options.step_factor,
        seed=options.seed if seed is None else seed,
        device=options.device,
    )
    return solution


def _simple_graph(source: Any, weight: str | None = None, node_weight: str | None = None) -> Graph:
    """The graph without directions, edges from a node to itself and second edges between two nodes."""
    labels = list(source)
    index = {label: position for position, label in enumerate(labels)}
    ends = ((index[u], index[v], value) for u, v, value in _weighted_edges(source, weight) if u != v)
    edges = {(min(u, v), max(u, v)): float(value) for u, v, value in ends}
    weights = None if weight is None else list(edges.values())
    of_nodes = _node_weights(source, node_weight)
    return Graph.from_edges(list(edges), len(labels), edge_weights=weights, node_weights=of_nodes, labels=labels)


def _node_weights(source: Any, weight: str | None) -> list[float] | None:
    """The named attribute of every node, 1 if it is missing; None if all weights are 1."""
    weights = [] if weight is None else [float(value) for _, value in source.nodes(data=weight, default=1)]
    return weights if any(value != 1 for value in weights) else None


def _weighted_edges(source: Any, weight: str | None) -> Iterable[tuple[Hashable, Hashable, Any]]:
    """Edges with the named attribute, 1 if it is missing or none is named."""
    if weight is None:
        return ((u, v, 1) for u, v in source.edges())
    found: Iterable[tuple[Hashable, Hashable, Any]] = source.edges(data=weight, default=1)
    return found


def _source(graph: Any) -> Any:
    return graph.source if isinstance(graph, BackendGraph) else graph
