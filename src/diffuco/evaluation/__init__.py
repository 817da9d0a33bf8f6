"""How good answers are: measures, references, evaluations and comparisons."""
