"""The official Python client runs a script of steps against a server: python managed.py URL TOKEN."""

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


step("create an agent")
agent = beta.agents.create(
    name="helper", model="script", system="Be brief.",
    tools=[
        {
            "type": "agent_toolset_20260401",
            "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}],
        },
        {
            "type": "custom", "name": "weather", "description": "Tells the weather.",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    ],
)
want("version", agent.version, 1)
step("read an agent")
want("name", beta.agents.retrieve(agent.id).name, "helper")
step("update an agent")
agent = beta.agents.update(agent.id, version=1, description="helps")
want("version", agent.version, 2)
step("an update of an old version is refused")
refused(lambda: beta.agents.update(agent.id, version=1, name="x"), 409)
step("list agents and versions")
want("agents", [a.id for a in beta.agents.list(limit=1)], [agent.id])
want("versions", [a.version for a in beta.agents.versions.list(agent.id)], [2, 1])
step("create an environment")
env = beta.environments.create(name="box", config={"type": "cloud", "networking": {"type": "unrestricted"}})
want("config", env.config.type, "cloud")
step("what the server can't do is refused")
refused(lambda: beta.environments.create(name="box", config={"type": "self_hosted"}), 400)
refused(lambda: beta.agents.create(name="x", model="script", extra_body={"nmae": 1}), 400)
step("create a session")
session = beta.sessions.create(agent=agent.id, environment_id=env.id, title="first", metadata={"k": "v"})
want("status", session.status, "idle")
step("a message is answered, with previews")
with beta.sessions.events.stream(session.id, event_deltas=["agent.message"]) as stream:
    say(session.id, "say: hello there")
    got = until(stream, "session.status_idle")
preview = "".join(e.delta.content.text for e in got if e.type == "event_delta")
want("message", find(got, "agent.message").content[0].text, "hello there")
want("preview", preview, "hello there")
want("stop", find(got, "session.status_idle").stop_reason.type, "end_turn")
step("a call asks and is confirmed")
with beta.sessions.events.stream(session.id) as stream:
    say(session.id, "bash: echo asked")
    got = until(stream, "session.status_idle")
    use = find(got, "agent.tool_use")
    want("waits for", find(got, "session.status_idle").stop_reason.event_ids, [use.id])
    beta.sessions.events.send(session.id, events=[{"type": "user.tool_confirmation", "tool_use_id": use.id, "result": "allow"}])
    got = until(stream, "session.status_idle")
want("result", "asked" in find(got, "agent.tool_result").content[0].text, True)
step("a call is denied")
with beta.sessions.events.stream(session.id) as stream:
    say(session.id, "bash: echo denied")
    use = find(until(stream, "session.status_idle"), "agent.tool_use")
    beta.sessions.events.send(
        session.id, events=[{"type": "user.tool_confirmation", "tool_use_id": use.id, "result": "deny", "deny_message": "too loud"}]
    )
    got = until(stream, "session.status_idle")
want("error", find(got, "agent.tool_result").is_error, True)
step("the client runs a tool of its own")
with beta.sessions.events.stream(session.id) as stream:
    say(session.id, 'call: weather {"city":"Oslo"}')
    use = find(until(stream, "session.status_idle"), "agent.custom_tool_use")
    want("input", use.input, {"city": "Oslo"})
    beta.sessions.events.send(
        session.id,
        events=[{"type": "user.custom_tool_result", "custom_tool_use_id": use.id, "content": [{"type": "text", "text": "rain"}]}],
    )
    got = until(stream, "session.status_idle")
want("result", find(got, "user.custom_tool_result").content[0].text, "rain")
step("list events page by page")
events = list(beta.sessions.events.list(session.id, limit=3))
want("ids are unique", len({e.id for e in events}), len(events))
step("list events by type, the newest first")
asked = list(beta.sessions.events.list(session.id, types=["user.message"], order="desc"))
want("last", asked[0].content[0].text, 'call: weather {"city":"Oslo"}')
step("a stream resumes behind an event")
with beta.sessions.events.stream(session.id, extra_headers={"Last-Event-ID": events[0].id}) as stream:
    again = [next(stream).id for _ in events[1:]]
want("ids", again, [e.id for e in events[1:]])
step("an outcome is graded")
with beta.sessions.events.stream(session.id) as stream:
    beta.sessions.events.send(session.id, events=[{
        "type": "user.define_outcome", "description": "Say something.",
        "rubric": {"type": "text", "content": 'say: {"result":"satisfied","explanation":"it does"}'},
    }])
    got = until(stream, "session.status_idle")
want("verdict", find(got, "span.outcome_evaluation_end").result, "satisfied")
step("threads")
threads = list(beta.sessions.threads.list(session.id))
want("threads", len(threads), 1)
want("its events", next(iter(beta.sessions.threads.events.list(threads[0].id, session_id=session.id))).id, events[0].id)
step("update a session")
want("title", beta.sessions.update(session.id, title="second").title, "second")
step("list sessions")
want("sessions", [s.id for s in beta.sessions.list(agent_id=agent.id)], [session.id])
step("deploy an agent")
deployment = beta.deployments.create(
    name="nightly", agent=agent.id, environment_id=env.id,
    initial_events=[{"type": "user.message", "content": [{"type": "text", "text": "say: by itself"}]}],
    schedule={"type": "cron", "expression": "30 2 * * 7", "timezone": "Europe/Berlin"},
)
want("status", deployment.status, "active")
want("upcoming", len(deployment.schedule.upcoming_runs_at), 5)
step("a deployment without a time zone that exists is refused")
refused(lambda: beta.deployments.update(deployment.id, schedule={"type": "cron", "expression": "0 0 * * *", "timezone": "Mars"}), 400)
step("run it, and read and list its runs")
run = beta.deployments.run(deployment.id)
want("trigger", run.trigger_context.type, "manual")
want("deployment", beta.sessions.retrieve(run.session_id).deployment_id, deployment.id)
want("runs", [r.id for r in beta.deployment_runs.list(deployment_id=deployment.id, has_error=False)], [run.id])
want("run", beta.deployment_runs.retrieve(run.id).session_id, run.session_id)
step("pause, unpause and archive it")
want("paused", beta.deployments.pause(deployment.id).paused_reason.type, "manual")
want("active", beta.deployments.unpause(deployment.id).status, "active")
want("archived", beta.deployments.archive(deployment.id).archived_at is not None, True)
want("deployments", list(beta.deployments.list()), [])
step("archive and delete a session")
want("archived", beta.sessions.archive(session.id).archived_at is not None, True)
beta.sessions.delete(session.id)
refused(lambda: beta.sessions.retrieve(session.id), 404)
step("archive an agent, delete an environment")
want("archived", beta.agents.archive(agent.id).archived_at is not None, True)
want("deleted", beta.environments.delete(env.id).id, env.id)
print(f"{steps} steps")
