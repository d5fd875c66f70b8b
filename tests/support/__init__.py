"""What the tests stand on: a scripted provider, a command-line runner, and small real agents."""
