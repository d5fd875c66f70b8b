"""The use cases: they join the rooms and own nothing else."""
