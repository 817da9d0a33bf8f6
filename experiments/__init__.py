"""How the project's numbers came about: the paper's tables and figures, and the scripts behind the shipped models."""
