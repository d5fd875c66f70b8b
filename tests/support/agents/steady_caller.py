"""Makes small calls and streams without end, and notes each answer in a file once it has it whole.

Arguments: note file, number of calls. The first line of the file is the agent's process id; then one line per answer:
number, SHA-256 of the body, length. A line is one ``write``, so a killed agent leaves only whole lines.
"""

import hashlib
import http.client
import json
import os
import ssl
import sys
from urllib.parse import urlsplit

notes = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.write(notes, f"{os.getpid()}\n".encode())
proxy = urlsplit(os.environ["HTTPS_PROXY"])
line = http.client.HTTPSConnection(proxy.hostname, proxy.port, context=ssl.create_default_context(), timeout=30)
line.set_tunnel("api.openai.com", 443)
for number in range(int(sys.argv[2])):
    question = {
        "model": "gpt-4o-mini",
        "messages": [{"role": "user", "content": f"question {number}"}],
        "stream": number % 3 == 2,
    }
    line.request("POST", "/v1/chat/completions", json.dumps(question), {"content-type": "application/json"})
    body = line.getresponse().read()
    os.write(notes, f"{number} {hashlib.sha256(body).hexdigest()} {len(body)}\n".encode())
