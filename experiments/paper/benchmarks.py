"""Tables of means on test sets: Tables 1 and 3, and Table 6, where graphs are larger than those trained on."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from diffuco.evaluation.metrics import mean_with_error
from diffuco.evaluation.reference_store import Reference
from diffuco.foundation.errors import InputError
from diffuco.graphs.graph import Graph
from diffuco.problems import get_problem
from diffuco.training.recipes import RECIPES, get_recipe
from experiments.paper import reported
from experiments.paper.measurement import (
    about_method,
    about_models,
    measure_method,
    measure_model,
    methods_for,
    summary,
)
from experiments.paper.records import Row, Task
from experiments.paper.reported import CE, CE_ST, RAW, Reported
from experiments.paper.workspace import Workspace

TOKEN_SIZES = {RAW: 0, CE: 1, CE_ST: 8}
"""The variants of the paper's method by the number of nodes decoded at once; 0: not decoded."""

ONE_STEP = {"EGN: CE": "egn", "EGN-Anneal: CE": "egn-anneal"}
"""Baselines that are models of their own: the paper's name, and the end of their recipe's name."""

PAPER_NAMES = {"greedy": "Greedy", "mfa": "MFA", "gurobi": "Gurobi", "kamis": "KaMIS"}
"""What the paper calls methods that we have as well."""

KINDS = ("OR", "H", "SL", "UL")
"""Kinds of systems, in the order of the rows."""
EXACT = ("cp-sat", "highs", "gurobi", "kamis")
"""Methods of the kind OR; all others are heuristics."""

UNTOLD = ("seed", "validate_every", "checkpoint_every")
"""Settings that need not be those of the recipe."""

METHOD_GRAPHS = 64
"""Other methods are measured on this many graphs, because some take minutes per graph."""


@dataclass(frozen=True)
class Benchmark:
    """A problem on a test set, with the models and methods to measure."""

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
    """Further models: what sets them apart, and their recipes."""
    expected_edges: float | None = None
    """Mean number of edges by construction: the paper prints cuts, but not the edges of its graphs."""

    def test_set(self, space: Workspace, at_most: int | None = None) -> tuple[list[Graph], list[Reference | None]]:
        """The first test graphs, and what is stored about their optima."""
        count = space.options.count or (self.quick_count if space.options.quick else self.count)
        if at_most is not None:
            count = min(at_most, count or at_most)
        return space.graphs(self.dataset, count), space.references(self.problem, self.dataset, count)

    def reported_gap(self, value: float) -> float:
        """Gap of a mean that the paper prints to the best mean of a solver in the same table."""
        sign = get_problem(self.problem).sign
        best = min(sign * line.value for line in self.reported if line.kind == "OR" and line.value is not None)
        return (sign * value - best) / abs(best)


def table_tasks(benchmarks: Sequence[Benchmark]) -> Callable[[Workspace], list[Task]]:
    """What makes the rows of a table, for the list of items."""
    return lambda space: [task for benchmark in benchmarks for task in _tasks(benchmark, space)]


def _tasks(benchmark: Benchmark, space: Workspace) -> list[Task]:
    """The rows of one benchmark by kind: our reference, methods and models, and what others reported."""
    lines = {line.label: line for line in benchmark.reported}

    def task(label: str, kind: str, measure: Callable[[], Row] | None = None) -> Task:
        about = {"benchmark": benchmark.name, "method": label, "kind": kind}
        return Task(f"{benchmark.name} | {label}", about | _paper(benchmark, lines.get(label)), measure)

    tasks = [task("Reference", "OR", partial(_reference, benchmark, space))]
    for name in methods_for(benchmark.problem, space.methods(benchmark.methods, quick="greedy")):
        kind = "OR" if name in EXACT else "H"
        tasks.append(task(PAPER_NAMES.get(name, name), kind, partial(_method, benchmark, space, name)))
    model = partial(_model, benchmark, space)
    if RAW in benchmark.variants:
        for label, suffix in ONE_STEP.items():
            recipe = f"{benchmark.recipe}-{suffix}"
            tasks.append(task(label, "UL", partial(model, recipe, token_size=1, step_factor=1)))
    for what, recipe in (("", benchmark.recipe), *benchmark.others):
        for variant in benchmark.variants:
            label = f"{variant}, {what}" if what else variant
            tasks.append(task(label, "UL", partial(model, recipe, token_size=TOKEN_SIZES[variant])))
    ours = {one.about["method"] for one in tasks}
    tasks = [task(label, line.kind) for label, line in lines.items() if label not in ours] + tasks
    return sorted(tasks, key=lambda one: KINDS.index(one.about["kind"]))


def _paper(benchmark: Benchmark, line: Reported | None) -> Row:
    """The paper's numbers for a row."""
    if line is None or line.value is None:
        return {}
    row: Row = {"value": line.value, "error": line.error, "seconds_per_graph": line.seconds_per_graph}
    row["gap"] = benchmark.reported_gap(line.value)
    if benchmark.expected_edges is not None:
        row["cut_over_edges"] = line.value / benchmark.expected_edges
    return {"paper": row}


def _reference(benchmark: Benchmark, space: Workspace) -> Row:
    """What is stored about the optima, with the time it took where it was found."""
    known = [reference for reference in benchmark.test_set(space)[1] if reference is not None]
    if not known:
        raise InputError("no references stored")
    objective = mean_with_error([reference.objective for reference in known])
    return {
        "hardware": "stored references",
        "graphs": len(known),
        "mean": objective.mean,
        "error": objective.standard_error,
        "error_over": "graphs",
        "seconds_per_graph": float(np.mean([reference.seconds for reference in known])),
        "referenced": len(known),
        "proven": sum(reference.proven for reference in known),
        "solvers": sorted({f"{reference.solver} {reference.version}" for reference in known}),
    }


def _method(benchmark: Benchmark, space: Workspace, name: str) -> Row:
    graphs, references = benchmark.test_set(space, at_most=METHOD_GRAPHS)
    run = measure_method(name, benchmark.problem, graphs, space.options)
    return about_method(name, space.options) | summary(get_problem(benchmark.problem), graphs, references, [run])


def _model(benchmark: Benchmark, space: Workspace, recipe: str, *, token_size: int, step_factor: int = 3) -> Row:
    row = measure_recipe(benchmark, space, recipe, token_size=token_size, step_factor=step_factor)
    return row | {"changed": departures(recipe, space.solvers(recipe)[0].checkpoint.card)}


def measure_recipe(
    benchmark: Benchmark, space: Workspace, recipe: str, *, token_size: int, step_factor: int, rounds: int = 0
) -> Row:
    """All models of a recipe on the graphs of a benchmark; `steps` is how often the network is asked for a sample."""
    solvers = space.solvers(recipe)
    graphs, references = benchmark.test_set(space)
    settings = {"step_factor": step_factor, "token_size": token_size, "seed": space.options.seed}
    settings |= {"rounds": rounds} if rounds else {}
    runs = [measure_model(solver, graphs, samples=space.samples, **settings) for solver in solvers]
    steps = {"steps": solvers[0].sampler.num_evaluations(step_factor, rounds)}
    return about_models(solvers) | steps | settings | summary(solvers[0].problem, graphs, references, runs)


def departures(recipe: str, card: dict[str, Any]) -> dict[str, Any]:
    """Settings that a model was trained with and that differ from its recipe, except for those that need not agree."""
    meant = asdict(get_recipe(recipe)) if recipe in RECIPES else {}
    trained = {name: value for name, value in card.get("training", {}).items() if name not in UNTOLD}
    return {name: value for name, value in trained.items() if meant.get(name, value) != value}


MIS_RB_SMALL = Benchmark(
    name="MIS RB-small",
    problem="mis",
    dataset="rb-small",
    recipe="mis-rb-small",
    reported=reported.MIS_RB_SMALL,
    methods=("greedy", "networkx", "mfa", "rlsa", "sa"),
    others=(
        ("16 steps", "mis-rb-small-16"),
        ("32 steps", "mis-rb-small-32"),
        ("the paper's recipe", "mis-rb-small-paper"),
    ),
)
MIS_RB_LARGE = Benchmark(
    name="MIS RB-large",
    problem="mis",
    dataset="rb-large",
    recipe="mis-rb-large",
    reported=reported.MIS_RB_LARGE,
    count=100,
    quick_count=1,
    others=(("16 steps", "mis-rb-large-16"), ("64 steps", "mis-rb-large-64")),
)
MDS_BA_SMALL = Benchmark(
    name="MDS BA-small",
    problem="mds",
    dataset="ba-small",
    recipe="mds-ba-small",
    reported=reported.MDS_BA_SMALL,
    methods=("greedy", "networkx", "mfa", "rlsa"),
    others=(("24 steps", "mds-ba-small-24"), ("48 steps", "mds-ba-small-48")),
)
MDS_BA_LARGE = Benchmark(
    name="MDS BA-large",
    problem="mds",
    dataset="ba-large",
    recipe="mds-ba-large",
    reported=reported.MDS_BA_LARGE,
    quick_count=1,
    methods=("greedy", "networkx", "mfa", "rlsa"),
    others=(("24 steps, from BA-small", "mds-ba-small-24"), ("48 steps, from BA-small", "mds-ba-small-48")),
)
MAX_CLIQUE_RB_SMALL = Benchmark(
    name="MaxCl RB-small",
    problem="max-clique",
    dataset="rb-small",
    recipe="max-clique-rb-small",
    reported=reported.MAX_CLIQUE_RB_SMALL,
    methods=("greedy", "networkx", "mfa", "rlsa", "sa"),
    others=(("32 steps", "max-clique-rb-small-32"),),
)
MAX_CUT_BA_SMALL = Benchmark(
    name="MaxCut BA-small",
    problem="max-cut",
    dataset="ba-small",
    recipe="max-cut-ba-small",
    reported=reported.MAX_CUT_BA_SMALL,
    methods=("greedy", "sdp", "mfa", "rlsa", "sa"),
    others=(("24 steps", "max-cut-ba-small-24"), ("48 steps", "max-cut-ba-small-48")),
    expected_edges=4 * (250 - 4),
)
MAX_CUT_BA_LARGE = Benchmark(
    name="MaxCut BA-large",
    problem="max-cut",
    dataset="ba-large",
    recipe="max-cut-ba-large",
    reported=reported.MAX_CUT_BA_LARGE,
    quick_count=1,
    methods=("greedy", "sdp", "mfa", "rlsa", "sa"),
    others=(("24 steps, from BA-small", "max-cut-ba-small-24"), ("48 steps, from BA-small", "max-cut-ba-small-48")),
    expected_edges=4 * (1000 - 4),
)

TABLE_1 = (MIS_RB_SMALL, MIS_RB_LARGE, MDS_BA_SMALL, MDS_BA_LARGE)
TABLE_3 = (MAX_CLIQUE_RB_SMALL, MAX_CUT_BA_SMALL, MAX_CUT_BA_LARGE)


def _larger_graphs(problem: str, size: str, *, num_nodes: int, gurobi: float, diffuco: float) -> Benchmark:
    """A model of BA-small on another set of BA graphs, with the means of a column of the paper's table."""
    title = {"mds": "MDS", "max-cut": "MaxCut"}[problem]
    return Benchmark(
        name=f"{title} BA-{size}",
        problem=problem,
        dataset=f"ba-{size}",
        recipe=f"{problem}-ba-small",
        reported=(Reported("Gurobi", "OR", gurobi, limit_s=300), Reported(CE_ST, "UL", diffuco)),
        count=None if size == "small" else 100,
        quick_count=2 if size == "small" else 1,
        methods=("greedy", "rlsa"),
        variants=(CE_ST,),
        expected_edges=4 * (num_nodes - 4) if problem == "max-cut" else None,
    )


TABLE_6 = (
    _larger_graphs("mds", "small", num_nodes=250, gurobi=27.91, diffuco=28.31),
    _larger_graphs("mds", "large", num_nodes=1000, gurobi=105.05, diffuco=106.08),
    _larger_graphs("mds", "huge", num_nodes=1500, gurobi=153.89, diffuco=157.46),
    _larger_graphs("mds", "giant", num_nodes=2500, gurobi=253.53, diffuco=259.02),
    _larger_graphs("max-cut", "small", num_nodes=250, gurobi=735.67, diffuco=731.72),
    _larger_graphs("max-cut", "large", num_nodes=1000, gurobi=2945.43, diffuco=2949.02),
    _larger_graphs("max-cut", "huge", num_nodes=1500, gurobi=4414.29, diffuco=4444.47),
    _larger_graphs("max-cut", "giant", num_nodes=2500, gurobi=7319.47, diffuco=7390.99),
)
