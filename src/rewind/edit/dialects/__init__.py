"""Where each API keeps what can be edited: the system prompt, the messages, the results of tools."""
