"""Answers that nobody gave, in the shape of each API, whole or streamed."""
