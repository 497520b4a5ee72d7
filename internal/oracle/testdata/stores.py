"""The official Python client stores things, and gives them to sessions: python stores.py URL TOKEN."""

import sys

import anthropic

url, token = sys.argv[1:]
client = anthropic.Anthropic(base_url=url, api_key=token, max_retries=0, timeout=60)
beta = client.beta
steps = 0


def step(name):
    global steps
    steps += 1
    print(f"step {steps}: {name}", flush=True)


def want(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what} is {got!r}, want {wanted!r}")


def refused(f, status):
    try:
        f()
    except anthropic.APIStatusError as err:
        want("status", err.status_code, status)
        want("shape", err.body["type"], "error")
        return
    sys.exit("it was not refused")


def say(session, text):
    return beta.sessions.events.send(session, events=[{"type": "user.message", "content": [{"type": "text", "text": text}]}])


def until(stream, kind):
    out = []
    for event in stream:
        out.append(event)
        if event.type == kind:
            return out
    sys.exit(f"the stream ends before {kind}: {[e.type for e in out]}")


def find(events, kind):
    return next(e for e in events if e.type == kind)


def ran(session, text):
    with beta.sessions.events.stream(session) as stream:
        say(session, text)
        return " ".join(e.content[0].text for e in until(stream, "session.status_idle") if e.type == "agent.tool_result")


agent = beta.agents.create(name="helper", model="script", tools=[{"type": "agent_toolset_20260401"}])
env = beta.environments.create(name="box")
stores = beta.memory_stores
step("create, update and list a memory store")
store = stores.create(name="Team Notes", metadata={"a": "b"})
want("description", stores.update(store.id, description="what we know").description, "what we know")
want("stores", [m.id for m in stores.list()], [store.id])
step("create, read and update a memory")
memory = stores.memories.create(store.id, path="/a/one.md", content="first")
got = stores.memories.retrieve(memory.id, memory_store_id=store.id)
want("content", got.content, "first")
expected = {"type": "content_sha256", "content_sha256": got.content_sha256}
stores.memories.update(memory.id, memory_store_id=store.id, content="second", precondition=expected)
refused(lambda: stores.memories.update(memory.id, memory_store_id=store.id, content="third", precondition=expected), 409)
step("list memories by depth")
want("memories", [m.path for m in stores.memories.list(store.id, depth=1)], ["/a/"])
step("an agent reads a store that is read-only")
session = beta.sessions.create(
    agent=agent.id, environment_id=env.id,
    resources=[{"type": "memory_store", "memory_store_id": store.id, "access": "read_only"}],
)
mount = session.resources[0].mount_path
want("read", "second" in ran(session.id, 'call: memory_store {"command":"read","path":"%s/a/one.md"}' % mount), True)
refusal = ran(session.id, 'call: memory_store {"command":"write","path":"%s/b","content":"x"}' % mount)
want("refused", "read-only" in refusal, True)
step("versions are listed and redacted")
versions = list(stores.memory_versions.list(store.id, memory_id=memory.id))
want("operations", [v.operation for v in versions], ["modified", "created"])
want("redacted", stores.memory_versions.redact(versions[1].id, memory_store_id=store.id).redacted_at is not None, True)
step("delete a memory, archive and delete a store")
stores.memories.delete(memory.id, memory_store_id=store.id)
want("archived", stores.archive(store.id).archived_at is not None, True)
want("deleted", stores.delete(store.id).type, "memory_store_deleted")
print(f"{steps} steps")
