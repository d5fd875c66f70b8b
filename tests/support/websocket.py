"""The provider's end of a WebSocket, on the sans-I/O protocol of ``websockets``."""

import socket

from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.protocol import State
from websockets.server import ServerProtocol

from support.script import FrameScript, Request


def serve_frames(sock: socket.socket, request: Request, script: FrameScript, *, first: bytes) -> None:
    """Answer the handshake, then each message by the script, until either side closes."""
    protocol = ServerProtocol(max_size=None)
    protocol.receive_data(request.raw + first)
    _flush(sock, protocol)
    while True:
        for event in protocol.events_received():
            if isinstance(event, Handshake):
                response = protocol.accept(event)
                response.headers["x-provider-hit"] = str(request.hit)
                protocol.send_response(response)
                continue
            assert isinstance(event, Frame)
            match event.opcode:
                case Opcode.TEXT:
                    answers = script(bytes(event.data).decode())
                case Opcode.BINARY:
                    answers = script(bytes(event.data))
                case _:
                    answers = []
            for answer in answers:
                if isinstance(answer, str):
                    protocol.send_text(answer.encode())
                else:
                    protocol.send_binary(answer)
        _flush(sock, protocol)
        if protocol.state is State.CLOSED:
            return
        data = sock.recv(65536)
        if data:
            protocol.receive_data(data)
        else:
            protocol.receive_eof()


def _flush(sock: socket.socket, protocol: ServerProtocol) -> None:
    for data in protocol.data_to_send():
        if data:
            sock.sendall(data)
        else:
            sock.shutdown(socket.SHUT_WR)
