"""Solve a networkx graph: a large circle of Florentine families, no two of them related by marriage.

    python examples/solve_networkx.py

Needs the extra `networkx`. Nodes may be any labels; the answer uses the same ones.
"""

import networkx as nx

import diffuco


def main() -> None:
    """Solve, print, and check with networkx itself."""
    marriages = nx.florentine_families_graph()
    solution = diffuco.solve(marriages, "mis", samples=16)
    assert isinstance(solution, diffuco.Solution)
    print(f"{solution.objective:.0f} of {len(marriages)} families: {', '.join(sorted(map(str, solution.nodes)))}")
    assert not marriages.subgraph(solution.nodes).edges


if __name__ == "__main__":
    main()
