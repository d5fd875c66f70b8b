"""The only room that knows sockets and TLS."""
