"""Anthropic Messages, also on Vertex AI."""
