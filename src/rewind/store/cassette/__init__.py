"""The cassette: one session as a text file that can be reviewed and shared."""
