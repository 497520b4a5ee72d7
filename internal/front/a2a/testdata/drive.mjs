// Drives a server with the client that others have written, and prints what it saw as
// one line of JSON: node drive.mjs PACKAGES URL TOKEN ACTION [ARGUMENT]
const [packages, url, token, action, argument] = process.argv.slice(2);
const { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } =
  await import(`${packages}/node_modules/@a2a-js/sdk/dist/client/index.js`);
const { TaskState } = await import(`${packages}/node_modules/@a2a-js/sdk/dist/index.js`);

const fetchImpl = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("Authorization", `Bearer ${token}`);
  return fetch(input, { ...init, headers });
};
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
}));
const client = await factory.createFromUrl(url);

let sent = 0;
const message = (text, taskId = "") => ({
  message: {
    messageId: `m${++sent}`, contextId: "", taskId, role: 1, extensions: [], referenceTaskIds: [], metadata: undefined,
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }],
  },
  configuration: undefined, metadata: undefined, tenant: "",
});
const named = (state) => (typeof state === "string" ? state : TaskState[state]);
const seen = (task) => ({
  id: task.id, state: named(task.status?.state),
  artifacts: Object.fromEntries(task.artifacts.map((a) => [a.artifactId, a.parts[0].content.value])),
  question: task.status?.message?.parts?.[0]?.content?.value ?? "",
});

const actions = {
  async card() {
    const card = await client.getAgentCard();
    return { name: card.name, streaming: card.capabilities?.streaming, url: card.supportedInterfaces[0].url };
  },
  async send() {
    return seen(await client.sendMessage(message(argument)));
  },
  async stream() {
    const states = [];
    for await (const event of client.sendMessageStream(message(argument))) {
      const { $case, value } = event.payload;
      states.push($case === "artifactUpdate" ? `artifact ${value.artifact.artifactId}` : named(value.status.state));
    }
    return { states };
  },
  async answer() {
    const asks = await client.sendMessage(message(argument));
    const done = await client.sendMessage(message("yes", asks.id));
    return { asks: seen(asks), done: seen(done) };
  },
  async cancel() {
    const request = message(argument);
    request.configuration = { acceptedOutputModes: [], returnImmediately: true, historyLength: undefined, taskPushNotificationConfig: undefined };
    const works = await client.sendMessage(request);
    return { works: seen(works), cancelled: seen(await client.cancelTask({ id: works.id, tenant: "", metadata: undefined })) };
  },
  async get() {
    return seen(await client.getTask({ id: argument, tenant: "", historyLength: undefined }));
  },
};
console.log(JSON.stringify(await actions[action]()));
