"""Records as pictures: the figures of the paper, drawn from ours."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from diffuco.plotting import BLUE, GREY, INK, check_plot_path, line_colors, save_figure
from experiments.paper.ablations import over_seeds
from experiments.paper.records import Row


@dataclass(frozen=True)
class Curve:
    """A line of a figure."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float | None] | None = None
    """Standard errors of `y`."""
    is_reported: bool = False
    """Whether others measured it."""
    is_time: bool = False
    """Whether it is drawn on a second axis to the right."""


def plot_ratios(rows: Sequence[Row], path: Path) -> None:
    """Fig. 2 left."""
    curves = [
        Curve(
            label=row["method"],
            x=[point["x"] for point in row[side]["points"]],
            y=[point["y"] for point in row[side]["points"]],
            error=[point.get("error") for point in row[side]["points"]],
            is_reported=side == "paper",
        )
        for side in ("ours", "paper")
        for row in rows
        if side in row
    ]
    plot_curves(curves, path, title="Vertex covers of RB-200", x_label="p", y_label="AR* of the best sample")


def plot_steps(rows: Sequence[Row], path: Path) -> None:
    """Fig. 2 right; the vertical line marks the steps of training."""
    measured = [row for row in rows if "ours" in row]
    repeated = [row for row in measured if not row.get("rounds")]
    rounds = [row for row in measured if row.get("rounds")]
    curves = _error_and_time(repeated, [row["ours"]["steps"] for row in repeated])
    for curve in _error_and_time(rounds, [row["ours"]["steps"] for row in rounds])[:2] if rounds else []:
        curves.append(replace(curve, label=f"{curve.label}, rounds"))
    trained = measured[0]["ours"]["training_steps"] if measured else None
    title = "Steps of evaluation, MIS on RB-small"
    plot_curves(curves, path, title=title, x_label="diffusion steps", y_label="gap, %", vertical=trained)


def plot_tokens(rows: Sequence[Row], path: Path) -> None:
    """Fig. 3 left."""
    measured = [row for row in rows if "ours" in row]
    curves = _error_and_time(measured, [row["token_size"] for row in measured])
    plot_curves(curves, path, title="Tokens of CE-ST, MIS on RB-small", x_label="token size k", y_label="gap, %")


def _error_and_time(rows: Sequence[Row], x: Sequence[float]) -> list[Curve]:
    ours = [row["ours"] for row in rows]
    errors = [None if found["gap_error"] is None else 100 * found["gap_error"] for found in ours]
    return [
        Curve(label="mean of the samples", x=x, y=[100 * found["gap"] for found in ours], error=errors),
        Curve(label="best of the samples", x=x, y=[100 * found["gap_of_best"] for found in ours]),
        Curve(label="time", x=x, y=[found["seconds_per_graph"] for found in ours], is_time=True),
    ]


def plot_ablation(rows: Sequence[Row], path: Path) -> None:
    """Fig. 2 middle."""
    points: dict[str, list[Row]] = {}
    for row in over_seeds(rows):
        if "ours" in row:
            points.setdefault(f"{row['noise']} noise, {row['temperature']} temperature", []).append(row)
    curves = [
        Curve(
            label=label,
            x=[row["num_steps"] for row in chosen],
            y=[100 * row["ours"]["gap"] for row in chosen],
            error=[100 * (row["ours"]["gap_error"] or 0.0) for row in chosen],
        )
        for label, chosen in points.items()
    ]
    title = "Steps of training, MIS on RB-100"
    plot_curves(curves, path, title=title, x_label="diffusion steps", y_label="gap, mean of the samples, %")


def plot_likelihood(rows: Sequence[Row], path: Path) -> None:
    """Fig. 3 right, without the first step: it lies thousands below and stands in the table."""
    curves = [
        Curve(
            label=f"{row['noise']} noise",
            x=[point["x"] for point in row["ours"]["points"][1:]],
            y=[point["y"] for point in row["ours"]["points"][1:]],
        )
        for row in rows
        if "ours" in row
    ]
    title = "Samples under the forward process, MIS on RB-100, after the first step"
    plot_curves(curves, path, title=title, x_label="optimiser steps", y_label="log-likelihood, without constants")


def plot_curves(
    curves: Sequence[Curve], path: str | Path, *, title: str, x_label: str, y_label: str, vertical: float | None = None
) -> None:
    """Draw curves, those of time over an axis of their own; `vertical` is the place of a vertical line."""
    figure = check_plot_path(path)(figsize=(8, 5.2), layout="constrained")
    axes = figure.add_subplot()
    right = axes.twinx() if any(curve.is_time for curve in curves) else None
    labels = list(dict.fromkeys(curve.label for curve in curves))
    colors = dict(zip(labels, line_colors(labels), strict=True))  # a reported curve has the color of ours
    for curve in curves:
        target = right if curve.is_time and right is not None else axes
        errors = None if curve.error is None else [0.0 if value is None else value for value in curve.error]
        marker = "s:" if curve.is_time else "x--" if curve.is_reported else "o-"
        label = f"{curve.label} (r)" if curve.is_reported else curve.label
        sizes = {"capsize": 2.5, "markersize": 5}
        target.errorbar(curve.x, curve.y, yerr=errors, fmt=marker, color=colors[curve.label], label=label, **sizes)
    if vertical is not None:
        axes.axvline(vertical, color=GREY, linewidth=1, linestyle="--")
    if right is not None:
        right.set_ylabel("seconds per graph", color=INK)
        right.set_ylim(bottom=0)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.grid(color=BLUE, alpha=0.25)
    axes.spines[["top"]].set_visible(False)
    if all(x == int(x) for curve in curves for x in curve.x):
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=13, x=0.02, ha="left", color=INK)
    save_figure(figure, path)
