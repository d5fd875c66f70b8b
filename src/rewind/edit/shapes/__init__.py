"""Messages without accent, written in the words of one API."""
