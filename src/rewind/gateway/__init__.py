"""The proxy of a run: sockets, TLS, HTTP/1 and WebSockets. Knows nothing of sessions."""
