"""Recordings of other tools, read into our own words."""
