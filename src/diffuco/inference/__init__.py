"""A trained model at work: sampling, decoding, refinement, memory and watching."""
