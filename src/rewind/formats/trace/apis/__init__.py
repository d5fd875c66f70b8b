"""How four APIs put what a model says and what it is told, as far as a trace needs it. Pure functions over JSON."""
