"""The edits of a fork: what they say, and what they do to a request and to later ones."""
