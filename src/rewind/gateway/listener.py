"""The gateway's port, taken before anything else so that the agent can already be started."""

import select
import socket

from rewind.errors import EnvironmentProblem


def listen(port: int) -> socket.socket:
    """A loopback socket; connections wait in its backlog until the gateway runs."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise EnvironmentProblem(
            f"Port {port} on 127.0.0.1 cannot be used: {error.strerror}.", hint="Leave --port out to take a free one."
        ) from error
    return listener


def has_waiting_client(listener: socket.socket) -> bool:
    """Whether a client has connected and is waiting for the gateway to run."""
    return bool(select.select([listener], [], [], 0)[0])
