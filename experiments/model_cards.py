"""Write docs/models.md, the cards of all shipped models, and the README's results from what is stored in their files.

usage: python -m experiments.model_cards
"""

import json
import re
import statistics
from pathlib import Path
from typing import Any

from diffuco import pretrained
from diffuco.foundation.wording import counted
from diffuco.pretrained.cards import Card, measured, sparkline, trained_on, when_to_choose
from diffuco.problems import get_problem
from experiments.paper import rendering
from experiments.paper.benchmarks import TABLE_1, TABLE_3
from experiments.paper.reported import CE

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "models.md"
README = ROOT / "README.md"
RESULTS = re.compile(
    r"(?<=<!-- results: written by experiments/model_cards.py -->\n).*?(?=\n<!-- end of results -->)", re.S
)
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
    package = _size([files[card["name"]] for card in cards if not card["baseline"]])
    further = _size([files[card["name"]] for card in cards if card["baseline"]])
    total = f"The package contains {package}. The folder `models` of the source contains the baselines: {further}."
    return "\n".join([INTRODUCTION, _overview(cards), "", total, "", *(_section(card) for card in cards)])


def _size(files: list[Path]) -> str:
    return f"{counted(len(files), 'model')}, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB"


def results(cards: list[Card]) -> str:
    """The table of the README: models whose gap is known, beside the paper's figure.

    Baselines are left out, and models on the way to one that has grown further.
    """
    on_the_way = {card["grown_from"] for card in cards}
    names = (
        *("problem", "test graphs", "reference", "mean of the samples", "gap", "best of the samples"),
        *("steps", "seeds", "the paper's gap", "minutes of training"),
    )
    rows = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    for card in cards:
        found = measured(card)
        if found is None or not found.is_gap or card["baseline"] or (card["grown_from"] and card["name"] in on_the_way):
            continue
        first = card["evaluations"][0]
        mean, best = (statistics.mean(record[name] for record in card["evaluations"]) for name in ("mean", "best"))
        cells = (
            get_problem(card["problem"]).title,
            f"{first['graphs']} {first['dataset']}",
            _reference(first),
            f"{mean:.2f}",
            f"{found}{_share_of_edges(card, mean)}",
            f"{found.best_text}{_share_of_edges(card, best)}",
            f"{card['model']['num_steps']}",
            f"{found.num_seeds}",
            _paper(card["problem"], first["dataset"]),
            f"{card['minutes']:.1f}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _reference(record: dict[str, Any]) -> str:
    if "gap" not in record:
        return "-"
    mean = json.loads((ROOT / record["file"]).read_text())["reference"]["mean"]
    proven = "" if record["proven"] == record["graphs"] else f" ({record['proven']} proven)"
    return f"{mean:.2f}{proven}"


def _share_of_edges(card: Card, cut: float) -> str:
    """Cuts of other graphs can be compared as a share of the edges only."""
    return f" ({cut / card['evaluations'][0]['mean_edges']:.4f} of the edges)" if card["problem"] == "max-cut" else ""


def _paper(problem: str, dataset: str) -> str:
    """The gap of the paper's CE row to the best value of any solver that it reports."""
    benchmark = BENCHMARKS.get((problem, dataset))
    if benchmark is None:
        return "-"
    value = next(line.value for line in benchmark.reported if line.method == CE and line.value is not None)
    if benchmark.expected_edges:
        return f"({value / benchmark.expected_edges:.3f} of the edges)"
    return f"{100 * benchmark.reported_gap(value):.1f} %"


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


def _section(card: Card) -> str:
    training, shape = card["training"], card["model"]
    start = f"starts from `{training['start_from']}`, " if training.get("start_from") else ""
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
