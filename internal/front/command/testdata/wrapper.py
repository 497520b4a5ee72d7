"""Drive inspan through the SDK that wraps Claude Code. Usage: wrapper.py CLAUDE FOLDER."""

import asyncio
import sys

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

options = ClaudeAgentOptions(cli_path=sys.argv[1], cwd=sys.argv[2])


def blocks(messages, kind):
    return [b for m in messages if isinstance(m, (AssistantMessage, UserMessage)) for b in m.content if isinstance(b, kind)]


async def once():
    got = [m async for m in query(prompt="say: looking\nbash: echo heron\nbash: exit 3", options=options)]
    first, last = got[0], got[-1]
    assert isinstance(first, SystemMessage) and first.subtype == "init" and "bash" in first.data["tools"], first
    assert first.data["cwd"] == sys.argv[2] and first.data["model"] == "script/commands", first
    assert isinstance(last, ResultMessage) and last.subtype == "success" and not last.is_error, last
    assert last.session_id == first.data["session_id"] and last.num_turns == 3 and last.total_cost_usd == 0, last
    assert last.result == "Done: 2 steps." and last.usage["input_tokens"] > 0, last
    used, brought = blocks(got, ToolUseBlock), blocks(got, ToolResultBlock)
    assert [u.name for u in used] == ["bash", "bash"] and used[0].input == {"command": "echo heron"}, used
    assert [r.tool_use_id for r in brought] == [u.id for u in used], brought
    assert "heron" in brought[0].content and not brought[0].is_error, brought
    print("ok one prompt")


async def several():
    async with ClaudeSDKClient(options) as client:
        sessions = set()
        for word in ("one", "two"):
            await client.query("say: " + word)
            got = [m async for m in client.receive_response()]
            assert [b.text for b in blocks(got, TextBlock)] == [word], got
            sessions.add(got[-1].session_id)
        assert len(sessions) == 1, sessions
        print("ok a conversation")
        await client.query("bash: sleep 40733")
        got = []
        async for m in client.receive_response():
            got.append(m)
            if blocks([m], ToolUseBlock):
                await client.interrupt()
        assert got[-1].subtype == "error_during_execution" and got[-1].is_error, got[-1]
        print("ok an interrupt")


asyncio.run(once())
asyncio.run(several())
