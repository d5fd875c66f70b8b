"""The nouns. Frozen values with no behaviour beyond themselves."""
