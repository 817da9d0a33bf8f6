"""The diffusion process: mean-field steps, noise distributions, the reverse process and the training loss."""
