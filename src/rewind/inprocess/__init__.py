"""A run inside this very process: its connections go to the one gateway that all runs of the process share."""
