"""What NetworkX reads of the backend when it is imported.

A package of its own that imports nothing, so that `import networkx` does not get slower: the functions are in
`diffuco.integrations.networkx_backend`, which is imported when one of them is first called.
"""

from typing import Any


def get_info() -> dict[str, Any]:
    """The entry point `networkx.backend_info`.

    >>> sorted(get_info()["functions"])[:2]
    ['max_clique', 'maximum_independent_set']
    """
    return {
        "backend_name": "diffuco",
        "project": "diffuco",
        "package": "diffuco",
        "short_summary": "Solves graph problems exactly, by annealing or with diffusion models, not by a greedy rule.",
        "functions": {
            "maximum_independent_set": {},
            "max_clique": {},
            "min_weighted_vertex_cover": {
                "additional_docs": "No heavier than what NetworkX finds, so that its bound holds; no weights below 0."
            },
            "min_weighted_dominating_set": {"additional_docs": "Node weights must not be below 0."},
            "one_exchange": {
                "additional_docs": "The best of several cuts and `initial_cut`, each improved by single exchanges."
            },
        },
        "default_config": {
            "method": "auto",
            "time_limit_s": None,
            "models": {},
            "samples": None,
            "step_factor": None,
            "seed": 0,
            "device": "auto",
            "max_nodes": 100_000,
        },
    }
