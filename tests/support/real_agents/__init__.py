"""Real agents against a scripted provider: recorded in one place, replayed in another on another day."""
