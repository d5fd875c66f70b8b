"""A run inside this very process: its connections are led to a gateway of its own."""
