"""Known secrets and how they are removed; unknown ones and how they are found."""
