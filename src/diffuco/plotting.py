"""Pictures (the extra `plot`): solved graphs as nodes and edges or as a matrix, and gaps against time."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from diffuco.foundation.errors import InputError
from diffuco.foundation.extras import install_hint
from diffuco.foundation.wording import as_utf8, counted
from diffuco.graphs.formats.output import open_for_writing
from diffuco.graphs.graph import Graph
from diffuco.solution.result import Solution, as_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

MAX_DRAWN_NODES = 2000
MAX_DRAWN_EDGES = 20_000
MAX_MATRIX_EDGES = 5_000_000
LINEAR_GAP = 0.1
"""Percent up to which comparisons are drawn on a linear scale, beyond on a logarithmic one."""

RED, BLUE, GREY, INK = "#d1495b", "#9fb4c7", "#5b6b7a", "#22303c"


def plot_solution(solution: Solution, path: str | Path) -> None:
    """Draw a solution to a file, whose suffix decides the format.

    Chosen nodes are red. The edges that matter are drawn in bold: the edges of a cut, inside a clique, or from a
    dominating set. A large graph is drawn as its adjacency matrix, with the chosen nodes first.
    """
    figure_class = check_plot_path(path)
    graph = solution.graph
    if graph.num_edges > MAX_MATRIX_EDGES:
        raise InputError(
            f"{graph.num_edges} edges are too many to draw, the limit is {MAX_MATRIX_EDGES}; leave out --plot"
        )
    figure = figure_class(figsize=(8, 8.4), layout="constrained")
    axes = figure.add_subplot()
    if graph.num_nodes <= MAX_DRAWN_NODES and graph.num_edges <= MAX_DRAWN_EDGES:
        _draw_nodes_and_edges(axes, solution)
    else:
        _draw_matrix(axes, solution)
    figure.suptitle(_title(solution), fontsize=13, x=0.02, ha="left", color=INK)
    save_figure(figure, path)


def check_plot_path(path: str | Path) -> Any:
    """Matplotlib's Figure class, which needs no display; raises InputError if the file cannot be drawn."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(f"pictures need matplotlib; {install_hint('plot')}") from None
    known = FigureCanvasAgg.get_supported_filetypes()
    if Path(path).suffix.lower().removeprefix(".") not in known:
        raise InputError(f"{path}: no picture format has this suffix; use one of .{' .'.join(sorted(known))}")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"{path}: the folder does not exist; create it or choose another path")
    return Figure


def save_figure(figure: "Figure", path: str | Path, *, dpi: int = 160) -> None:
    """Write a figure in the format of the path's suffix."""
    with open_for_writing(path) as out:
        figure.savefig(out, format=Path(path).suffix.lower().removeprefix("."), dpi=dpi)


def spring_layout(graph: Graph, *, iterations: int = 80) -> NDArray[np.float64]:
    """Positions [num_nodes, 2] in the unit disc; edges attract and all pairs repel (Fruchterman and Reingold)."""
    num_nodes = graph.num_nodes
    places = np.random.default_rng(0).uniform(-1, 1, (num_nodes, 2))
    if num_nodes < 2:
        return np.zeros((num_nodes, 2))
    spacing = 1 / np.sqrt(num_nodes)
    u, v = graph.edges.T
    # Edges between nodes of high degree pull less; otherwise dense graphs would collapse.
    strength = 1 / np.sqrt(np.maximum(1, np.minimum(graph.degrees[u], graph.degrees[v])))
    for step in 0.2 * (1 - np.arange(iterations) / iterations):
        push = _push(places, spacing)
        offset = places[u] - places[v]
        pull = offset * (strength * np.hypot(*offset.T) / spacing)[:, None]
        force = push - 1.5 * places
        for axis in (0, 1):
            force[:, axis] -= np.bincount(u, pull[:, axis], num_nodes) - np.bincount(v, pull[:, axis], num_nodes)
        length = np.maximum(np.hypot(*force.T), 1e-9)
        places += force * (np.minimum(length, step) / length)[:, None]
    places -= (places.min(axis=0) + places.max(axis=0)) / 2
    scaled: NDArray[np.float64] = places / max(1e-9, float(np.hypot(*places.T).max()))
    return scaled


def _push(places: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Sum over the other nodes of offset / distance^2; matrix products avoid an array [N, N, 2]."""
    squares = (places**2).sum(axis=1)
    inverse = squares[:, None] + squares[None, :] - 2 * places @ places.T
    np.maximum(inverse, 1e-6, out=inverse)
    np.reciprocal(inverse, out=inverse)
    np.fill_diagonal(inverse, 0)
    push: NDArray[np.float64] = spacing**2 * (places * inverse.sum(axis=1)[:, None] - inverse @ places)
    return push


def _draw_nodes_and_edges(axes: "Axes", solution: Solution) -> None:
    from matplotlib.collections import LineCollection

    graph, chosen = solution.graph, solution.chosen
    places = spring_layout(graph)
    lines = places[graph.edges]  # [E, 2, 2]
    strong = _strong_edges(solution)
    faint = float(np.clip(25 / max(1, graph.num_edges) ** 0.6, 0.06, 0.6))
    axes.add_collection(LineCollection(list(lines[~strong]), colors=GREY, linewidths=0.6, alpha=faint, zorder=1))
    width, opacity = (1.2, 0.7) if strong.sum() < 500 else (0.7, 0.4)
    axes.add_collection(LineCollection(list(lines[strong]), colors=RED, linewidths=width, alpha=opacity, zorder=2))
    size = float(np.clip(9000 / max(1, graph.num_nodes), 6, 220))
    for nodes, color, growth, order in ((~chosen, BLUE, 1.0, 3), (chosen, RED, 1.6, 4)):
        x, y = places[nodes].T
        axes.scatter(x, y, s=growth * size, c=color, edgecolors="white", linewidths=0.6, zorder=order)
    axes.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06), aspect="equal")
    axes.axis("off")


def _strong_edges(solution: Solution) -> NDArray[np.bool_]:
    """The edges to draw in bold: cut, inside the clique, dominating, or violated. [E]."""
    num_chosen_ends = solution.chosen[solution.graph.edges].sum(axis=1)
    wanted = solution.problem.marked_ends
    strong: NDArray[np.bool_] = num_chosen_ends == wanted
    return strong


def _draw_matrix(axes: "Axes", solution: Solution) -> None:
    graph, chosen = solution.graph, solution.chosen
    order = np.argsort(~chosen, kind="stable")
    position = np.empty(graph.num_nodes, dtype=np.int64)
    position[order] = np.arange(graph.num_nodes)
    rows, columns = position[graph.edges].T
    size = float(np.clip(2e5 / max(1, graph.num_edges), 0.05, 4))
    for x, y in ((rows, columns), (columns, rows)):
        axes.scatter(x, y, s=size, c=GREY, marker="s", linewidths=0, rasterized=True)
    num_chosen = int(chosen.sum())
    for line in (axes.axhline, axes.axvline):
        line(num_chosen - 0.5, color=RED, linewidth=1)
    axes.set(xlim=(-0.5, graph.num_nodes - 0.5), ylim=(graph.num_nodes - 0.5, -0.5), aspect="equal")
    axes.set_xlabel(f"adjacency matrix, {counted(num_chosen, 'chosen node')} first", color=GREY)


def _title(solution: Solution) -> str:
    graph = solution.graph
    feasible = "feasible" if solution.feasible else f"NOT feasible: {solution.violations} violated"
    name = f"{as_utf8(graph.name)}: " if graph.name else ""
    size = f"{counted(graph.num_nodes, 'node')}, {counted(graph.num_edges, 'edge')}"
    return f"{solution.problem.noun.capitalize()}: {as_count(solution.objective)}, {feasible}\n{name}{size}"


def plot_comparisons(records: Sequence[dict[str, Any]], path: str | Path) -> None:
    """Draw one panel per record of `diffuco compare`: the gap of every method against the time it took."""
    new_figure = check_plot_path(path)
    num_columns = min(2, len(records))
    num_rows = -(-len(records) // num_columns)
    figure = new_figure(figsize=(8 if num_columns == 1 else 12, 5.2 * num_rows), layout="constrained")
    for place, record in enumerate(records):
        _draw_comparison(figure, figure.add_subplot(num_rows, num_columns, place + 1), record)
    save_figure(figure, path, dpi=160 // num_columns + 20)


def _draw_comparison(figure: "Figure", axes: "Axes", record: dict[str, Any]) -> None:
    methods = list(dict.fromkeys(run["method"] for run in record["runs"]))
    labels = []
    for method, color in zip(methods, line_colors(methods), strict=True):
        runs = sorted((run for run in record["runs"] if run["method"] == method), key=lambda run: run["seconds"])
        seconds, gaps = [run["seconds"] for run in runs], [100 * run["gap"] for run in runs]
        errors = np.nan_to_num([100 * run["gap_standard_error"] for run in runs])
        width = 2.4 if method == "diffuco" else 1.4
        style: dict[str, Any] = {"color": color, "linewidth": width, "capsize": 2.5, "markersize": 6}
        axes.errorbar(seconds, gaps, yerr=errors, fmt="o-", label=method, **style)
        place: dict[str, Any] = {"xytext": (7, 3), "textcoords": "offset points"}
        labels += [axes.annotate(method, (seconds[-1], gaps[-1]), color=color, fontsize=10, **place)]
    axes.set_xscale("log")
    if any(100 * run["gap"] > LINEAR_GAP for run in record["runs"]):
        axes.set_yscale("symlog", linthresh=LINEAR_GAP)
    if all(run["gap"] >= 0 for run in record["runs"]):  # the best known can be beaten
        axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds per graph", color=INK)
    axes.set_ylabel("mean gap to the reference, %", color=INK)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter("")
    axes.grid(which="both", color=BLUE, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    title = f"{record['problem']} on {counted(record['graphs'], 'graph')} of {record['dataset']}"
    axes.set_title(f"{title}\n", loc="left", fontsize=13, color=INK)
    about = f"{record['hardware']}; reference: {record['reference']}"
    axes.text(0, 1.015, about, transform=axes.transAxes, fontsize=9, color=GREY)
    _move_apart(figure, labels)


def _move_apart(figure: "Figure", labels: "Sequence[Annotation]") -> None:
    """Move each label up until it overlaps none of the labels before it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    figure.draw_without_rendering()
    placed: list[Any] = []
    for label in labels:
        while any(label.get_window_extent(renderer).overlaps(other) for other in placed):
            label.xyann = (label.xyann[0], label.xyann[1] + 4)
        placed.append(label.get_window_extent(renderer))


def line_colors(methods: Sequence[str]) -> list[str]:
    """Red for the model, and distinct colours for the others."""
    others = iter(["#2e6f95", "#5c946e", "#c98b2b", "#7d5ba6", "#3d3d3d", "#b0678c", "#4fa3a5", "#8a7a5c"] * 4)
    return [RED if method.lower() == "diffuco" else next(others) for method in methods]
