"""What a run was about: its conversations, the tools between the calls, and what the model read each time."""
