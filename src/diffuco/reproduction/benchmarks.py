"""Tables of means on test sets: Tables 1 and 3, and models on graphs larger than those they learned from (Table 6)."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from diffuco.evaluation.metrics import mean_with_error
from diffuco.foundation.errors import InputError
from diffuco.methods import get_method
from diffuco.problems import get_problem
from diffuco.reproduction import reported
from diffuco.reproduction.measurement import about_models, measure_method, measure_model, method_hardware, summary
from diffuco.reproduction.records import Row, Task
from diffuco.reproduction.reported import CE, CE_ST, RAW, Reported
from diffuco.reproduction.workspace import Workspace
from diffuco.training.recipes import RECIPES, get_recipe

TOKEN_SIZES = {RAW: 0, CE: 1, CE_ST: 8}
"""The variants of the paper's method by the size of the tokens that are decoded at once; 0: not decoded."""

ONE_STEP = {"EGN: CE": "egn", "EGN-Anneal: CE": "egn-anneal"}
"""Baselines that are models of their own: the paper's name and what follows the recipe's."""

PAPER_NAMES = {"greedy": "Greedy", "mfa": "MFA", "gurobi": "Gurobi", "kamis": "KaMIS"}
"""What the paper calls methods that we have as well."""

ORDER = ("OR", "H", "SL", "UL")
KINDS = {"cp-sat": "OR", "highs": "OR", "gurobi": "OR", "kamis": "OR"}

METHOD_GRAPHS = 64
"""The first so many graphs are what other methods are measured on: some take minutes a graph."""


@dataclass(frozen=True)
class Benchmark:
    """A problem on a test set, with the models and methods that are measured on it."""

    name: str
    problem: str
    dataset: str
    recipe: str
    reported: tuple[Reported, ...]
    count: int | None = None
    """Test graphs; None: all."""
    quick_count: int = 8
    methods: tuple[str, ...] = ("greedy", "mfa", "rlsa", "sa")
    """Other methods that are fast enough for these graphs."""
    variants: tuple[str, ...] = (RAW, CE, CE_ST)
    others: tuple[tuple[str, str], ...] = ()
    """What sets further models apart, and their recipes."""
    expected_edges: float | None = None
    """Mean number of edges by construction: the paper prints cuts, but not the edges of its graphs."""

    def num_graphs(self, space: Workspace) -> int | None:
        """How many test graphs are asked for."""
        if space.options.count is not None:
            return space.options.count
        return self.quick_count if space.options.quick else self.count


def table_tasks(benchmarks: Sequence[Benchmark]) -> Callable[[Workspace], list[Task]]:
    """What makes the rows of a table, for the registry of items."""
    return lambda space: [task for benchmark in benchmarks for task in _tasks(benchmark, space)]


def _tasks(benchmark: Benchmark, space: Workspace) -> list[Task]:
    """The rows of one benchmark: our reference, methods and models, and what others reported, by kind."""
    recipe = benchmark.recipe
    rows: list[tuple[str, str, Callable[[], Row] | None]] = [("Reference", "OR", partial(_reference, benchmark, space))]
    for name in _methods(benchmark, space):
        kind = KINDS.get(name, "H")
        rows.append((PAPER_NAMES.get(name, name), kind, partial(_method, benchmark, space, name)))
    if RAW in benchmark.variants:
        for label, suffix in ONE_STEP.items():
            rows.append((label, "UL", partial(_model, benchmark, space, f"{recipe}-{suffix}", 1, step_factor=1)))
    for variant in benchmark.variants:
        rows.append((variant, "UL", partial(_model, benchmark, space, recipe, TOKEN_SIZES[variant])))
    for what, other in benchmark.others:
        for variant in benchmark.variants:
            measure = partial(_model, benchmark, space, other, TOKEN_SIZES[variant])
            rows.append((f"{variant}, {what}", "UL", measure))
    ours = {label for label, _, _ in rows}
    rows = [(line.method, line.kind, None) for line in benchmark.reported if line.method not in ours] + rows
    rows.sort(key=lambda row: ORDER.index(row[1]))
    lines = {line.method: line for line in benchmark.reported}
    return [
        Task(
            key=f"{benchmark.name} | {label}",
            about={"benchmark": benchmark.name, "method": label, "kind": kind} | _paper(benchmark, lines.get(label)),
            measure=measure,
        )
        for label, kind, measure in rows
    ]


def _methods(benchmark: Benchmark, space: Workspace) -> list[str]:
    """Names of the other methods that are measured."""
    asked = space.options.methods
    if asked is None:
        return ["greedy"] if space.options.quick else list(benchmark.methods)
    return [name for name in asked if benchmark.problem in get_method(name).problems]


def _paper(benchmark: Benchmark, line: Reported | None) -> Row:
    """The paper's numbers for a row; gaps are between means, to the best solver of the same table."""
    if line is None or line.value is None:
        return {}
    sense = get_problem(benchmark.problem).sense
    solved = [other.value for other in benchmark.reported if other.kind == "OR" and other.value is not None]
    best = max(solved) if sense == "max" else min(solved)
    row: Row = {"value": line.value, "error": line.error, "seconds_per_graph": line.seconds_per_graph}
    row["gap"] = (best - line.value if sense == "max" else line.value - best) / best
    if benchmark.expected_edges is not None:
        row["cut_over_edges"] = line.value / benchmark.expected_edges
    return {"paper": row}


def _reference(benchmark: Benchmark, space: Workspace) -> Row:
    """What is stored about the optima, with the time it took where it was found."""
    count = benchmark.num_graphs(space)
    stored = space.references(benchmark.problem, benchmark.dataset, count)
    known = [reference for reference in stored if reference is not None]
    if not known:
        raise InputError("no references stored")
    objectives = mean_with_error([reference.objective for reference in known])
    return {
        "hardware": "stored references",
        "graphs": len(known),
        "mean": objectives.mean,
        "error": objectives.standard_error,
        "error_over": "graphs",
        "seconds_per_graph": float(np.mean([reference.seconds for reference in known])),
        "referenced": len(known),
        "proven": sum(reference.proven for reference in known),
        "solvers": sorted({f"{reference.solver} {reference.version}" for reference in known}),
    }


def _method(benchmark: Benchmark, space: Workspace, name: str) -> Row:
    count = min(METHOD_GRAPHS, benchmark.num_graphs(space) or METHOD_GRAPHS)
    graphs = space.graphs(benchmark.dataset, count)
    options = space.options
    run = measure_method(name, benchmark.problem, graphs, device=options.device, seed=options.seed)
    references = space.references(benchmark.problem, benchmark.dataset, count)
    about = {"method": name, "hardware": method_hardware(name, options.device)}
    return about | summary(get_problem(benchmark.problem), graphs, references, [run])


def _model(benchmark: Benchmark, space: Workspace, recipe: str, token_size: int, step_factor: int = 3) -> Row:
    solvers = space.solvers(recipe)
    count = benchmark.num_graphs(space)
    graphs = space.graphs(benchmark.dataset, count)
    settings: dict[str, Any] = {"step_factor": step_factor, "token_size": token_size, "seed": space.options.seed}
    runs = [measure_model(solver, graphs, samples=space.samples, **settings) for solver in solvers]
    about = about_models(solvers) | {"steps": step_factor * solvers[0].checkpoint.model.config.num_steps}
    about["changed"] = departures(recipe, solvers[0].checkpoint.card)
    references = space.references(benchmark.problem, benchmark.dataset, count)
    return about | settings | summary(solvers[0].problem, graphs, references, runs)


def departures(recipe: str, card: dict[str, Any]) -> dict[str, Any]:
    """Settings with which a model was trained otherwise than its recipe has it, but for the seed."""
    meant = asdict(get_recipe(recipe)) if recipe in RECIPES else {}
    trained = card.get("training", {})
    return {name: value for name, value in trained.items() if name != "seed" and meant.get(name, value) != value}


MIS_RB_SMALL = Benchmark(
    "MIS RB-small",
    "mis",
    "rb-small",
    "mis-rb-small",
    reported.MIS_RB_SMALL,
    methods=("greedy", "networkx", "mfa", "rlsa", "sa"),
    others=(("16 steps", "mis-rb-small-16"), ("the paper's recipe", "mis-rb-small-paper")),
)
MIS_RB_LARGE = Benchmark(
    "MIS RB-large",
    "mis",
    "rb-large",
    "mis-rb-large",
    reported.MIS_RB_LARGE,
    count=100,
    quick_count=1,
    others=(("32 steps", "mis-rb-large-32"),),
)
MDS_BA_SMALL = Benchmark(
    "MDS BA-small",
    "mds",
    "ba-small",
    "mds-ba-small",
    reported.MDS_BA_SMALL,
    methods=("greedy", "networkx", "mfa", "rlsa"),
    others=(("24 steps", "mds-ba-small-24"),),
)
MDS_BA_LARGE = Benchmark(
    "MDS BA-large",
    "mds",
    "ba-large",
    "mds-ba-large",
    reported.MDS_BA_LARGE,
    quick_count=1,
    methods=("greedy", "networkx", "mfa", "rlsa"),
    others=(("24 steps, from BA-small", "mds-ba-small-24"),),
)
MAX_CLIQUE_RB_SMALL = Benchmark(
    "MaxCl RB-small",
    "max-clique",
    "rb-small",
    "max-clique-rb-small",
    reported.MAX_CLIQUE_RB_SMALL,
    methods=("greedy", "networkx", "mfa", "rlsa", "sa"),
    others=(("32 steps", "max-clique-rb-small-32"),),
)
MAX_CUT_BA_SMALL = Benchmark(
    "MaxCut BA-small",
    "max-cut",
    "ba-small",
    "max-cut-ba-small",
    reported.MAX_CUT_BA_SMALL,
    methods=("greedy", "sdp", "mfa", "rlsa", "sa"),
    others=(("24 steps", "max-cut-ba-small-24"),),
    expected_edges=4 * (250 - 4),
)
MAX_CUT_BA_LARGE = Benchmark(
    "MaxCut BA-large",
    "max-cut",
    "ba-large",
    "max-cut-ba-large",
    reported.MAX_CUT_BA_LARGE,
    quick_count=1,
    methods=("greedy", "sdp", "mfa", "rlsa", "sa"),
    others=(("24 steps, from BA-small", "max-cut-ba-small-24"),),
    expected_edges=4 * (1000 - 4),
)

TABLE_1 = (MIS_RB_SMALL, MIS_RB_LARGE, MDS_BA_SMALL, MDS_BA_LARGE)
TABLE_3 = (MAX_CLIQUE_RB_SMALL, MAX_CUT_BA_SMALL, MAX_CUT_BA_LARGE)


def _larger_graphs(problem: str, size: str, gurobi: float, diffuco: float, num_nodes: int) -> Benchmark:
    """A model of BA-small on a larger set."""
    name = {"mds": "MDS", "max-cut": "MaxCut"}[problem]
    return Benchmark(
        f"{name} BA-{size}",
        problem,
        f"ba-{size}",
        f"{problem}-ba-small",
        reported.out_of_distribution(gurobi, diffuco),
        count=None if size == "small" else 100,
        quick_count=2 if size == "small" else 1,
        methods=("greedy", "rlsa"),
        variants=(CE_ST,),
        expected_edges=4 * (num_nodes - 4) if problem == "max-cut" else None,
    )


TABLE_6 = (
    _larger_graphs("mds", "small", 27.91, 28.31, 250),
    _larger_graphs("mds", "large", 105.05, 106.08, 1000),
    _larger_graphs("mds", "huge", 153.89, 157.46, 1500),
    _larger_graphs("mds", "giant", 253.53, 259.02, 2500),
    _larger_graphs("max-cut", "small", 735.67, 731.72, 250),
    _larger_graphs("max-cut", "large", 2945.43, 2949.02, 1000),
    _larger_graphs("max-cut", "huge", 4414.29, 4444.47, 1500),
    _larger_graphs("max-cut", "giant", 7319.47, 7390.99, 2500),
)
