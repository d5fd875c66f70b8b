"""Bytes to structure and back, for any provider."""
