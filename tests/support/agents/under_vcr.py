"""Runs agents while the real vcrpy records them. Arguments: the provider's port, the cassette, the agents' files.

Every name leads to the provider on loopback, so that the cassette holds the providers' own URLs.
"""

import asyncio
import runpy
import socket
import sys

import vcr

port, cassette, agents = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
ask_the_system = socket.getaddrinfo


def to_the_provider(host, _port, *args, **named):  # type: ignore[no-untyped-def]
    return ask_the_system("127.0.0.1", port, *args, **named)


def from_an_event_loop(loop, factory, host=None, _port=None, **named):  # type: ignore[no-untyped-def]
    place = () if host is None else ("127.0.0.1", port)
    return connect_from_a_loop(loop, factory, *place, **named)


socket.getaddrinfo = to_the_provider
connect_from_a_loop = asyncio.BaseEventLoop.create_connection
asyncio.BaseEventLoop.create_connection = from_an_event_loop
serializer = "json" if cassette.endswith(".json") else "yaml"
with vcr.VCR(record_mode="all", serializer=serializer).use_cassette(cassette):
    for agent in agents:
        sys.argv = [agent]
        runpy.run_path(agent, run_name="__main__")
