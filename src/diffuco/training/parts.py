"""The exchangeable parts of a run: a problem, a network, a noise and an objective.

Each is the one that the configuration names, or one that is given: another name of ours, or an object of the user's.
Instead of an object a class will do, which is then made with the values that the configuration has for its fields; that
of a problem of the user's is made with its own defaults.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

import torch

from diffuco.diffusion.noise import NOISES, Noise, make_noise
from diffuco.foundation.errors import InputError
from diffuco.foundation.names import check_name
from diffuco.model import NETWORKS, Network
from diffuco.model.networks import get_network
from diffuco.pretrained import load_model
from diffuco.problems import Problem, all_problems, get_problem, is_shipped
from diffuco.training.config import TrainConfig
from diffuco.training.objectives import OBJECTIVES, Imitation, Objective
from diffuco.training.objectives.imitation import flipping

AnyProblem = str | type[Problem] | Problem
AnyNetwork = str | type[Network] | Network
AnyNoise = str | type[Noise] | Noise
AnyObjective = str | type[Objective] | Objective

Made = TypeVar("Made")


@dataclass(frozen=True)
class Parts:
    """What a run is made of."""

    config: TrainConfig
    """The configuration, with the names of these very parts."""
    problem: Problem
    network: Network
    """On the CPU, with the parameters that the run begins with."""
    noise: Noise
    objective: Objective

    @property
    def first_objective(self) -> Objective:
        """What the first steps minimise."""
        return Imitation() if self.config.imitation_steps else self.objective

    @property
    def num_examples(self) -> int:
        """Solutions of every training graph that the run learns from."""
        return max(self.first_objective.num_examples, self.objective.num_examples)

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The fields of all parts, as JSON keeps them."""
        network = self.network.config
        named = {"problem": self.problem, "network": network, "noise": self.noise, "objective": self.objective}
        return {name: _in_json(part) for name, part in named.items()}


def choose_parts(
    config: TrainConfig,
    *,
    problem: AnyProblem | None = None,
    network: AnyNetwork | None = None,
    noise: AnyNoise | None = None,
    objective: AnyObjective | None = None,
) -> Parts:
    """The parts that a configuration names, with those that are given in their place.

    >>> config = TrainConfig("mis", "rb-small", num_steps=4, start_temperature=0.3, anneal_epochs=10)
    >>> choose_parts(config, noise="exponential").config.noise
    'exponential'
    """
    chosen_problem = _problem(config, problem)
    settings = _settings(config, chosen_problem)
    chosen_noise = _noise(noise or config.noise, settings, config)
    chosen_objective = _objective(objective or config.objective, settings)
    chosen_network = _network(network or config.network, settings, config)
    check_name(type(chosen_problem), {ours.name: type(ours) for ours in all_problems()}, "problem")
    check_name(type(chosen_noise), NOISES, "noise")
    check_name(type(chosen_objective), OBJECTIVES, "objective")
    config = replace(
        config,
        problem=chosen_problem.name,
        network=chosen_network.name,
        noise=chosen_noise.name,
        objective=chosen_objective.name,
        penalty=getattr(chosen_problem, "penalty", config.penalty),
    )
    parts = Parts(config, chosen_problem, chosen_network, chosen_noise, chosen_objective)
    if parts.first_objective.needs_flips or parts.objective.needs_flips:
        flipping(parts.noise)
    return parts


def _problem(config: TrainConfig, given: AnyProblem | None) -> Problem:
    """A problem of ours gets the penalty of the configuration, unless it is an object; others have their own."""
    problem = get_problem(given or config.problem)
    takes_penalty = not isinstance(given, Problem) and is_shipped(problem) and hasattr(problem, "penalty")
    return get_problem(problem.name, config.penalty) if takes_penalty else problem


def _noise(given: AnyNoise, settings: dict[str, Any], config: TrainConfig) -> Noise:
    return make_noise(_made(given, settings) if isinstance(given, type) else given, config.num_steps)


def _objective(given: AnyObjective, settings: dict[str, Any]) -> Objective:
    if isinstance(given, str):
        if given not in OBJECTIVES:
            raise InputError(f"unknown objective '{given}'; choose one of {', '.join(OBJECTIVES)}")
        given = OBJECTIVES[given]
    return _made(given, settings) if isinstance(given, type) else given


def _network(given: AnyNetwork, settings: dict[str, Any], config: TrainConfig) -> Network:
    """An object keeps its parameters, those of a class depend on the seed alone, unless the run starts from a model."""
    kind = get_network(given) if isinstance(given, str) else given if isinstance(given, type) else type(given)
    check_name(kind, NETWORKS, "network")
    if not issubclass(kind, Network):
        raise InputError(
            f"network class {kind.__name__} is not derived from diffuco.model.Network; derive it from that"
        )
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers are left untouched
        torch.manual_seed(config.seed)
        network = given if isinstance(given, Network) else kind(_made(kind.Config, settings))
        if config.start_from:
            network.load_state_dict(_start(config, network).state_dict())
    if network.config.num_steps != config.num_steps:
        have = f"a network of {network.config.num_steps} steps for a run of {config.num_steps}"
        raise InputError(f"{have}; give both the same num_steps")
    return network


def _start(config: TrainConfig, network: Network) -> Network:
    """The network to start from, with each of its steps repeated if the run has more."""
    start = load_model(config.start_from, network=type(network)).model
    factor, rest = divmod(config.num_steps, start.config.num_steps)
    if rest or replace(start.config, num_steps=config.num_steps) != network.config:
        raise InputError(
            f"model '{config.start_from}' is {start.config}, this run trains {network.config}; give the run the same "
            "layers and features and as many steps or a multiple of them, or another model to start from"
        )
    return start.stretched(factor)


def _settings(config: TrainConfig, problem: Problem) -> dict[str, Any]:
    """What a part may ask of a run: the fields of the configuration, and which weights there are to see."""
    sees_edges = problem.uses_edge_weights
    return asdict(config) | {
        "steps_at_once": config.steps_at_once,
        "weighted": config.weighted and sees_edges,
        "node_weighted": config.weighted and not sees_edges,
    }


def _made(kind: type[Made], settings: dict[str, Any]) -> Made:
    """An object of a dataclass, with the settings that are named like its fields."""
    known = {field.name: settings[field.name] for field in fields(kind) if field.name in settings}  # type: ignore[arg-type]
    try:
        return kind(**known)
    except TypeError as error:
        raise InputError(f"{error}; give an object instead of the class {kind.__name__}") from error


def _in_json(part: Any) -> dict[str, Any]:
    """The fields of a dataclass; of a value that JSON cannot hold, such as a tensor, the type alone."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return dict(json.loads(json.dumps(values, default=lambda value: type(value).__name__, skipkeys=True)))
