"""diffuco inside the tools that people already use, each an optional package."""
