"""A conversation that grows: every turn sends all that was said before. Arguments: turns, seed."""

import hashlib
import http.client
import json
import os
import random
import ssl
import sys
from urllib.parse import urlsplit

from saying import say

turns, chance = int(sys.argv[1]), random.Random(int(sys.argv[2]))
words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 10))) for _ in range(3000)]
proxy = urlsplit(os.environ["HTTPS_PROXY"])
line = http.client.HTTPSConnection(proxy.hostname, proxy.port, context=ssl.create_default_context(), timeout=60)
line.set_tunnel("api.openai.com", 443)
messages = [{"role": "system", "content": " ".join(chance.choices(words, k=150))}]
for _turn in range(turns):
    messages.append({"role": "user", "content": " ".join(chance.choices(words, k=150))})
    body = json.dumps({"model": "gpt-4o-mini", "messages": messages}).encode()
    line.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    answer = line.getresponse().read()
    messages.append(json.loads(answer)["choices"][0]["message"])
    say(sent=len(body), sha256=hashlib.sha256(answer).hexdigest())
