"""Recipes: one function for each shipped model and each row of the paper's table of hyperparameters (App. C.5).

A recipe is named after its problem and dataset. `-paper` marks the values of the paper, `-tiny` a run that takes a
minute on a CPU, `-egn` and `-egn-anneal` the baselines with one diffusion step. Names that end in a number from 12 to
64, that of the diffusion steps, start from a model with fewer.
"""

import difflib
from collections.abc import Callable
from dataclasses import replace

from diffuco.foundation.errors import InputError
from diffuco.training.config import TrainConfig
from diffuco.training.paper_recipes import PAPER


def get_recipe(name: str) -> TrainConfig:
    """The configuration of the recipe with this name.

    >>> get_recipe("mis-rb-small-paper").num_steps
    6
    """
    if name not in RECIPES:
        close = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(RECIPES)}"
        raise InputError(f"unknown recipe '{name}'; {hint}")
    return RECIPES[name]()


def mis_rb_small() -> TrainConfig:
    """MIS on RB-small, the shipped model: minutes on one GPU.

    It departs from the paper where later work found improvements: more steps, exponential noise, a lower start
    temperature and a cosine learning rate.
    """
    return TrainConfig(
        problem="mis",
        dataset="rb-small",
        num_steps=8,
        start_temperature=0.1,
        anneal_epochs=200,
        learning_rate=0.001,
        noise="exponential",
        samples_per_graph=8,
    )


def max_clique_rb_small() -> TrainConfig:
    """Maximum clique on RB-small: minutes on one GPU. With half the steps the gap doubles.

    The shipped model trained on for 752 epochs, from a temperature of 0.06, which took 23 minutes more.
    """
    return replace(mis_rb_small(), problem="max-clique", num_steps=16, anneal_epochs=100, num_random_features=0)


def max_cut_ba_small() -> TrainConfig:
    """Maximum cut on BA-small, the shipped model: minutes on one GPU."""
    return replace(mis_rb_small(), problem="max-cut", dataset="ba-small", num_steps=6, anneal_epochs=120)


def mds_ba_small() -> TrainConfig:
    """Minimum dominating set on BA-small, the shipped model: minutes on one GPU."""
    return replace(max_cut_ba_small(), problem="mds", num_random_features=0)


def mis_rb_large() -> TrainConfig:
    """MIS on RB-large, from the model for smaller graphs: minutes on one GPU."""
    return replace(
        mis_rb_small(),
        dataset="rb-large",
        start_from="mis-rb-small",
        anneal_epochs=36,
        graphs_per_batch=18,
        samples_per_graph=5,
    )


def max_cut_ba_large() -> TrainConfig:
    """Maximum cut on BA-large, from the model for smaller graphs: minutes on one GPU."""
    return replace(
        max_cut_ba_small(),
        dataset="ba-large",
        start_from="max-cut-ba-small",
        anneal_epochs=30,
        graphs_per_batch=10,
        num_train_graphs=2000,
    )


def mds_ba_large() -> TrainConfig:
    """Minimum dominating set on BA-large, from the model for smaller graphs: minutes on one GPU."""
    return replace(
        max_cut_ba_large(), problem="mds", start_from="mds-ba-small", anneal_epochs=40, num_random_features=0
    )


def mvc_rb_200() -> TrainConfig:
    """Minimum vertex cover on RB-200: minutes on one GPU."""
    return replace(mis_rb_small(), problem="mvc", dataset="rb-200", num_train_graphs=2000, anneal_epochs=150)


def max_cut_er() -> TrainConfig:
    """Maximum cut on the graphs that the paper trains on for Gset (App. B.1).

    Cuts vary by the root of the degree, up to 12, hence the higher temperature.
    """
    return replace(max_cut_ba_small(), dataset="er-200-500", start_temperature=0.5, anneal_epochs=60)


def max_cut_gset() -> TrainConfig:
    """Maximum cut for Gset, on more kinds of graphs than in the paper, as some graphs of Gset have hubs."""
    return replace(max_cut_er(), dataset="mixed-200-500", anneal_epochs=90)


def mis_sparse() -> TrainConfig:
    """MIS on sparse graphs of ten families: minutes on one GPU."""
    return replace(mis_rb_small(), dataset="sparse", num_steps=6, anneal_epochs=100)


def max_cut_sparse() -> TrainConfig:
    """Maximum cut on sparse graphs of ten families: minutes on one GPU."""
    return replace(mis_sparse(), problem="max-cut")


def max_cut_sparse_weighted() -> TrainConfig:
    """Maximum cut on sparse graphs with edge weights of both signs: minutes on one GPU."""
    return replace(max_cut_sparse(), dataset="sparse-weighted", weighted=True, anneal_epochs=80)


def max_cut_hubs() -> TrainConfig:
    """Maximum cut on graphs with hubs, with a network narrow enough for a CPU: a minute on one GPU."""
    return replace(max_cut_sparse(), dataset="hubs", num_hidden=16, learning_rate=0.0015, anneal_epochs=60)


def mds_sparse() -> TrainConfig:
    """Minimum dominating set on sparse graphs of ten families: minutes on one GPU."""
    return replace(mis_sparse(), problem="mds")


def mis_rb_100() -> TrainConfig:
    """MIS on RB-100, the base of the ablations (Sec. 6.2): annealed noise, under a minute on one GPU."""
    return TrainConfig(
        problem="mis",
        dataset="rb-100",
        num_steps=5,
        start_temperature=0.2,
        anneal_epochs=60,
        samples_per_graph=8,
        validate_every=1000,
        checkpoint_every=2000,
    )


def qubo_random() -> TrainConfig:
    """Random QUBO, the shipped model: minutes on one GPU. Energies are in the hundreds, hence the temperature."""
    return replace(
        max_cut_ba_small(),
        problem="qubo",
        dataset="qubo-50-150",
        start_temperature=50.0,
        weighted=True,
        anneal_epochs=20,
    )


def mis_tiny() -> TrainConfig:
    """MIS on small RB graphs: a minute on a CPU, for trying things out."""
    return TrainConfig(
        problem="mis",
        dataset="rb-tiny",
        num_steps=4,
        start_temperature=0.2,
        anneal_epochs=20,
        noise="exponential",
        num_layers=3,
        num_hidden=32,
        graphs_per_batch=16,
        samples_per_graph=6,
        num_train_graphs=320,
        num_validation_graphs=32,
        validate_every=100,
        checkpoint_every=100,
    )


def mvc_tiny() -> TrainConfig:
    """Minimum vertex cover on small RB graphs: a minute on a CPU."""
    return replace(mis_tiny(), problem="mvc")


def max_clique_tiny() -> TrainConfig:
    """Maximum clique on small RB graphs: a minute on a CPU."""
    return replace(mis_tiny(), problem="max-clique")


def max_cut_tiny() -> TrainConfig:
    """Maximum cut on small BA graphs: a minute on a CPU."""
    return replace(mis_tiny(), problem="max-cut", dataset="ba-tiny")


def mds_tiny() -> TrainConfig:
    """Minimum dominating set on small BA graphs: a minute on a CPU."""
    return replace(mis_tiny(), problem="mds", dataset="ba-tiny")


def qubo_tiny() -> TrainConfig:
    """Small random QUBO: a minute on a CPU."""
    return replace(mis_tiny(), problem="qubo", dataset="qubo-tiny", start_temperature=50.0, weighted=True)


TWICE = "with twice the steps, grown from the shipped model: minutes on one GPU."
FOUR_TIMES = "with four times the steps, grown from the model with twice: minutes on one GPU."
EIGHT_TIMES = "with eight times the steps, grown from the model with four: minutes on one GPU."


def grown(
    recipe: Callable[[], TrainConfig],
    about: str,
    *,
    anneal_epochs: int,
    num_steps: int | None = None,
    temperature: float = 0.03,
    is_cold: bool = False,
) -> Callable[[], TrainConfig]:
    """Continued training of a recipe's model with more diffusion steps, twice as many unless `num_steps` says more.

    The temperature starts low, near where the model's training ended. With the usual start temperature, independent
    sets lost half of what the added steps had gained and dominating sets lost all of it. A model that has grown before
    `is_cold`, at half the learning rate: the entropies of all its steps add up, so more steps need less heat.
    """

    def make() -> TrainConfig:
        start = recipe()
        return replace(
            start,
            start_from=recipe.__name__.replace("_", "-"),
            num_steps=num_steps or 2 * start.num_steps,
            start_temperature=temperature,
            learning_rate=start.learning_rate / (2 if is_cold else 1),
            anneal_epochs=anneal_epochs,
        )

    make.__name__ = f"{recipe.__name__.rstrip('_0123456789')}_{make().num_steps}"
    make.__doc__ = about
    return make


mis_rb_small_16 = grown(mis_rb_small, f"MIS on RB-small {TWICE}", anneal_epochs=70)
mis_rb_small_32 = grown(
    mis_rb_small_16, f"MIS on RB-small {FOUR_TIMES}", anneal_epochs=60, temperature=0.002, is_cold=True
)
mis_rb_large_16 = grown(
    mis_rb_large,
    f"""MIS on RB-large {TWICE}

    The model of this name trained on for 132 epochs, from a temperature of 0.02, which took 13 minutes more.
    """,
    anneal_epochs=24,
)
mis_rb_large_64 = grown(
    mis_rb_large_16,
    "MIS on RB-large with eight times the steps, grown from the model with twice: minutes on one GPU.",
    anneal_epochs=25,
    num_steps=64,
    temperature=0.002,
    is_cold=True,
)
max_clique_rb_small_32 = grown(
    max_clique_rb_small, f"Maximum clique on RB-small {TWICE}", anneal_epochs=165, temperature=0.01, is_cold=True
)
max_cut_ba_small_12 = grown(max_cut_ba_small, f"Maximum cut on BA-small {TWICE}", anneal_epochs=60, temperature=0.1)
max_cut_ba_small_24 = grown(max_cut_ba_small_12, f"Maximum cut on BA-small {FOUR_TIMES}", anneal_epochs=50)
max_cut_ba_small_48 = grown(
    max_cut_ba_small_24, f"Maximum cut on BA-small {EIGHT_TIMES}", anneal_epochs=45, temperature=0.004, is_cold=True
)
mds_ba_small_12 = grown(mds_ba_small, f"Minimum dominating set on BA-small {TWICE}", anneal_epochs=60)
mds_ba_small_24 = grown(mds_ba_small_12, f"Dominating set on BA-small {FOUR_TIMES}", anneal_epochs=50)
mds_ba_small_48 = grown(
    mds_ba_small_24, f"Dominating set on BA-small {EIGHT_TIMES}", anneal_epochs=45, temperature=0.003, is_cold=True
)
mis_sparse_12 = grown(mis_sparse, f"MIS on sparse graphs {TWICE}", anneal_epochs=52)
max_cut_sparse_12 = grown(max_cut_sparse, f"Maximum cut on sparse graphs {TWICE}", anneal_epochs=52)
max_cut_sparse_weighted_24 = grown(
    max_cut_sparse_weighted,
    "Maximum cut on sparse graphs with edge weights, four times the steps, grown from the shipped model: minutes.",
    anneal_epochs=16,
    num_steps=24,
    temperature=0.005,
    is_cold=True,
)
max_cut_hubs_24 = grown(
    max_cut_hubs,
    "Maximum cut on graphs with hubs, the narrow network with four times the steps: minutes on one GPU.",
    anneal_epochs=60,
    num_steps=24,
    temperature=0.02,
)
mds_sparse_12 = grown(mds_sparse, f"Dominating set on sparse graphs {TWICE}", anneal_epochs=52)
mds_sparse_24 = grown(
    mds_sparse_12,
    "Dominating set on sparse graphs with four times the steps, grown from the model with two: minutes on one GPU.",
    anneal_epochs=8,
    temperature=0.005,
    is_cold=True,
)


def mds_sparse_48() -> TrainConfig:
    """Dominating set on sparse graphs with eight times the steps, on twice the graphs: minutes on one GPU."""
    return replace(
        mds_sparse_24(),
        start_from="mds-sparse-24",
        num_steps=48,
        start_temperature=0.003,
        anneal_epochs=20,
        num_train_graphs=8000,
    )


def mis_sparse_48() -> TrainConfig:
    """MIS on sparse graphs with eight times the steps, on twice the graphs: minutes on one GPU."""
    return replace(mds_sparse_48(), problem="mis", start_from="mis-sparse-12")


def max_cut_sparse_48() -> TrainConfig:
    """Maximum cut on sparse graphs with eight times the steps, on twice the graphs: minutes on one GPU."""
    return replace(mds_sparse_48(), problem="max-cut", start_from="max-cut-sparse-12", start_temperature=0.004)


def one_step(recipe: Callable[[], TrainConfig], *, anneal: bool) -> Callable[[], TrainConfig]:
    """A baseline for a recipe's problem and graphs: the same network with one diffusion step.

    EGN (Sec. 4.2) minimises the energy alone, EGN-Anneal (Sec. 4.3) the free energy while the temperature falls. If the
    recipe starts from a model for smaller graphs, the baseline starts from the baseline for those graphs.
    """

    suffix = "egn-anneal" if anneal else "egn"

    def make() -> TrainConfig:
        config = recipe()
        return replace(
            config,
            num_steps=1,
            noise="annealed",
            start_temperature=config.start_temperature if anneal else 0.0,
            anneal_epochs=60,
            num_random_features=5,
            start_from=f"{config.start_from}-{suffix}" if config.start_from else "",
        )

    make.__name__ = f"{recipe.__name__}_{suffix.replace('-', '_')}"
    make.__doc__ = f"The baseline {'EGN-Anneal' if anneal else 'EGN'} for {recipe.__name__.replace('_', '-')}."
    return make


RECIPES: dict[str, Callable[[], TrainConfig]] = {
    recipe.__name__.replace("_", "-"): recipe
    for recipe in (
        *(mis_rb_small, max_clique_rb_small, max_cut_ba_small, mds_ba_small, qubo_random),
        *(mis_rb_large, max_cut_ba_large, mds_ba_large, mvc_rb_200, max_cut_er, max_cut_gset, mis_rb_100),
        *(mis_rb_small_16, mis_rb_small_32, max_cut_ba_small_12, mds_ba_small_12, mds_ba_small_48),
        *(mis_rb_large_16, max_clique_rb_small_32, max_cut_ba_small_24, mds_ba_small_24),
        *(mis_rb_large_64, max_cut_ba_small_48),
        *(mis_sparse, max_cut_sparse, mds_sparse, mis_sparse_12, max_cut_sparse_12, mds_sparse_12),
        *(max_cut_sparse_weighted, max_cut_sparse_weighted_24, mds_sparse_24),
        *(mds_sparse_48, mis_sparse_48, max_cut_sparse_48, max_cut_hubs, max_cut_hubs_24),
        *(mis_tiny, mvc_tiny, max_clique_tiny, max_cut_tiny, mds_tiny, qubo_tiny),
        *PAPER,
        *(
            one_step(recipe, anneal=anneal)
            for recipe in (
                *(mis_rb_small, max_clique_rb_small, max_cut_ba_small, mds_ba_small),
                *(mis_rb_large, max_cut_ba_large, mds_ba_large, mvc_rb_200),
            )
            for anneal in (False, True)
        ),
    )
}
