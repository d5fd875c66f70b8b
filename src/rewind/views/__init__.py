"""Values → plain JSON, for ``--json`` and for pages alike.

The shapes are a contract: each names its schema, fields are added and never change their meaning.

A view reads values of the use cases and runs none of them. Types whose modules would load an engine are imported for
the type checker alone.
"""
