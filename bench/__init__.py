"""How fast Rewind is, beside no proxy at all and beside mitmproxy. Figures, never a test that fails on time."""
