import pytest

from rewind.model.program import program_of


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ((), ""),
        (("./agent", "--case", "7"), "agent"),
        (("/usr/bin/python3.11", "-u", "agents/refund.py", "--case", "7"), "python3.11 agents/refund.py"),
        (("python", "-m", "agents.refund", "7"), "python -m agents.refund"),
        (("python", "-c", "print('hello')"), "python -c"),
        (("python",), "python"),
        (("node", "--enable-source-maps", "dist/agent.js", "7"), "node dist/agent.js"),
        (("uv", "run", "--frozen", "python", "agent.py", "7"), "uv run python agent.py"),
        (("npm", "run", "agent", "--", "7"), "npm run agent"),
        (("npx", "-y", "tsx", "agent.ts", "7"), "npx tsx agent.ts"),
        (("env", "A=1", "B=2", "bash", "run.sh", "7"), "env bash run.sh"),
        (("claude", "-p", "a long prompt"), "claude"),
        ((1, None), "1"),
    ],
)
def test_a_program_is_what_was_run_without_its_arguments(command, program):
    assert program_of(command) == program
