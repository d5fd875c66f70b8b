"""Asks over bare sockets, as quick to start as Python is, and tells the digest of each answer.

What it asks does not depend on what it was answered: each answer is judged by itself. Its lines also go to the file
that ``NOTES`` names.
"""

import os
import socket
import sys
from hashlib import sha256

HOST = "api.openai.com"
PROXY = os.environ["HTTP_PROXY"].split("://", 1)[-1].rpartition("@")[2].strip("/")
FRAMES = 12


def connected():
    name, _, port = PROXY.rpartition(":")
    sock = socket.create_connection((name, int(port)), timeout=20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def asked(path, body, headers=()):
    lines = [f"{'POST' if body else 'GET'} http://{HOST}{path} HTTP/1.1", f"Host: {HOST}", *headers]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def unchunked(data):
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        size = int(size, 16)
        if not size:
            return body, True
        body, data = body + data[:size], data[size + 2 :]
    return body, False


def answer(path, body):
    with connected() as sock:
        sock.sendall(asked(path, body))
        data = b""
        while piece := sock.recv(65536):
            data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    if not head:
        return "closed"
    status = head.split(b" ")[1].decode()
    whole = True
    if b"transfer-encoding: chunked" in head.lower():
        rest, whole = unchunked(rest)
    return f"{status} {sha256(rest).hexdigest()} {len(rest)}{'' if whole else ' cut'}"


def messages(count, extra=""):
    said = ",".join(f'{{"role":"user","content":"Question {n} about the refund"}}' for n in range(count))
    return f'{{"model":"gpt-4o-mini"{extra},"messages":[{said}]}}'.encode()


def frame(text):
    data = text.encode()
    return bytes([0x81, 0x80 | len(data)]) + bytes(4) + data


def talk():
    with connected() as sock:
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", key]
        sock.sendall(asked("/v1/realtime?model=gpt-realtime", b"", upgrade))
        data = b""
        while b"\r\n\r\n" not in data:
            piece = sock.recv(65536)
            if not piece:
                return "closed"
            data += piece
        head, _, data = data.partition(b"\r\n\r\n")
        status = head.split(b" ")[1].decode()
        got = []
        for number in range(FRAMES if status == "101" else 0):
            sock.sendall(frame(f'{{"type":"response.create","number":{number}}}'))
            while len(data) < 2 or len(data) < 2 + data[1]:
                piece = sock.recv(65536)
                if not piece:
                    return f"{status} {sha256(b''.join(got)).hexdigest()} {len(got)} cut"
                data += piece
            got.append(data[2 : 2 + data[1]])
            data = data[2 + data[1] :]
        sock.sendall(bytes([0x88, 0x80, 0, 0, 0, 0]))
        return f"{status} {sha256(b''.join(got)).hexdigest()} {len(got)}"


CHAT = "/v1/chat/completions"
ASKS = {
    "1": lambda: answer(CHAT, messages(1)),
    "2": lambda: answer(CHAT, messages(3)),
    "3": lambda: answer(CHAT, messages(5)),
    "4": lambda: answer(CHAT, messages(6, ',"stream":true')),
    "5": talk,
    "6": lambda: answer(CHAT, messages(8, ',"stream":true')),
    "7": lambda: answer(CHAT, messages(9)),
    "8": lambda: answer(CHAT, messages(2, ',"stream":true,"user":"killed"')),
}
for number in sys.argv[1]:
    line = f"{number} {ASKS[number]()}"
    print(line, flush=True)
    if "NOTES" in os.environ:
        with open(os.environ["NOTES"], "a") as notes:
            notes.write(line + "\n")
