"""Write docs/models.md, the cards of all shipped models, from what is stored in their files.

usage: python experiments/model_cards.py
"""

from pathlib import Path
from typing import Any

from diffuco import pretrained
from diffuco.pretrained.cards import Card, measured, sparkline, trained_on, when_to_choose
from diffuco.problems import get_problem

PAGE = Path(__file__).parents[1] / "docs" / "models.md"

INTRODUCTION = """# Models

Written by `python experiments/model_cards.py` from what the files of the shipped models say about themselves;
`diffuco models` shows the short form.

Gaps are to optimal or best known solutions, on test graphs that no model has seen. "Gap" is the mean over all samples,
without any search after decoding; "best" is that of the best sample of every graph. Errors are standard errors, over
seeds where several were trained, else over the test graphs. A model does well on graphs like those it was trained on
and may be far off on others: compare yours with the last column, and
[train on your own](training.md#your-own-graphs) where none fits.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(pretrained.list_models()))


def page(cards: list[Card]) -> str:
    """The whole page."""
    num_bytes = sum((pretrained.FOLDER / f"{card['name']}.safetensors").stat().st_size for card in cards)
    total = f"{len(cards)} models, {num_bytes / 1e6:.1f} MB in all."
    return "\n".join([INTRODUCTION, _overview(cards), "", total, "", *(_section(card) for card in cards)])


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
    num_parameters = sum(weights.numel() for weights in pretrained.load_model(card["name"]).model.parameters())
    lines = {
        "problem": get_problem(card["problem"]).title,
        "choose it for": when_to_choose(card),
        "network": f"{shape['num_layers']} layers of {shape['num_hidden']} features, {shape['num_steps']} diffusion "
        f"steps, {num_parameters:,} parameters",
        "trained on": _graphs(card),
        "recipe": f"{training['noise']} noise, temperature from {training['start_temperature']:g}, learning rate "
        f"{training['learning_rate']:g}, {training['graphs_per_batch']} graphs x {training['samples_per_graph']} "
        f"samples a step, {training['anneal_epochs']} epochs, seed {training['seed']}",
        "run": f"{card['minutes']:.1f} minutes on {card['hardware']}, source at {card['commit']}; {_steps(card)}",
        "validation": _validation(card),
        "measured": _measured(card),
    }
    return "\n".join([f"## {card['name']}", "", *(f"- **{name}**: {text}" for name, text in lines.items()), ""])


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
        against = f", references by {first['solver']}, {first['proven']} of {first['graphs']} proven optimal"
    sources = ", ".join(f"[{Path(record['file']).name}](../{record['file']})" for record in records)
    what = f"gap {found}" if found.is_gap else str(found)
    return (
        f"{what}, best of {first['samples']} samples {found.best_text}; {seeds}, {first['graphs']} graphs of "
        f"{first['dataset']}/{first['split']}, {first['samples']} samples x {first['steps']} steps, {first['decode']}"
        f"{against}; {sources}, {first['hardware']}, source at {first['commit']}"
    )


if __name__ == "__main__":
    main()
