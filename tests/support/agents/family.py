"""An agent that does nothing itself: it starts a Python child, a curl child and a Node child."""

import subprocess
import sys
from pathlib import Path

here = Path(__file__).parent
commands = [
    [sys.executable, str(here / "openai_repeat.py")],
    ["sh", str(here / "curl_call.sh")],
    ["node", str(here.parent / "node" / "clients.mjs"), "fetch"],
]
for command in commands:
    subprocess.run(command, check=True, timeout=60)
