"""Tells the test where the gateway is, then waits until the test lets go. It makes no call and prints nothing."""

import json
import os

# Opened before the test is told, so that the test cannot let go unheard.
with open("door.fifo") as fifo:
    with open("door.tmp", "w") as door:
        json.dump(dict(os.environ), door)
    os.replace("door.tmp", "door.json")
    fifo.read()
