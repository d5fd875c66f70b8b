"""The folder of recorded sessions, and the DuckDB files made from it."""
