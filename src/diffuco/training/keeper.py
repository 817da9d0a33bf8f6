"""What outlives a training process: validated checkpoints with their cards, and the state to resume from."""

from dataclasses import asdict
from pathlib import Path

import torch

from diffuco.foundation.provenance import hardware, source_commit
from diffuco.graphs.statistics import GraphStatistics
from diffuco.inference.sampler import Sampler
from diffuco.model.checkpoint import save_checkpoint
from diffuco.model.gnn import Gnn
from diffuco.training.config import TrainConfig
from diffuco.training.reporting import Reporter
from diffuco.training.resume import Progress, save_state
from diffuco.training.validation import Validation


class Keeper:
    """Validates now and then and writes what has to outlive the process."""

    def __init__(
        self,
        out: Path,
        config: TrainConfig,
        model: Gnn,
        engine: str,
        optimizer: torch.optim.Optimizer,
        validation: Validation,
        statistics: GraphStatistics,
    ) -> None:
        self.out, self.config, self.model, self.engine = out, config, model, engine
        self.optimizer, self.validation, self.statistics = optimizer, validation, statistics

    def keep(self, state: Progress, sampler: Sampler, report: Reporter, *, stops: bool) -> None:
        """After a step, validate and write files when they are due; all but `best` when the sitting ends."""
        config = self.config
        ends = stops or state.step == config.total_steps
        scores: dict[str, float] = {}
        if state.step % config.validate_every == 0 or state.step == config.total_steps:
            scores = self.validation.run(sampler)
            report.validation(state.step, scores)
            if scores["energy"] < state.best_energy:
                state.best_energy = scores["energy"]
                self._save_model("best", state, scores)
        if scores or ends:
            self._save_model("last", state, scores)
        if state.step % config.checkpoint_every == 0 or ends:
            save_state(self.out, config, self.model, self.optimizer, state)

    def _save_model(self, name: str, state: Progress, scores: dict[str, float]) -> None:
        card = {
            "dataset": self.config.dataset,
            "graphs": asdict(self.statistics),
            "training": asdict(self.config),
            "engine": self.engine,
            "step": state.step,
            "minutes": round(state.seconds / 60, 2),
            "validation": scores,
            "commit": source_commit(),
            "hardware": hardware(self.validation.device),
        }
        save_checkpoint(self.out / f"{name}.safetensors", self.model, problem=self.config.problem, card=card)
