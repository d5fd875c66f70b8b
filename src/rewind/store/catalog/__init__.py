"""DuckDB over all journals, for questions that cross sessions."""
