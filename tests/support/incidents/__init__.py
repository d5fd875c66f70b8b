"""Incidents in runs of models that never repeat themselves: what bisect is judged by. See README.md."""
