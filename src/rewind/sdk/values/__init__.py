"""Python values as JSON, and back: arguments, results and exceptions of tools."""
