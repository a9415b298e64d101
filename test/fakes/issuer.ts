import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import { type Adapter, type AdapterPayload, Provider } from 'oidc-provider';

export interface Account {
  subject: string;
  email?: string;
  emailVerified?: boolean;
  name?: string;
}

/** A real OpenID Connect issuer in this process. It signs in the person that the test sets. */
export interface TestIssuer {
  url: string;
  /** The person at the browser. Undefined refuses the sign-in. */
  person: Account | undefined;
  close(): Promise<void>;
}

export const testClient = { id: 'atrium', secret: 'a secret of the client that is long enough' };

/** Starts an issuer on a free port, with Atrium as its only client. `port` restarts it at the same address. */
export async function startIssuer(
  redirectUri: string,
  options: { port?: number; isPublic?: boolean } = {},
): Promise<TestIssuer> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer: TestIssuer = { url, person: undefined, close: () => close(server) };
  const accounts = new Map<string, Account>();
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const provider = new Provider(url, {
    adapter: memoryAdapter(),
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }] as never },
    ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
    clients: [
      {
        client_id: testClient.id,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        ...(options.isPublic
          ? { token_endpoint_auth_method: 'none' }
          : { client_secret: testClient.secret, token_endpoint_auth_method: 'client_secret_basic' }),
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
    pkce: { required: () => true },
    cookies: { keys: ['a key of the test'] },
    findAccount: (_ctx, subject) => {
      const account = accounts.get(subject);
      if (account === undefined) return undefined;
      const { email, emailVerified, name } = account;
      return { accountId: subject, claims: () => ({ sub: subject, email, email_verified: emailVerified, name }) };
    },
  });
  const handle = provider.callback();
  server.on('request', (req, res) => {
    if (!req.url?.startsWith('/interaction/')) return void handle(req, res);
    const answer = async () => {
      const { person } = issuer;
      if (person === undefined) {
        return provider.interactionFinished(req, res, { error: 'access_denied' });
      }
      accounts.set(person.subject, person);
      const { params, prompt } = await provider.interactionDetails(req, res);
      if (prompt.name === 'login') {
        return provider.interactionFinished(req, res, { login: { accountId: person.subject, remember: false } });
      }
      const grant = new provider.Grant({ accountId: person.subject, clientId: String(params.client_id) });
      grant.addOIDCScope(String(params.scope));
      return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } });
    };
    answer().catch((error: unknown) => res.writeHead(500).end(String(error)));
  });
  return issuer;
}

/** Stores the issuer's data in memory. */
function memoryAdapter() {
  const rows = new Map<string, AdapterPayload>();
  return (model: string): Adapter => {
    const key = (id: string) => `${model} ${id}`;
    const findBy = async (field: 'uid' | 'userCode', value: string) =>
      [...rows].find(([name, row]) => name.startsWith(`${model} `) && row[field] === value)?.[1];
    return {
      upsert: async (id, payload) => void rows.set(key(id), payload),
      find: async (id) => rows.get(key(id)),
      findByUid: (uid) => findBy('uid', uid),
      findByUserCode: (userCode) => findBy('userCode', userCode),
      consume: async (id) => void Object.assign(rows.get(key(id)) ?? {}, { consumed: Math.floor(Date.now() / 1_000) }),
      destroy: async (id) => void rows.delete(key(id)),
      revokeByGrantId: async (grantId) => {
        for (const [name, row] of rows) if (row.grantId === grantId) rows.delete(name);
      },
    };
  };
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
