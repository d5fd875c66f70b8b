"""A real language model, small enough for a test: SmolLM2-135M, sampled on this machine, offline."""
