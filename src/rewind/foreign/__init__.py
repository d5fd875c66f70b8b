"""Recordings of other tools: their bytes become exchanges of ours, and exchanges become their bytes."""
