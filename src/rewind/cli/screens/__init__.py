"""Values as text for people."""
