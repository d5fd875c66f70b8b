"""How a recorded request is changed, how an answer is made up, and how a conversation is written for another API."""
