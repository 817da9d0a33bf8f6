"""What training minimises: one short file per objective, and the list of all of them."""

from diffuco.training.objectives.base import Objective
from diffuco.training.objectives.forward_kl import ForwardKl
from diffuco.training.objectives.imitation import Imitation
from diffuco.training.objectives.joint_bound import JointBound

__all__ = ["OBJECTIVES", "ForwardKl", "Imitation", "JointBound", "Objective"]

OBJECTIVES: dict[str, type[Objective]] = {objective.name: objective for objective in (JointBound, Imitation, ForwardKl)}
