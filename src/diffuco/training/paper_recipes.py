"""The paper's own hyperparameters (App. C.5): one recipe per row of its table, hours to days on one GPU."""

from dataclasses import replace

from diffuco.training.config import TrainConfig


def mis_rb_small_paper() -> TrainConfig:
    """MIS on RB-small, as in the paper."""
    return TrainConfig(
        problem="mis",
        dataset="rb-small",
        num_steps=6,
        start_temperature=0.4,
        anneal_epochs=4000,
        learning_rate_schedule="constant",
    )


def mis_rb_large_paper() -> TrainConfig:
    """MIS on RB-large, as in the paper."""
    return replace(
        mis_rb_small_paper(),
        dataset="rb-large",
        num_steps=4,
        start_temperature=0.3,
        anneal_epochs=3000,
        num_layers=7,
        graphs_per_batch=18,
        samples_per_graph=5,
    )


def max_clique_rb_small_paper() -> TrainConfig:
    """Maximum clique on RB-small, as in the paper; the only RB row without random node features."""
    return replace(
        mis_rb_small_paper(),
        problem="max-clique",
        num_steps=5,
        start_temperature=0.5,
        anneal_epochs=3000,
        noise="categorical",
        num_random_features=0,
        graphs_per_batch=20,
        samples_per_graph=8,
    )


def mvc_rb_200_paper() -> TrainConfig:
    """Minimum vertex cover on RB-200, as in the paper."""
    return replace(
        mis_rb_small_paper(),
        problem="mvc",
        dataset="rb-200",
        num_steps=4,
        anneal_epochs=4500,
        learning_rate=0.001,
        num_train_graphs=2000,
    )


def max_cut_ba_small_paper() -> TrainConfig:
    """Maximum cut on BA-small, as in the paper, which has random node features on RB graphs only."""
    return replace(
        mis_rb_small_paper(),
        problem="max-cut",
        dataset="ba-small",
        num_steps=4,
        start_temperature=0.2,
        anneal_epochs=2000,
        num_random_features=0,
        graphs_per_batch=20,
    )


def max_cut_ba_large_paper() -> TrainConfig:
    """Maximum cut on BA-large, as in the paper."""
    return replace(max_cut_ba_small_paper(), dataset="ba-large", num_steps=6, anneal_epochs=1000, num_layers=4)


def mds_ba_small_paper() -> TrainConfig:
    """Minimum dominating set on BA-small, as in the paper."""
    return replace(max_cut_ba_small_paper(), problem="mds", num_steps=5, start_temperature=0.3, learning_rate=0.003)


def mds_ba_large_paper() -> TrainConfig:
    """Minimum dominating set on BA-large, as in the paper."""
    return replace(mds_ba_small_paper(), dataset="ba-large", num_steps=3)


PAPER = (
    *(mis_rb_small_paper, mis_rb_large_paper, max_clique_rb_small_paper, mvc_rb_200_paper),
    *(max_cut_ba_small_paper, max_cut_ba_large_paper, mds_ba_small_paper, mds_ba_large_paper),
)
