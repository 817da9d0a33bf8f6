"""One way to solve: `diffuco.solve`."""
