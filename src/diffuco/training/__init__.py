"""Training: configurations, recipes, resumable state and the loop."""
