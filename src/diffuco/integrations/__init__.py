"""diffuco inside tools that people already use; each is an optional package."""
