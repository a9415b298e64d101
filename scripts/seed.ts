import { describeFailure } from '../bin/support/failure.ts';
import { findActiveUser, notRunning, withIdentity } from '../bin/support/installation.ts';
import { findRunning } from '../bin/support/running.ts';
import { type AtriumClient, createAtriumClient } from '../client/src/index.ts';
import { loadLaunchConfig } from '../config/launch.ts';

/**
 * Makes a space with examples of most things in the Atrium that runs with this data directory: `npm run seed`. Leaves
 * out repositories, which need the network, and webhook endpoints, desktops and browsers. ATRIUM_URL and ATRIUM_TOKEN
 * name another Atrium and its user. Uses only the public API, so a failing seed is a defect of the API or of this file.
 * Prints the id of the space.
 */

const manifest = `name: Greeter
components:
  - { name: hello, kind: process, command: 'echo Hello from $(uname -s)' }
  - { name: receive, kind: webhook, command: cat, auth: signature }
  - { name: nightly, kind: schedule, command: date, cron: '0 3 * * *', timeZone: UTC }
`;

const { baseUrl, token } = await findAtrium().catch(giveUp);
const atrium = createAtriumClient({ baseUrl, token });
const { id: spaceId } = await made(atrium.POST('/api/spaces', { body: { name: 'Example' } })).catch(giveUp);
const path = { spaceId };
for (const [what, make] of Object.entries(examples(atrium))) {
  try {
    await make();
    console.log(`made ${what}`);
  } catch (error) {
    // Some machines have no computers or databases. The rest is still useful.
    console.log(`no ${what}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
console.log(`Space ${spaceId} at ${baseUrl}.`);

function examples(client: AtriumClient) {
  return {
    async credits() {
      await made(client.POST('/api/billing/{spaceId}/setup', { params: { path }, body: { initialCredits: 100 } }));
    },
    async 'a thread with two answers'() {
      const { id: threadId } = await made(
        client.POST('/api/spaces/{spaceId}/threads', { params: { path }, body: { title: 'A first chat' } }),
      );
      for (const content of ['Hello', '/think What could I ask?\n/say Ask me anything.']) await say(threadId, content);
    },
    async 'folders and files'() {
      await upload('/notes/', 'welcome.md', '# Welcome\n\nThis file is on the drive of the space.\n');
      await upload('/data/', 'numbers.csv', 'month,sales\n2026-01,12\n2026-02,19\n');
    },
    async 'a secret'() {
      const params = { path: { spaceId, name: 'EXAMPLE_TOKEN' } };
      await made(client.PUT('/api/spaces/{spaceId}/secrets/{name}', { params, body: { value: 'not-a-real-token' } }));
    },
    async 'an automation'() {
      const schedule = { cron: '0 8 * * MON-FRI', timeZone: 'UTC' };
      const body = { name: 'Morning report', prompt: 'Sum up what has changed since yesterday.', schedule };
      await made(client.POST('/api/spaces/{spaceId}/automations', { params: { path }, body }));
    },
    async 'a command on a computer'() {
      const [computer] = (await made(client.GET('/api/spaces/{spaceId}/computers', { params: { path } }))).data;
      if (computer === undefined) throw new Error('The space has no computer.');
      const params = { path: { spaceId, computerId: computer.id } };
      const body = { command: 'mkdir -p project && echo "print(1 + 1)" > project/main.py && ls -R project' };
      await made(client.POST('/api/spaces/{spaceId}/computers/{computerId}/exec', { params, body }));
    },
    async 'an app with a run'() {
      const folder = client.POST('/api/spaces/{spaceId}/drive/folders', {
        params: { path },
        body: { path: '/greeter' },
      });
      const { id: itemId } = await made(folder);
      await upload('/greeter/', 'atrium.yaml', manifest);
      await made(client.POST('/api/spaces/{spaceId}/apps', { params: { path }, body: { itemId } }));
      await made(
        client.POST('/api/apps/{driveItemId}/process/run', { params: { path: { driveItemId: itemId } }, body: {} }),
      );
    },
    async 'a database'() {
      await made(client.POST('/api/spaces/{spaceId}/databases', { params: { path }, body: { name: 'shop' } }));
    },
  };
}

/** The answer's body. Throws the server's problem as an error. */
async function made<Body>(asked: Promise<{ data?: Body; error?: unknown; response: Response }>): Promise<Body> {
  const { data, error, response } = await asked;
  if (response.ok) return data as Body;
  const { code, detail } = error as { code?: string; detail?: string };
  throw new Error(`${response.status} ${code ?? ''} ${detail ?? ''}`.trim());
}

/** Sends a message and reads its whole answer. */
async function say(threadId: string, content: string): Promise<void> {
  const answer = await fetch(`${baseUrl}/chat/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ threadId, content }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status} ${text}`);
}

async function upload(folder: string, name: string, text: string): Promise<void> {
  const body = new FormData();
  body.set('path', folder);
  body.set('file', new File([text], name));
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${baseUrl}/api/spaces/${spaceId}/drive/upload`, { method: 'POST', headers, body });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
}

/** As `atrium status` and `atrium token` find the address and a session. */
async function findAtrium(): Promise<{ baseUrl: string; token: string }> {
  const { ATRIUM_URL, ATRIUM_TOKEN } = process.env;
  const found = ATRIUM_URL ?? findRunning(loadLaunchConfig().dataDir)?.apiUrl;
  if (found === undefined) throw notRunning('set ATRIUM_URL and ATRIUM_TOKEN');
  const token =
    ATRIUM_TOKEN ??
    (await withIdentity(async (identity) =>
      identity.sessions.createByOperator((await findActiveUser(identity, undefined)).id, 'npm run seed'),
    ));
  return { baseUrl: found, token };
}

function giveUp(error: unknown): never {
  console.error(describeFailure(error));
  process.exit(1);
}
