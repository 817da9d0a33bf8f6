"""Write docs/models.md, the cards of all shipped models, and the README's results from what is stored in their files.

usage: python -m experiments.model_cards
"""

import json
import re
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from diffuco import pretrained
from diffuco.foundation.wording import counted
from diffuco.graphs.datasets import get_dataset
from diffuco.pretrained.cards import Card, measured, trained_on, when_to_choose
from diffuco.problems import get_problem
from experiments.paper import rendering
from experiments.paper.benchmarks import TABLE_1, TABLE_3
from experiments.paper.reported import CE, CE_ST, RATIOS_BY_TIGHTNESS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "models.md"
README = ROOT / "README.md"
RESULTS = re.compile(
    r"(?<=<!-- results: written by experiments/model_cards.py -->\n).*?(?=\n<!-- end of results -->)", re.S
)
THE_RUN_BEFORE = "the run before it"
"""What a card names in place of a file that training started from."""
COVERS = ("mvc", "rb-200")
BEST_PUBLISHED: dict[tuple[str, str], float | None] = {
    ("mis", "rb-small"): 0.023,
    ("mis", "rb-large"): 0.066,
    ("max-clique", "rb-small"): 0.010,
    ("mds", "ba-small"): 0.0063,
    ("max-cut", "ba-small"): 0.0015,
    COVERS: None,
}
"""The rows of the README's results, with the mean gap of SDDS (Sanokowski et al., ICLR 2025, arXiv:2502.08696). It was
measured as ours is (8 samples, 3 times the steps, CE), with its authors' code and weights, on 100 to 500 graphs of the
same kinds. None: the best figure known is the paper's own, which is that of the best of 8 samples."""
AS_COVERS = ROOT / "experiments" / "results" / "evaluate-mis-rb-small-32-as-mvc.json"
"""What a model of independent sets leaves out is a cover; its card tells of independent sets only."""
BENCHMARKS = {(benchmark.problem, benchmark.dataset): benchmark for benchmark in (*TABLE_1, *TABLE_3)}
"""The paper's rows."""

INTRODUCTION = """# Models

`python -m experiments.model_cards` writes this page from the cards stored in the model files. `diffuco models` shows
the short form.

- **Gap** is the mean distance of all samples from optimal or best known solutions, on test graphs that no model has
  seen. There is no search after decoding.
- **Best** is the gap of the best sample of every graph.
- Errors are standard errors: over seeds if several were trained, otherwise over the test graphs.

A model does well on graphs like those it was trained on and may be far off on others. Compare your graphs with the
last column. If no model fits, [train your own](training.md#your-own-graphs).
"""


def main() -> None:
    """Write the page and the results."""
    cards = pretrained.list_models()
    PAGE.write_text(page(cards))
    README.write_text(RESULTS.sub(lambda _: results(cards), README.read_text()))


def page(cards: list[Card]) -> str:
    """The whole page, baselines last."""
    cards = sorted(cards, key=lambda card: card["baseline"] is not None)
    files = pretrained.model_files()
    package, further = (
        _size(
            [files[card["name"]] for card in cards if (files[card["name"]].parent == pretrained.FOLDER) == is_shipped]
        )
        for is_shipped in (True, False)
    )
    total = (
        f"The package contains {package}: a fast and a good one for each kind of graphs. The folder `models` of the\n"
        f"source contains the baselines and models of middle sizes: {further}."
    )
    return "\n".join([INTRODUCTION, _overview(cards), "", total, "", *(_section(card) for card in cards)])


def _size(files: list[Path]) -> str:
    return f"{counted(len(files), 'model')}, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB"


def results(cards: list[Card]) -> str:
    """The table of the README: the best shipped model of each row beside the paper and the best published result."""
    rows = [
        "| problem | test graphs | diffuco | the paper | best published |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (problem, dataset), published in BEST_PUBLISHED.items():
        found = {card["name"]: measured(card) for card in cards if _is_measured_on(card, problem, dataset)}
        gaps = {name: gap.best if published is None else gap.value for name, gap in found.items() if gap is not None}
        if (problem, dataset) == COVERS:
            record = json.loads(AS_COVERS.read_text())
            gaps[record["model"]] = record["reference"]["gap_of_best"]
        if not gaps:
            continue
        model = min(gaps, key=lambda name: gaps[name])
        paper = _paper_gap(problem, dataset)
        cells = (
            get_problem(problem).title + (", best of 8" if published is None else ""),
            get_dataset(dataset).description.partition(";")[0],
            f"[{_percent(gaps[model])}](docs/models.md#{model})",
            _percent(paper),
            f"{_percent(paper)} (the paper)" if published is None else _percent(published),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _is_measured_on(card: Card, problem: str, dataset: str) -> bool:
    records = card.get("evaluations", [])
    return card["problem"] == problem and bool(records) and records[0]["dataset"] == dataset and "gap" in records[0]


def _paper_gap(problem: str, dataset: str) -> float:
    """The best gap of the paper's method: to the best mean of a solver in its table or, for covers, to the optimum."""
    if (problem, dataset) == COVERS:
        return statistics.mean(RATIOS_BY_TIGHTNESS["DiffUCO"]) - 1
    benchmark = BENCHMARKS[problem, dataset]
    values = [line.value for line in benchmark.reported if line.method in (CE, CE_ST) and line.value is not None]
    return min(benchmark.reported_gap(value) for value in values)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %" if share < 0.01 else f"{100 * share:.1f} %"


def _overview(cards: list[Card]) -> str:
    rows = [
        "| model | problem | trained on | gap | best | minutes of training | choose it for |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for card in cards:
        found = measured(card)
        gap, best = ("not measured", "-") if found is None else (str(found), found.best_text)
        cells = (
            f"[`{card['name']}`](#{card['name']})",
            get_problem(card["problem"]).title,
            trained_on(card),
            gap,
            best,
        )
        rows.append(f"| {' | '.join(cells)} | {card['minutes']:.1f} | {when_to_choose(card)} |")
    return "\n".join(rows)


def _earlier(training: dict[str, Any]) -> str:
    """A run that another one continued, in words."""
    start = f" from `{training['start_from']}`" if training["start_from"] not in ("", THE_RUN_BEFORE) else ""
    objective = " of imitation" if training.get("objective") == "imitation" else ""
    return f"a run of {training['anneal_epochs']} epochs{objective}{start}"


def _section(card: Card) -> str:
    training, shape = card["training"], card["model"]
    start = f"starts from `{training['start_from']}`, " if training.get("start_from") else ""
    if "earlier" in card:
        start = f"continues {' and '.join(map(_earlier, card['earlier']))}; "
    num_parameters = sum(weights.numel() for weights in pretrained.load_model(card["name"]).model.parameters())
    lines = {
        "problem": get_problem(card["problem"]).title,
        "choose it for": when_to_choose(card),
        "network": f"{shape['num_layers']} layers of {shape['num_hidden']} features, "
        f"{counted(shape['num_steps'], 'diffusion step')}, {num_parameters:,} parameters",
        "trained on": _graphs(card),
        "recipe": f"{start}{training['noise']} noise, temperature from {training['start_temperature']:g}, learning "
        f"rate {training['learning_rate']:g}, {training['graphs_per_batch']} graphs x {training['samples_per_graph']} "
        f"samples per step, {training['anneal_epochs']} epochs, seed {training['seed']}",
        "run": f"{card['minutes']:.1f} minutes on {card['hardware']}, commit {card['commit']}; {_steps(card)}",
        "validation": _validation(card),
        "measured": _measured(card),
        "rounds": f"go back {card['round_percent']} % of the steps" if "round_percent" in card else "",
        "records": _records(card),
    }
    bullets = (rendering.wrapped(f"- **{name}**: {text}") for name, text in lines.items() if text)
    return "\n".join([f"## {card['name']}", "", *bullets, ""])


def _graphs(card: Card) -> str:
    graphs = card["graphs"]
    return (
        f"{trained_on(card)} (`{card['dataset']}`), {card['training']['num_train_graphs']:,} graphs of "
        f"{graphs['nodes'][1]:.0f} nodes and density {graphs['density'][1]:.2g} on average"
    )


def _steps(card: Card) -> str:
    training, done = card["training"], card["curve"][-1][0]
    total = training["anneal_epochs"] * (training["num_train_graphs"] // training["graphs_per_batch"])
    stopped = "" if done == total else f", stopped at {done:,}"
    return f"best at step {card['step']:,} of {total:,}{stopped}"


def _validation(card: Card) -> str:
    steps, energies = zip(*card["curve"], strict=True)
    return (
        f"mean energy {card['validation']['energy']:.4g}; `{sparkline(list(energies))}` from {energies[0]:.4g} at step "
        f"{steps[0]:,} to {energies[-1]:.4g} at step {steps[-1]:,}"
    )


def sparkline(values: list[float], width: int = 40) -> str:
    """Numbers as a line of at most `width` blocks.

    >>> sparkline([4.0, 2.0, 1.0, 0.0])
    '█▅▃▁'
    """
    blocks = "▁▂▃▄▅▆▇█"
    chosen = np.array(values)[np.unique(np.linspace(0, len(values) - 1, width).round().astype(int))]
    span = max(float(np.ptp(chosen)), 1e-12)
    return "".join(blocks[round((len(blocks) - 1) * float(value - chosen.min()) / span)] for value in chosen)


def _measured(card: Card) -> str:
    found = measured(card)
    records: list[dict[str, Any]] = card.get("evaluations", [])
    if found is None:
        return "not yet"
    first = records[0]
    seeds = "one seed" if found.num_seeds == 1 else f"mean over {found.num_seeds} seeds"
    against = ""
    if found.is_gap:
        against = f"; references by {first['solver']}, {first['proven']} of {first['graphs']} proven optimal"
    what = f"gap {found}" if found.is_gap else str(found)
    return (
        f"{what}, best of {first['samples']} samples {found.best_text}; {seeds}, {first['graphs']} graphs of "
        f"{first['dataset']}/{first['split']}, {first['samples']} samples x {counted(first['steps'], 'step')}, "
        f"decoded by `{first['decode']}`{against}; {first['hardware']}, commit {first['commit']}"
    )


def _records(card: Card) -> str:
    files = (Path(record["file"]) for record in card.get("evaluations", []))
    return ", ".join(f"[{file.name}](../{file.as_posix()})" for file in files)


if __name__ == "__main__":
    main()
