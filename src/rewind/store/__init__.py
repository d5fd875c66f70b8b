"""The only room that knows files and DuckDB."""
