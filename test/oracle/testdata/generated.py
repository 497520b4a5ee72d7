# Drives a server by a client that was generated from its description.
# Usage: generated.py URL TOKEN FOLDER, with the client in PYTHONPATH

import sys
import time

from inspan_serve_client import AuthenticatedClient
from inspan_serve_client.api.default import answer_approval, create_task, get_task, list_approvals, list_events
from inspan_serve_client.models import Decision, DecisionDecision, Problem, Spec, SpecLabelsType1, SpecModeType1

url, token, folder = sys.argv[1:]
api = AuthenticatedClient(base_url=url, token=token)


def until(what, look):
    late = time.monotonic() + 120
    while time.monotonic() < late:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError(what)


labels = SpecLabelsType1()
labels["by"] = "generated"
spec = Spec(prompt="bash: touch generated", mode=SpecModeType1.ASK, folder=folder, labels=labels)
task = create_task.sync(client=api, body=spec, idempotency_key="python")
assert create_task.sync(client=api, body=spec, idempotency_key="python").id == task.id
question = until("the question", lambda: next((a for a in list_approvals.sync(client=api).approvals if a.task == task.id), None))
answer_approval.sync(client=api, task=task.id, question=question.id, body=Decision(decision=DecisionDecision.ALLOW))


def completed():
    now = get_task.sync(client=api, id=task.id)
    return now if now.stage == "completed" else None


over = until("the end", completed)
events = list_events.sync(client=api, id=over.session, limit=3).events
problem = get_task.sync(client=api, id="none")
assert isinstance(problem, Problem), problem
print(over.stage, over.spec.labels["by"], over.result.stopped, len(events), problem.error.type_)
