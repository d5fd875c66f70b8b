"""One module per command of ``rewind``."""
