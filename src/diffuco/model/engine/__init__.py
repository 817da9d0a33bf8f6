"""The same network, computed faster."""
