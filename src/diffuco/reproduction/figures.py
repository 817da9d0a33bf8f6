"""Records as pictures: the figures of the paper, drawn from ours."""

from collections.abc import Sequence
from pathlib import Path

from diffuco.plotting import Curve, plot_curves
from diffuco.reproduction.ablations import over_seeds
from diffuco.reproduction.records import Row


def plot_ratios(rows: Sequence[Row], path: Path) -> None:
    """Fig. 2 left."""
    curves = [
        Curve(
            row["method"],
            [point["x"] for point in row[side]["points"]],
            [point["y"] for point in row[side]["points"]],
            [point.get("error") for point in row[side]["points"]],
            is_reported=side == "paper",
        )
        for side in ("ours", "paper")
        for row in rows
        if side in row
    ]
    plot_curves(curves, path, title="Vertex covers of RB-200", x_label="p", y_label="AR* of the best sample")


def plot_steps(rows: Sequence[Row], path: Path) -> None:
    """Fig. 2 right; the line across is where the model was trained."""
    measured = [row for row in rows if "ours" in row]
    curves = _error_and_time(measured, [row["ours"]["steps"] for row in measured])
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
        Curve("mean of the samples", x, [100 * found["gap"] for found in ours], errors),
        Curve("best of the samples", x, [100 * found["gap_of_best"] for found in ours]),
        Curve("time", x, [found["seconds_per_graph"] for found in ours], is_time=True),
    ]


def plot_ablation(rows: Sequence[Row], path: Path) -> None:
    """Fig. 2 middle."""
    points: dict[str, list[Row]] = {}
    for row in over_seeds(rows):
        if "ours" in row:
            points.setdefault(f"{row['noise']} noise, {row['temperature']} temperature", []).append(row)
    curves = [
        Curve(
            label,
            [row["num_steps"] for row in chosen],
            [100 * row["ours"]["gap"] for row in chosen],
            [100 * (row["ours"]["gap_error"] or 0.0) for row in chosen],
        )
        for label, chosen in points.items()
    ]
    title = "Steps of training, MIS on RB-100"
    plot_curves(curves, path, title=title, x_label="diffusion steps", y_label="gap, mean of the samples, %")


def plot_likelihood(rows: Sequence[Row], path: Path) -> None:
    """Fig. 3 right; the first step, before anything is learned, is thousands below and stands in the table."""
    curves = [
        Curve(
            f"{row['noise']} noise",
            [point["x"] for point in row["ours"]["points"][1:]],
            [point["y"] for point in row["ours"]["points"][1:]],
        )
        for row in rows
        if "ours" in row
    ]
    title = "Samples under the forward process, MIS on RB-100, after the first step"
    plot_curves(curves, path, title=title, x_label="optimiser steps", y_label="log-likelihood, without constants")
