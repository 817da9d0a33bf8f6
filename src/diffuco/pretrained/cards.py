"""The card of a model in words: what it was trained on, how good it is, when to choose it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted, with_error
from diffuco.graphs.datasets import get_dataset
from diffuco.pretrained.choice import is_narrow

Card = dict[str, Any]
"""As `list_models` returns it. Training writes most of it; `experiments.ship_model` adds what is measured later:
`curve` [[step, validation energy], ...], `evaluations`, one per seed, the first for these very weights, and
`round_percent`, how far rounds go back in percent of the steps."""


@dataclass(frozen=True)
class Measured:
    """The results of evaluations, as a mean over seeds."""

    value: float
    """Mean gap of the samples to the reference or, without a reference, the cut as a share of the edges."""
    error: float
    """Standard error: over seeds if there are several, otherwise over graphs."""
    best: float
    """The same for the best sample of each graph."""
    num_seeds: int
    is_gap: bool

    def __str__(self) -> str:
        if self.is_gap:
            return with_error(100 * self.value, 100 * self.error, " %")
        return f"cuts {self.value:.4f} of the edges"

    @property
    def best_text(self) -> str:
        """The figure of the best samples, as text."""
        return f"{100 * self.best:.2f} %" if self.is_gap else f"{self.best:.4f}"


def measured(card: Card) -> Measured | None:
    """The evaluations of a shipped model as one figure; None if there are none to compare."""
    records = card.get("evaluations", [])
    if not records:
        return None
    if all("gap" in record for record in records):
        gaps = [record["gap"] for record in records]
        error = records[0]["gap_standard_error"] if len(gaps) == 1 else np.std(gaps, ddof=1) / np.sqrt(len(gaps))
        best = np.mean([record["gap_of_best"] for record in records])
        return Measured(float(np.mean(gaps)), float(error), float(best), len(records), is_gap=True)
    if card["problem"] != "max-cut":
        return None
    shares, best_shares = ([record[name] / record["mean_edges"] for record in records] for name in ("mean", "best"))
    error = np.std(shares, ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else float("nan")
    return Measured(float(np.mean(shares)), float(error), float(np.mean(best_shares)), len(records), is_gap=False)


def trained_on(card: Card) -> str:
    """The training graphs in words."""
    name = card.get("dataset", "unknown graphs")
    try:
        return get_dataset(name).description.partition(";")[0]
    except InputError:
        return f"{name}: {counted(card['graphs']['count'], 'graph')}" if "graphs" in card else str(name)


def when_to_choose(card: Card) -> str:
    """Which graphs a model is right for: those like its training graphs."""
    if card["baseline"]:
        return "comparing: it decides in one step, as the baseline EGN does"
    if is_narrow(card):
        return "large graphs like those, on a CPU"
    if faster := card["faster"]:
        return f"the graphs of {faster}, where better samples are worth the time of {card['model']['num_steps']} steps"
    if "graphs" not in card:
        return "graphs like those"
    (fewest, _, most), (sparsest, _, densest) = card["graphs"]["nodes"], card["graphs"]["density"]
    seen = [kind for kind in ("weighted", "node_weighted") if card["model"].get(kind)]
    weights = f", with {'node ' if seen == ['node_weighted'] else ''}weights" if seen else ""
    return f"about {fewest:,} to {most:,} nodes, density {sparsest:.2g} to {densest:.2g}{weights}"
