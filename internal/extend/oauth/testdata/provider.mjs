// An OAuth server with one protected resource, made of oidc-provider.
// Arguments: the folder that has node_modules, and settings as JSON.
// It prints its address, and ends when its input does.
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [, , home, settings] = process.argv;
const { accessTTL = 3600, document = '', machines = [], dpop = '' } = JSON.parse(settings ?? '{}');
const { Provider } = await import(pathToFileURL(`${home}/node_modules/oidc-provider/lib/index.js`));

const seen = { requests: [], granted: {}, refused: {}, registered: 0, revoked: 0 };
const server = createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const origin = `http://127.0.0.1:${server.address().port}`;
// Its own resource, /me, checks who has the key of a token; ours, /mcp, does not know how.
const resource = `${origin}${dpop ? '/me' : '/mcp'}`;

const documents = {
  client_id: document,
  client_name: 'inspan',
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};

const provider = new Provider(origin, {
  clients: [{
    client_id: 'given',
    client_secret: 'known-to-both-0123456789',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1/callback'],
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    token_endpoint_auth_method: 'client_secret_basic',
  }, ...machines.map((m) => ({ redirect_uris: [], response_types: [], grant_types: ['client_credentials'], ...m }))],
  scopes: ['openid', 'offline_access', 'read', 'write'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  ttl: { AccessToken: accessTTL, AuthorizationCode: 60, DeviceCode: 120, Grant: 3600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    deviceFlow: { enabled: true },
    clientCredentials: { enabled: true },
    dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 1), requireNonce: () => dpop === 'nonce' },
    clientIdMetadataDocument: { enabled: document !== '', ack: 'draft-02' },
    resourceIndicators: {
      enabled: dpop === '',
      defaultResource: (ctx, client, oneOf) => oneOf,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, indicator) => {
        if (indicator !== resource) throw new Error('unknown resource');
        return { scope: 'read write', audience: resource, accessTokenTTL: accessTTL, accessTokenFormat: 'opaque' };
      },
    },
  },
  fetch: async (url) => (String(url) === document
    ? new Response(JSON.stringify(documents), { headers: { 'content-type': 'application/json' } })
    : new Response('', { status: 404 })),
});

const count = (to, ctx) => {
  const kind = ctx.oidc?.params?.grant_type ?? 'none';
  to[kind] = (to[kind] ?? 0) + 1;
};
provider.on('grant.success', (ctx) => count(seen.granted, ctx));
provider.on('grant.error', (ctx, err) => {
  count(seen.refused, ctx);
  seen.requests.push(`${err.error}: ${err.error_detail ?? err.error_description}`);
});
provider.on('registration_create.success', () => { seen.registered += 1; });
provider.on('grant.revoked', () => { seen.revoked += 1; });
for (const kind of ['authorization.error', 'server_error', 'registration_create.error', 'revocation.error']) {
  provider.on(kind, (ctx, err) => seen.requests.push(`${kind} ${err.message}: ${err.error_detail ?? err.error_description}`));
}

const send = (res, status, body, headers = {}) => {
  res.writeHead(status, { 'content-type': 'application/json', ...headers });
  res.end(JSON.stringify(body));
};

async function protect(req, res) {
  const token = (req.headers.authorization ?? '').replace(/^Bearer /, '');
  const found = await provider.AccessToken.find(token) ?? await provider.ClientCredentials.find(token);
  if (found && !found.isExpired && [].concat(found.aud).includes(resource)) {
    send(res, 200, { scope: found.scope });
    return;
  }
  const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
  send(res, 401, {}, { 'www-authenticate': `Bearer error="invalid_token", resource_metadata="${metadata}", scope="read"` });
}

const pass = provider.callback();
server.on('request', (req, res) => {
  const path = new URL(req.url, origin).pathname;
  if (path === '/_seen') send(res, 200, seen);
  else if (path === '/mcp') protect(req, res);
  else if (path === `/.well-known/oauth-protected-resource${dpop ? '/me' : '/mcp'}`) {
    send(res, 200, { resource, authorization_servers: [origin], scopes_supported: [dpop ? 'openid' : 'read'] });
  } else pass(req, res);
});

console.log(origin);
process.stdin.on('end', () => process.exit(0)).resume();
