"""The official Python client does the steps: python steps.py URL TOKEN REPOSITORY COMMIT.

Each step is a function with the name that steps.txt gives it, and returns what came of it. A line
"kill the server" asks the parent to do that, and to answer with a line. At the end there is a line
"method NAME: HOW" for each method of the client.
"""

import base64
import functools
import http.server
import io
import pathlib
import queue
import sys
import threading
import types
import zipfile

import anthropic

url, token, repository, commit = sys.argv[1:]
steps = {}
kept = types.SimpleNamespace()  # what steps leave for later ones


def connect():
    """Strict: an answer that is not as the client's types have it is an error. Its types know only the events of
    organizations for webhooks, and none of those that its own webhooks are told."""
    global beta, hooks
    client = {"base_url": url, "api_key": token, "max_retries": 0, "timeout": 60}
    beta = anthropic.Anthropic(**client, _strict_response_validation=True).beta
    hooks = anthropic.Anthropic(**client).beta.organization.webhooks


used = {}  # methods, and how the client has had their answers


def watch(resource, path):
    """Yields the methods of a resource, and notes each use of them."""
    for name in sorted(n for n in dir(type(resource)) if not n.startswith(("_", "with_"))):
        below, at = getattr(resource, name), f"{path}.{name}"
        if isinstance(below, anthropic._resource.SyncAPIResource):
            yield from watch(below, at)
        elif callable(below):
            yield at
            setattr(type(resource), name, noted(getattr(type(resource), name), at))


def noted(method, at):
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        strict = self._client._strict_response_validation
        try:
            answer = method(self, *args, **kwargs)
        except anthropic.APIStatusError as err:
            used.setdefault(at, f"refused with {err.status_code}")
            raise
        used[at] = "strict" if strict else "not strict"
        return answer

    return call


def step(name):
    def add(f):
        steps[name] = f
        return f

    return add


def text(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return " ".join(text(v) for v in value)
    return str(value)


def outcome(*pairs):
    return ", ".join(f"{name}={text(value)}" for name, value in zip(pairs[::2], pairs[1::2]))


def refusal(f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except anthropic.APIStatusError as err:
        if not err.request_id:
            raise
        error = err.body["error"]
        quoted = error["message"].replace("\\", "\\\\").replace('"', '\\"')
        return f'{err.status_code} {error["type"]} "{quoted}"'
    raise AssertionError("it was not refused")


def message(words):
    return {"type": "user.message", "content": [{"type": "text", "text": words}]}


def send(session, *events, **kwargs):
    return beta.sessions.events.send(session, events=list(events), **kwargs)


def until(stream, kind):
    out = []
    for event in stream:
        out.append(event)
        if event.type == kind:
            return out
    raise AssertionError(f"the stream ends before {kind}: {[e.type for e in out]}")


def find(events, kind):
    return next(e for e in events if e.type == kind)


def follow(session):
    return beta.sessions.events.stream(session, event_deltas=["agent.message", "agent.thinking"])


def tells(session, *events):
    with follow(session) as stream:
        send(session, *events)
        return until(stream, "session.status_idle")


def stored(events):
    return [e.type for e in events if e.type not in ("event_start", "event_delta")]


def settled(session):
    while True:
        got = [e.type for e in beta.sessions.events.list(session, limit=1000)]
        if got and got[-1] == "session.status_idle":
            return got


def ran(session, words):
    return " ".join(e.content[0].text for e in tells(session, message(words)) if e.type == "agent.tool_result")


def session(**kwargs):
    return beta.sessions.create(agent=kept.agent, environment_id=kept.env, **kwargs)


toolset = {"type": "agent_toolset_20260401"}


@step("create an agent")
def _():
    a = beta.agents.create(name="helper", model="script", system="Be brief.", tools=[toolset], metadata={"team": "a"})
    kept.agent = a.id
    return outcome("agent", a.id, "version", a.version, "system", a.system, "team", a.metadata["team"])


@step("name a model of the vendor")
def _():
    a = beta.agents.create(name="other", model="claude-opus-5-5")
    return outcome("agent", a.id, "model", a.model.id)


@step("refuse an unknown field")
def _():
    return refusal(beta.agents.create, name="x", model="script", extra_body={"nmae": 1})


@step("read an agent")
def _():
    a = beta.agents.retrieve(kept.agent)
    return outcome("agent", a.id, "name", a.name)


@step("update an agent")
def _():
    a = beta.agents.update(kept.agent, version=1, description="helps")
    return outcome("version", a.version, "description", a.description, "name", a.name)


@step("refuse an update of an old version")
def _():
    return refusal(beta.agents.update, kept.agent, version=1, name="x")


@step("list the versions of an agent")
def _():
    return outcome("versions", [a.version for a in beta.agents.versions.list(kept.agent, limit=1)])


@step("list agents")
def _():
    return outcome("agents", [a.id for a in beta.agents.list(limit=1)])


@step("create an environment")
def _():
    e = beta.environments.create(name="box", config={"type": "cloud", "networking": {"type": "unrestricted"}})
    kept.env = e.id
    return outcome("environment", e.id, "type", e.config.type, "network", e.config.networking.type)


@step("update and list environments")
def _():
    beta.environments.update(kept.env, description="one")
    got = list(beta.environments.list())
    return outcome("environments", len(got), "description", got[0].description)


@step("limit a network")
def _():
    made = beta.environments.create(name="limited", config={"type": "cloud", "networking": {"type": "limited"}})
    n = beta.environments.retrieve(made.id).config.networking
    gone = beta.environments.delete(made.id)
    return outcome(
        "network", n.type, "hosts", len(n.allowed_hosts), "managers", n.allow_package_managers, "servers", n.allow_mcp_servers,
        "deleted", gone.id,
    )


@step("create a session")
def _():
    s = session(title="first", metadata={"k": "v"})
    kept.first = s.id
    return outcome("session", s.id, "status", s.status, "version", s.agent.version, "title", s.title, "k", s.metadata["k"])


@step("stream an answer with previews")
def _():
    got = tells(kept.first, message("reason: hm\nsay: hello there"))
    said = find(got, "agent.message")
    previewed = "".join(e.delta.content.text for e in got if e.type == "event_delta" and e.event_id == said.id)
    return outcome(
        "events", stored(got), "first preview", find(got, "event_start").event.id, "thinking", find(got, "agent.thinking").id,
        "previewed", previewed, "text", said.content[0].text, "ended", find(got, "span.model_request_end").model_request_start_id,
        "request", find(got, "span.model_request_start").id, "stop", find(got, "session.status_idle").stop_reason.type,
    )


@step("run a tool")
def _():
    got = tells(kept.first, message("bash: echo made > file"))
    use, result = find(got, "agent.tool_use"), find(got, "agent.tool_result")
    return outcome(
        "events", stored(got), "tool", use.name, "permission", use.evaluated_permission, "call", use.id,
        "result of", result.tool_use_id, "error", result.is_error,
    )


@step("read a file")
def _():
    got = tells(kept.first, message("read: file"))
    use = find(got, "agent.tool_use")
    made = "made" in find(got, "agent.tool_result").content[0].text
    return outcome("tool", use.name, "file_path", use.input["file_path"], "made", made)


@step("list what was streamed")
def _():
    listed = [e.id for e in beta.sessions.events.list(kept.first, limit=3)]
    with beta.sessions.events.stream(kept.first, extra_headers={"Last-Event-ID": listed[0]}) as stream:
        streamed = [next(stream).id for _ in listed[1:]]
    return outcome("listed", len(listed), "streamed behind the first", len(streamed), "the same", streamed == listed[1:])


@step("filter events")
def _():
    got = beta.sessions.events.list(kept.first, types=["user.message"], order="desc").data
    return outcome("messages", len(got), "last", got[0].content[0].text)


@step("send an image and a document")
def _():
    pixel = base64.b64encode(
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
        b"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
    ).decode()
    m = message("say: seen")
    m["content"].append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}})
    m["content"].append({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a plan"}})
    said = find(tells(kept.first, m), "user.message").content
    return outcome("blocks", [b.type for b in said], "the same image", said[1].source.data == pixel, "document", "a plan" in said[2].text)


@step("send a system message")
def _():
    with follow(kept.first) as stream:
        send(kept.first, {"type": "system.message", "content": [{"type": "text", "text": "Mind the gap."}]})
        got = until(stream, "system.message")
    return outcome("events", stored(got), "status", beta.sessions.retrieve(kept.first).status)


@step("interrupt a run")
def _():
    with follow(kept.first) as stream:
        send(kept.first, message("bash: sleep 600"))
        until(stream, "agent.tool_use")
        running = beta.sessions.retrieve(kept.first)
        send(kept.first, {"type": "user.interrupt"})
        got = until(stream, "session.status_idle")
    return outcome(
        "status", running.status, "interrupt", find(got, "user.interrupt").id,
        "results", len([e for e in got if e.type == "agent.tool_result"]), "stop", find(got, "session.status_idle").stop_reason.type,
    )


@step("kill the server")
def _():
    print("kill the server", flush=True)
    sys.stdin.readline()
    connect()
    return outcome("text", find(tells(kept.first, message("say: still here")), "agent.message").content[0].text)


@step("update a session")
def _():
    with follow(kept.first) as stream:
        s = beta.sessions.update(kept.first, title="second", metadata={"l": "w"})
        got = until(stream, "session.updated")
    return outcome("title", s.title, "metadata", len(s.metadata), "told", find(got, "session.updated").title)


@step("give a session other tools")
def _():
    configs = [{"name": "bash", "permission_policy": {"type": "always_ask"}}, {"name": "write", "enabled": False}]
    weather = {
        "type": "custom", "name": "weather", "description": "Tells the weather.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    s = beta.sessions.update(kept.first, agent={"tools": [{**toolset, "configs": configs}, weather]})
    return outcome("tools", len(s.agent.tools))


@step("let a call ask")
def _():
    got = tells(kept.first, message("bash: echo asked"))
    use, stop = find(got, "agent.tool_use"), find(got, "session.status_idle").stop_reason
    kept.asked = use.id
    return outcome("call", use.id, "permission", use.evaluated_permission, "stop", stop.type, "waits for", stop.event_ids)


def confirm(call, result, **why):
    return {"type": "user.tool_confirmation", "tool_use_id": call, "result": result, **why}


@step("confirm a call")
def _():
    got = tells(kept.first, confirm(kept.asked, "allow"))
    return outcome(
        "events", stored(got), "confirmed", find(got, "user.tool_confirmation").tool_use_id,
        "asked", "asked" in find(got, "agent.tool_result").content[0].text,
    )


@step("confirm a call again")
def _():
    return outcome(
        "again", refusal(send, kept.first, confirm(kept.asked, "allow")), "unknown", refusal(send, kept.first, confirm("sevt_none", "allow"))
    )


@step("deny a call")
def _():
    use = find(tells(kept.first, message("bash: echo denied")), "agent.tool_use")
    result = find(tells(kept.first, confirm(use.id, "deny", deny_message="too loud")), "agent.tool_result")
    return outcome("error", result.is_error, "reason", "too loud" in result.content[0].text)


@step("call a tool that is off")
def _():
    got = tells(kept.first, message('call: write_file {"path":"x","content":"y"}'))
    use = find(got, "agent.tool_use")
    return outcome("tool", use.name, "permission", use.evaluated_permission, "error", find(got, "agent.tool_result").is_error)


def forecast(failed):
    use = find(tells(kept.first, message('call: weather {"city":"Oslo"}')), "agent.custom_tool_use")
    got = tells(kept.first, {
        "type": "user.custom_tool_result", "custom_tool_use_id": use.id, "is_error": failed,
        "content": [{"type": "text", "text": "rain"}],
    })
    result = find(got, "user.custom_tool_result")
    return outcome(
        "tool", use.name, "city", use.input["city"], "call", use.id, "result of", result.custom_tool_use_id,
        "text", result.content[0].text, "error", bool(result.is_error), "events", stored(got),
    )


@step("answer a tool of the client's")
def _():
    return forecast(False)


@step("fail a tool of the client's")
def _():
    return forecast(True)


@step("delegate to a subagent")
def _():
    lead = beta.agents.create(
        name="lead", model="script", tools=[toolset], multiagent={"type": "coordinator", "agents": [{"type": "self"}]}
    )
    kept.lead = beta.sessions.create(agent=lead.id, environment_id=kept.env).id
    got = tells(kept.lead, message('call: spawn_agent {"task":"say: part done"}'))
    kept.thread = find(got, "session.thread_created").session_thread_id
    return outcome("thread", kept.thread, "received from", find(got, "agent.thread_message_received").from_session_thread_id)


@step("read a thread")
def _():
    threads = list(beta.sessions.threads.list(kept.lead))
    thread = beta.sessions.threads.retrieve(kept.thread, session_id=kept.lead)
    events = list(beta.sessions.threads.events.list(kept.thread, session_id=kept.lead))
    said = [e.content[0].text for e in events if e.type == "agent.message"]
    behind = {"Last-Event-ID": events[0].id}
    with beta.sessions.threads.events.stream(kept.thread, session_id=kept.lead, extra_headers=behind) as stream:
        resumed = next(stream).id == events[1].id
    parent = thread.parent_thread_id == threads[0].id
    return outcome("threads", len(threads), "its parent is the first", parent, "said", said[-1], "resumed", resumed)


@step("archive a thread")
def _():
    return outcome("archived", beta.sessions.threads.archive(kept.thread, session_id=kept.lead).archived_at is not None)


@step("count the usage")
def _():
    usage = beta.sessions.retrieve(kept.first).usage
    return outcome("input", usage.input_tokens > 0, "output", usage.output_tokens > 0)


@step("list sessions")
def _():
    idle = list(beta.sessions.list(agent_id=kept.agent, statuses=["idle"]))
    return outcome("idle", len(idle), "of version 1", len(list(beta.sessions.list(agent_id=kept.agent, agent_version=1))))


@step("begin with a message")
def _():
    s = beta.sessions.create(
        agent={"type": "agent", "id": kept.agent, "version": 1}, environment_id=kept.env, initial_events=[message("say: at once")]
    )
    return outcome("version", s.agent.version, "events", settled(s.id))


@step("override an agent")
def _():
    agent = {"type": "agent_with_overrides", "id": kept.agent, "system": "Be loud."}
    return outcome("system", beta.sessions.create(agent=agent, environment_id=kept.env).agent.system)


@step("send twice with a key")
def _():
    sessions = [session(extra_headers={"Idempotency-Key": "once"}).id for _ in range(2)]
    sent = [send(sessions[0], message("say: once"), extra_headers={"Idempotency-Key": "message"}).data[0].id for _ in range(2)]
    return outcome("sessions", sessions, "messages", sent, "events", settled(sessions[0]))


@step("refuse a stranger")
def _():
    return refusal(anthropic.Anthropic(base_url=url, api_key="sk-none", max_retries=0).beta.agents.retrieve, kept.agent)


def grade(verdict):
    s = session()
    got = tells(s.id, {
        "type": "user.define_outcome", "description": "Make a file.", "max_iterations": 2,
        "rubric": {"type": "text", "content": 'say: {"result":"%s","explanation":"so it is"}' % verdict},
    })
    s = beta.sessions.retrieve(s.id)
    return outcome(
        "verdicts", [e.result for e in got if e.type == "span.outcome_evaluation_end"],
        "defined", find(got, "user.define_outcome").outcome_id, "graded", s.outcome_evaluations[0].outcome_id,
        "result", s.outcome_evaluations[0].result, "status", s.status, "runs", len([e for e in got if e.type == "session.status_running"]),
    )


@step("grade an outcome that is reached")
def _():
    return grade("satisfied")


@step("grade an outcome that needs revision")
def _():
    return grade("needs_revision")


@step("grade without a verdict")
def _():
    return grade("no verdict")


def deploy(expression, zone, agent=None):
    return dict(
        name="nightly", agent=agent or kept.agent, environment_id=kept.env, metadata={"team": "a"},
        initial_events=[{"type": "system.message", "content": [{"type": "text", "text": "Be brief."}]}, message("say: by itself")],
        schedule={"type": "cron", "expression": expression, "timezone": zone},
    )


@step("create a deployment")
def _():
    d = beta.deployments.create(**deploy("30 2 * * 1-5", "Europe/Berlin"))
    kept.deployment = d.id
    return outcome(
        "deployment", d.id, "status", d.status, "version", d.agent.version, "team", d.metadata["team"], "expression", d.schedule.expression,
        "zone", d.schedule.timezone, "upcoming", len(d.schedule.upcoming_runs_at), "begins with", d.initial_events[1].content[0].text,
    )


@step("refuse a schedule")
def _():
    create = beta.deployments.create
    return outcome("expression", refusal(create, **deploy("@daily", "UTC")), "zone", refusal(create, **deploy("0 0 * * *", "Mars")))


@step("update, read and list deployments")
def _():
    schedule = {"type": "cron", "expression": "0 3 * * *", "timezone": "UTC"}
    beta.deployments.update(kept.deployment, description="each night", schedule=schedule)
    d = beta.deployments.retrieve(kept.deployment)
    active = list(beta.deployments.list(agent_id=kept.agent, status="active"))
    return outcome("description", d.description, "hour", d.schedule.upcoming_runs_at[0].hour, "active", len(active))


@step("run a deployment")
def _():
    kept.run = r = beta.deployments.run(kept.deployment)
    return outcome("run", r.id, "trigger", r.trigger_context.type, "session", r.session_id, "of", r.deployment_id)


@step("read the session of a run")
def _():
    s = beta.sessions.retrieve(kept.run.session_id)
    return outcome("deployment", s.deployment_id, "events", settled(s.id))


@step("pause and unpause a deployment")
def _():
    p, u = beta.deployments.pause(kept.deployment), beta.deployments.unpause(kept.deployment)
    return outcome("paused", p.status, "why", p.paused_reason.type, "then", u.status)


@step("run a deployment of an archived agent")
def _():
    a = beta.agents.create(name="old", model="script")
    d = beta.deployments.create(**deploy("30 2 * * *", "UTC", a.id))
    beta.agents.archive(a.id)
    failed = beta.deployments.run(d.id)
    return outcome("error", failed.error.type, "session", failed.session_id)


@step("read and list runs")
def _():
    def of(failed):
        return len(list(beta.deployment_runs.list(has_error=failed, trigger_type="manual")))

    return outcome("session", beta.deployment_runs.retrieve(kept.run.id).session_id, "failed", of(True), "others", of(False))


@step("archive a deployment")
def _():
    d = beta.deployments.archive(kept.deployment)
    upcoming = len(d.schedule.upcoming_runs_at or [])
    return outcome("archived", d.archived_at is not None, "upcoming", upcoming, "run", refusal(beta.deployments.run, d.id))


@step("create and update a memory store")
def _():
    kept.store = beta.memory_stores.create(name="Team Notes", metadata={"a": "b"}).id
    beta.memory_stores.update(kept.store, description="what we know")
    got = beta.memory_stores.retrieve(kept.store)
    return outcome("store", got.id, "description", got.description, "a", got.metadata["a"], "stores", len(list(beta.memory_stores.list())))


@step("create and update a memory")
def _():
    memories = beta.memory_stores.memories
    kept.memory = memories.create(kept.store, path="/a/one.md", content="first").id
    got = memories.retrieve(kept.memory, memory_store_id=kept.store)
    change = dict(
        memory_store_id=kept.store, content="second", view="full",
        precondition={"type": "content_sha256", "content_sha256": got.content_sha256},
    )
    changed = memories.update(kept.memory, **change)
    late = refusal(memories.update, kept.memory, **change)
    return outcome("memory", kept.memory, "content", got.content, "changed", changed.content, "late", late)


@step("list memories")
def _():
    beta.memory_stores.memories.create(kept.store, path="/b.md", content="")
    return outcome("memories", [f"{m.type} {m.path}" for m in beta.memory_stores.memories.list(kept.store, depth=1, limit=1)])


def mounted(access):
    s = session(resources=[
        {"type": "memory_store", "memory_store_id": kept.store, "access": access, "instructions": "Look here first."}
    ])
    return s, s.resources[0]


@step("let an agent read and write memories")
def _():
    s, store = mounted("read_write")
    read = ran(s.id, 'call: memory_store {"command":"read","path":"%s/a/one.md"}' % store.mount_path)
    wrote = ran(s.id, 'call: memory_store {"command":"write","path":"%s/c.md","content":"third"}' % store.mount_path)
    versions = list(beta.memory_stores.memory_versions.list(kept.store, session_id=s.id, view="full"))
    return outcome(
        "session", s.id, "mount path", store.mount_path, "read", "second" in read, "wrote", "Created" in wrote,
        "versions", len(versions), "text", versions[0].content, "by", versions[0].created_by.session_id,
    )


@step("mount a memory store for reading")
def _():
    s, store = mounted("read_only")
    wrote = ran(s.id, 'call: memory_store {"command":"write","path":"%s/d.md","content":"x"}' % store.mount_path)
    return outcome("access", store.access, "refused", "read-only" in wrote)


@step("redact a version")
def _():
    versions = beta.memory_stores.memory_versions
    created = list(versions.list(kept.store, memory_id=kept.memory, operation="created"))
    versions.redact(created[0].id, memory_store_id=kept.store)
    got = versions.retrieve(created[0].id, memory_store_id=kept.store)
    return outcome("created", len(created), "text", got.content, "redacted", got.redacted_at is not None)


@step("delete a memory store")
def _():
    stores = beta.memory_stores
    gone = stores.memories.delete(kept.memory, memory_store_id=kept.store)
    archived = stores.archive(kept.store)
    late = refusal(stores.memories.create, kept.store, path="/d", content="")
    deleted = stores.delete(kept.store)
    return outcome("memory", gone.id, "archived", archived.archived_at is not None, "late", late, "deleted", deleted.id)


@step("upload a file")
def _():
    kept.file = beta.files.upload(file=("data.csv", b"a,b", "text/csv"), expires_in_seconds=3600).id
    files, got = list(beta.files.list()), beta.files.retrieve_metadata(kept.file)
    content = beta.files.download(kept.file).read().decode()
    return outcome(
        "file", got.id, "files", len(files), "name", got.filename, "type", got.mime_type, "content", content,
        "expires", got.expires_at is not None,
    )


@step("give a session a file")
def _():
    kept.filed = session(resources=[{"type": "file", "file_id": kept.file, "mount_path": "/workspace/in/data.csv"}]).id
    read = ran(kept.filed, "bash: cat in/data.csv")
    files = list(beta.files.list(scope_id=kept.filed))
    return outcome("session", kept.filed, "read", "a,b" in read, "files", len(files), "scope", files[0].scope.id)


@step("add a file to a session")
def _():
    resources = beta.sessions.resources
    added = resources.add(kept.filed, type="file", file_id=kept.file, mount_path="/workspace/more")
    got = resources.retrieve(added.id, session_id=kept.filed)
    listed = list(resources.list(kept.filed))
    read = ran(kept.filed, "bash: cat more")
    token = refusal(resources.update, added.id, session_id=kept.filed, authorization_token="x")
    deleted = resources.delete(added.id, session_id=kept.filed)
    return outcome(
        "resource", added.id, "path", got.mount_path, "resources", len(listed), "read", "a,b" in read, "token", token, "deleted", deleted.id
    )


@step("clone a repository")
def _():
    s = session(resources=[
        {"type": "github_repository", "url": "file://" + repository, "checkout": {"type": "commit", "sha": commit}}
    ])
    log = ran(s.id, "bash: git -C repo log --format=%s")
    r = s.resources[0]
    late = refusal(beta.sessions.resources.update, r.id, session_id=s.id, authorization_token="x")
    return outcome(
        "the first", "the first" in log, "the second", "the second" in log, "at the commit", r.checkout.sha == commit, "late", late
    )


@step("delete a file")
def _():
    return outcome("type", beta.files.delete(kept.file).type, "read", refusal(beta.files.retrieve_metadata, kept.file))


@step("create, update and list vaults")
def _():
    kept.vault = beta.vaults.create(display_name="Ann").id
    beta.vaults.update(kept.vault, display_name="Bob")
    got = beta.vaults.retrieve(kept.vault)
    return outcome("vault", got.id, "name", got.display_name, "vaults", len(list(beta.vaults.list())))


@step("keep a credential")
def _():
    credentials = beta.vaults.credentials
    auth = {"type": "static_bearer", "mcp_server_url": "https://mcp.example/mcp", "token": "nobody-reads-this-token"}
    kept.credential = credentials.create(kept.vault, auth=auth).id
    renewed = {"type": "static_bearer", "token": "nobody-reads-that-token"}
    changed = credentials.update(kept.credential, vault_id=kept.vault, display_name="work", auth=renewed)
    got = credentials.retrieve(kept.credential, vault_id=kept.vault)
    shown = changed.to_json() + got.to_json()
    return outcome(
        "credential", got.id, "name", got.display_name, "server", got.auth.mcp_server_url,
        "credentials", len(list(credentials.list(kept.vault))), "a token", "nobody-reads" in shown,
        "another", refusal(credentials.create, kept.vault, auth=auth),
    )


@step("keep other credentials")
def _():
    create = beta.vaults.credentials.create
    variable = create(kept.vault, auth={
        "type": "environment_variable", "secret_name": "SHOP_TOKEN", "secret_value": "nobody-reads-this-value",
        "networking": {"type": "limited", "allowed_hosts": ["shop.example"]},
    })
    refreshed = create(kept.vault, auth={
        "type": "mcp_oauth", "mcp_server_url": "https://other.example", "access_token": "nobody-reads-this-either",
        "refresh": {
            "client_id": "a", "refresh_token": "nobody-reads-it", "token_endpoint": "https://c.example/token",
            "token_endpoint_auth": {"type": "none"},
        },
    })
    return outcome(
        "variable", variable.auth.secret_name, "hosts", variable.auth.networking.allowed_hosts,
        "refreshed at", refreshed.auth.refresh.token_endpoint,
        "a secret", "nobody-reads" in variable.to_json() + refreshed.to_json(),
    )


@step("begin a session with a vault")
def _():
    return outcome("vaults", session(vault_ids=[kept.vault]).vault_ids)


@step("refuse to validate a credential")
def _():
    refused = refusal(beta.vaults.credentials.mcp_oauth_validate, kept.credential, vault_id=kept.vault)
    return refused.replace(kept.vault, "VAULT").replace(kept.credential, "CREDENTIAL")


@step("delete credentials and vaults")
def _():
    vaults = beta.vaults
    archived = vaults.credentials.archive(kept.credential, vault_id=kept.vault)
    gone = vaults.credentials.delete(kept.credential, vault_id=kept.vault)
    closed, deleted = vaults.archive(kept.vault), vaults.delete(kept.vault)
    return outcome(
        "archived", archived.archived_at is not None, "credential", gone.id, "closed", closed.archived_at is not None, "vault", deleted.id
    )


def folder(word):
    words = f"---\nname: greeting\ndescription: How to greet.\n---\nSay {word}.\n"
    return [("greeting/SKILL.md", words.encode(), "text/markdown"), ("greeting/more.md", b"more", "text/markdown")]


@step("upload a skill")
def _():
    kept.skill = beta.skills.create(files=folder("heron"), display_name="Greeting").id
    kept.version = beta.skills.versions.create(kept.skill, files=folder("crane")).id
    got, one = beta.skills.retrieve(kept.skill), beta.skills.versions.retrieve(kept.version, skill_id=kept.skill)
    return outcome(
        "skill", got.id, "version", kept.version, "latest", got.latest_version_id, "skills", len(list(beta.skills.list(source="custom"))),
        "versions", len(list(beta.skills.versions.list(kept.skill))), "description", one.description,
    )


@step("download a skill")
def _():
    data = beta.skills.versions.download(kept.version, skill_id=kept.skill).read()
    return outcome("files", sorted(zipfile.ZipFile(io.BytesIO(data)).namelist()))


@step("begin a session with a skill")
def _():
    a = beta.agents.create(name="skilled", model="script", skills=[{"type": "custom", "skill_id": kept.skill}])
    s = beta.sessions.create(agent=a.id, environment_id=kept.env)
    return outcome("version", s.agent.skills[0].version, "read", "Say crane." in ran(s.id, 'call: skill {"name":"greeting"}'))


@step("refuse a skill of the vendor")
def _():
    return refusal(beta.agents.create, name="skilled", model="script", skills=[{"type": "anthropic", "skill_id": "xlsx"}])


@step("delete a skill")
def _():
    gone = beta.skills.versions.delete(kept.version, skill_id=kept.skill)
    return outcome("version", gone.id, "skill", beta.skills.delete(kept.skill).id)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        told.put((body, {k.lower(): v for k, v in self.headers.items()}))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


told = queue.Queue()
receiver = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
here = f"http://127.0.0.1:{receiver.server_port}/"


def told_next():
    body, headers = told.get(timeout=60)
    e = beta.webhooks.unwrap(body, headers=headers, key=kept.key)
    if beta.webhooks.parse_unverified(body) != e:
        raise AssertionError(f"without its signature it is another event: {body}")
    return f"{e.data.type} {e.data.id} {text(e.created_at is not None)}"


@step("create a webhook")
def _():
    events = ["agent.created", "session.created", "session.archived"]
    h = hooks.create(url=here, name="ci", enabled_events=events)
    kept.hook, kept.key = h.id, h.signing_secret
    return outcome("state", h.state, "name", h.name, "secret", h.signing_secret != "")


@step("refuse a webhook for an unknown event")
def _():
    events = ["user_profile.enforcement_action_opened"]
    return refusal(hooks.create, url=here, name="ci", enabled_events=events)


@step("unwrap what a webhook is told")
def _():
    a = beta.agents.create(name="told of", model="script")
    kept.told = session().id
    return outcome("agent", a.id, "session", kept.told, "first", told_next(), "second", told_next())


@step("change the secret of a webhook")
def _():
    old, kept.key = kept.key, hooks.regenerate_signing_secret(kept.hook).signing_secret
    beta.sessions.archive(kept.told)
    return outcome("another", old != kept.key, "told", told_next())


@step("update, list and delete webhooks")
def _():
    webhooks = hooks
    webhooks.update(kept.hook, state="disabled")
    updated = webhooks.retrieve(kept.hook)
    listed = [len(h.enabled_events) for h in webhooks.list(limit=1)]
    webhooks.delete(kept.hook)
    read = refusal(webhooks.retrieve, kept.hook).replace(kept.hook, "ID")
    return outcome("state", updated.state, "webhooks", len(listed), "events", listed[0], "read", read)


@step("hand a session to a worker")
def _():
    workers = beta.environments.create(name="workers", config={"type": "self_hosted"}).id
    s = beta.sessions.create(agent=kept.agent, environment_id=workers)
    send(s.id, message("bash: echo there"))
    work, item = beta.environments.work, None
    while item is None:
        item = work.poll(workers, block_ms=999)
    depth = work.stats(workers).depth
    listed = [w.id for w in work.list(workers)]
    acked = work.ack(item.id, environment_id=workers)
    beat = work.heartbeat(item.id, environment_id=workers, expected_last_heartbeat="NO_HEARTBEAT")
    updated = work.update(item.id, environment_id=workers, metadata={"host": "a"})
    held = work.retrieve(item.id, environment_id=workers)
    stopped = work.stop(item.id, environment_id=workers, force=True)
    send(s.id, {"type": "user.interrupt"})
    settled(s.id)
    beta.sessions.archive(s.id)
    return outcome(
        "work", item.id, "of", item.data.id, "the session", s.id, "queued", depth, "listed", item.id in listed,
        "acknowledged", acked.acknowledged_at is not None, "extended", beat.lease_extended, "metadata", updated.metadata["host"],
        "held", held.state, "then", stopped.state, "deleted", beta.environments.delete(workers).id,
    )


@step("archive a session")
def _():
    with follow(kept.first) as stream:
        archived = beta.sessions.archive(kept.first)
        until(stream, "session.status_terminated")
        more = next(stream, None) is not None
    return outcome("archived", archived.archived_at is not None, "streams on", more, "send", refusal(send, kept.first, message("x")))


@step("delete a session")
def _():
    return outcome("deleted", beta.sessions.delete(kept.first).id, "read", refusal(beta.sessions.retrieve, kept.first))


@step("archive an agent")
def _():
    return outcome("archived", beta.agents.archive(kept.agent).archived_at is not None, "begin", refusal(session))


@step("archive and delete an environment")
def _():
    archived, gone = beta.environments.archive(kept.env), beta.environments.delete(kept.env)
    return outcome("archived", archived.archived_at is not None, "deleted", gone.id)


names = [
    line.split(": ", 1)[0]
    for line in (pathlib.Path(__file__).parent / "steps.txt").read_text().splitlines()
    if ": " in line and not line.startswith("#")
]
if set(names) != set(steps):
    sys.exit(f"steps without a name or names without a step: {set(names) ^ set(steps)}")
connect()
methods = list(watch(beta, "beta"))
for number, name in enumerate(names, 1):
    print(f"{number:02} {name}: {steps[name]()}", flush=True)
for method in methods:
    print(f"method {method}: {used.get(method, 'not used')}", flush=True)
