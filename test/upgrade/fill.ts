import { randomBytes } from 'node:crypto';
import { appsOf } from '../builders/app.ts';
import { automationsOf } from '../builders/automations.ts';
import { asUser, type ChatUser, idsOf } from '../builders/chat.ts';
import { computerOf } from '../builders/computer.ts';
import { databasesOf, enter } from '../builders/databases.ts';
import { driveOf } from '../builders/drive.ts';
import { putFile } from '../builders/files.ts';
import type { Machine } from '../builders/machines.ts';
import { fake } from '../builders/product.ts';
import { gitOf, remoteRepository } from '../builders/repository.ts';
import { toolLines } from '../builders/tools.ts';
import { commitFiles, gitIn } from '../support/gitRepository.ts';
import { waitFor } from '../support/waitFor.ts';
import type { Filled } from './contents.ts';
import { slowQuestion, type World } from './installation.ts';

/** Fills a new installation with something of every area, by the public API. Some of it still waits or runs at the end. */
export async function fill(machine: Machine, world: World): Promise<Filled> {
  const { user } = machine;
  const { spaceId } = user;
  const space = `/api/spaces/${spaceId}`;
  const send = senderOf(user);
  await send('POST', `/api/billing/${spaceId}/setup`, { initialCredits: 100 });
  await send('PUT', `/api/billing/${spaceId}/caps`, { perTurn: 50, perDay: 500, perMemberPerDay: null });
  await send('PUT', `${space}/chat-settings`, { systemPrompt: 'Answer in British English.' });
  await send('PUT', `${space}/egress`, { deny: ['*.example.net'] });
  await send('POST', `${space}/mcp-servers`, { name: 'tools', url: 'http://127.0.0.1:9/mcp' });
  await send('POST', `${space}/git/credentials`, { name: 'Forge', host: 'git.example.com', secret: 'a token' });
  await send('POST', `${space}/browsers/profiles`, { name: 'Shopping' });
  for (const name of ['TOKEN', 'PASSPHRASE']) await send('PUT', `${space}/secrets/${name}`, { value: `of ${name} 🔑` });
  const { key } = await send<{ key: string }>('POST', '/api/keys', { name: 'Nightly', scopes: ['chat'] });
  const email = 'grace@example.com';
  const { id: invitationId } = await send<{ id: string }>('POST', `${space}/invitations`, { email, role: 'editor' });
  const filled = {
    spaceId,
    key,
    invited: { email, invitationId },
    ...(await fillChat(user)),
    ...(await fillDrive(machine)),
    ...(await fillAutomations(user)),
    ...(await fillComputer(user)),
    app: await fillApp(machine),
    repository: await fillRepository(user, world),
    database: await fillDatabase(user),
    webhook: await fillWebhooks(user, world),
    waiting: await fillWaiting(user),
  };
  await stopComputers(user);
  return { ...filled, busy: await fillBusy(machine, world) };
}

function senderOf(user: ChatUser) {
  return async <T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await user.fetch(path, { method, ...(body !== undefined && { body }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
}

/** A thread with answers of two models, one of them paid, and with a file, shared and copied. */
async function fillChat(user: ChatUser) {
  const send = senderOf(user);
  const { threadId, turnId } = await user.ask({ content: '/think Who?\n/say Remember me, “Ada” 🦉.', modelId: 'demo' });
  const usage = { inputTokens: 1_000, outputTokens: 300 };
  await user.ask({ threadId, content: fake({ usage }, 'What does it cost?'), modelId: 'paid' });
  await send('PATCH', `/api/threads/${threadId}`, { title: 'A kept thread' });
  await send('POST', `/api/threads/${threadId}/fork`, { title: 'A copy' });
  const { url } = await send<{ url: string }>('POST', `/api/threads/${threadId}/shares`, {});
  return { threadId, turnId, sharePath: new URL(url).pathname };
}

/** Files in versions, one in the trash, and an upload of which one part is missing. */
async function fillDrive(machine: Machine) {
  const { user } = machine;
  const drive = driveOf(machine, user);
  const send = senderOf(user);
  const { id: noteId } = await drive.put('/notes/plan.txt', 'The first plan.\n');
  await drive.put('/notes/plan.txt', 'The second plan – with Ümläuten.\n', 'replace');
  const { id: binaryId } = await drive.put('/notes/random.bin', new Uint8Array(randomBytes(20_000)));
  await drive.put('/doomed.txt', 'A turn waits to delete this.\n');
  const { id: trashedId } = await drive.put('/notes/old.txt', 'No longer needed.\n');
  await send('DELETE', `/api/spaces/${user.spaceId}/drive/items/${trashedId}`);
  const { threadId } = await user.ask({ content: '/say A thread with a file', modelId: 'demo' });
  await putFile(machine, user, 'of the thread.txt', 'In a thread.\n', threadId);
  const text = 'the last part';
  const size = 16 * 1_048_576;
  interface Upload {
    id: string;
    partSize: number;
    parts: { url: string }[];
  }
  const uploads = `/api/spaces/${user.spaceId}/drive/uploads`;
  const { id, parts, partSize } = await send<Upload>('POST', uploads, { path: '/large.bin', size: size + text.length });
  if (partSize !== size) throw new Error(`Parts have ${partSize} bytes now, not ${size}.`);
  const sent = await fetch(parts[0]?.url ?? '', { method: 'PUT', body: Buffer.alloc(size, 'the first part ') });
  if (!sent.ok) throw new Error(`The part was answered by ${sent.status}.`);
  const versions = [
    { itemId: noteId, version: 1 },
    { itemId: noteId, version: 2 },
    { itemId: binaryId, version: 1 },
  ];
  return { files: versions, trashedId, upload: { id, text } };
}

/** A tick that was missed a short time ago runs at the next start, which hardly ever happens with this one. */
const onLeapDays = '0 8 29 2 *';

/** An automation with a schedule that has run once by hand. */
async function fillAutomations(user: ChatUser) {
  const automations = automationsOf(user);
  const schedule = { cron: onLeapDays, timeZone: 'Europe/Berlin' };
  const { id } = await automations.make({ name: 'Morning report', prompt: '/say Good morning', schedule });
  const secret = await automations.secret(id);
  await automations.run(id);
  await automations.ended(id);
  return { automationId: id, automationSecret: secret };
}

/** A computer with files, a variable and a secret. */
async function fillComputer(user: ChatUser) {
  const send = senderOf(user);
  const computers = `/api/spaces/${user.spaceId}/computers`;
  const { id } = await send<{ id: string }>('POST', computers, { name: 'Desk', env: { GREETING: 'hello' } });
  await send('PUT', `${computers}/${id}/secrets/TOKEN`, { hosts: ['api.example.com'] });
  const computer = computerOf(user, id);
  const make = 'mkdir -p work && echo "at home" > work/note.txt && ln -s work/note.txt link && chmod 600 work/note.txt';
  const { exitCode, stderr } = await computer.exec(make);
  if (exitCode !== 0) throw new Error(`The command ended with ${exitCode}: ${stderr}`);
  return { computerId: id };
}

/** Lets all computers sleep. */
async function stopComputers(user: ChatUser): Promise<void> {
  const root = `/api/spaces/${user.spaceId}/computers`;
  const awake = async () =>
    (await user.get<{ data: { id: string; status: string }[] }>(root)).data.filter(
      ({ status }) => status !== 'stopped',
    );
  for (const { id } of await awake()) await senderOf(user)('POST', `${root}/${id}/stop`);
  await waitFor('the computers to sleep', async () => (await awake()).length === 0);
}

const manifest = `name: Greeter
components:
  - { name: run, kind: process, command: 'cat greeting.txt' }
  - { name: receive, kind: webhook, command: cat, auth: signature }
  - { name: nightly, kind: schedule, command: date, cron: '${onLeapDays}', timeZone: UTC }
`;

async function fillApp(machine: Machine) {
  const apps = appsOf(machine, machine.user);
  const itemId = await apps.app(manifest, { 'greeting.txt': 'Hello from an app.\n' });
  const { status, body } = await apps.run(itemId, { component: 'run' });
  const runId = (body as { runId?: string }).runId ?? '';
  if (runId === '') throw new Error(`The run was answered by ${status}: ${JSON.stringify(body)}`);
  await apps.ended(runId);
  const secret = await apps.secret(itemId);
  await apps.deliver(itemId, { secret, component: 'receive', body: 'a delivery' });
  await waitFor('the delivery to have run', async () => {
    const { data } = (await apps.runs(itemId)).body;
    return data.length === 2 && data.every(({ endedAt }) => endedAt !== null);
  });
  return { itemId, runId, secret };
}

/** A clone of a repository with two commits, checked out, with a branch of its own. */
async function fillRepository(user: ChatUser, { server }: World) {
  const git = gitOf(user);
  const remote = remoteRepository(server, { 'a.txt': 'one\n' });
  commitFiles(remote.bare, { 'a.txt': 'two\n', 'b.txt': 'new\n' });
  const { id: itemId } = (await git.clone({ url: remote.url })).body;
  const { status } = await git.cloned(itemId);
  if (status !== 'ready') throw new Error(`The clone is ${status}.`);
  const made = await git.send('POST', `/git/${itemId}/branch`, { name: 'mine' });
  if (made.status !== 200) throw new Error(`The branch was answered by ${made.status}: ${made.text}`);
  return { itemId, commits: gitIn(remote.bare, 'rev-list', 'main').split('\n') };
}

async function fillDatabase(user: ChatUser) {
  const databases = databasesOf(user);
  const { id } = await databases.make('shop');
  await waitFor('the database', async () => (await databases.get(id)).status === 'ready');
  await using connection = await enter(await databases.connection(id));
  await connection.query('CREATE TABLE goods (name VARCHAR(20))');
  await connection.query("INSERT INTO goods VALUES ('tea'), ('Käse')");
  const { id: backupId } = await databases.backUp(id);
  const isReady = async () => (await databases.backups(id)).every(({ status }) => status === 'kept');
  await waitFor('the backup', isReady);
  return { id, backupId };
}

/** An endpoint that refused a delivery, which will be tried again. */
async function fillWebhooks(user: ChatUser, { receiver }: World) {
  const send = senderOf(user);
  const root = `/api/spaces/${user.spaceId}/webhook-endpoints`;
  const body = { url: receiver.url, events: ['run.ended'] };
  const { id: endpointId, secret } = await send<{ id: string; secret: string }>('POST', root, body);
  receiver.answerWith(500);
  const { id: deliveryId } = await send<{ id: string }>('POST', `${root}/${endpointId}/ping`);
  await waitFor('the delivery to be refused', async () => {
    const path = `${root}/${endpointId}/deliveries/${deliveryId}`;
    return (await user.get<{ attempts: number }>(path)).attempts === 1;
  });
  return { endpointId, deliveryId, secret };
}

/** A turn that waits for approval, and one that waits for an answer. */
async function fillWaiting(user: ChatUser): Promise<Filled['waiting']> {
  const waiting = async (tool: string, input: object) => {
    const content = toolLines([[tool, input]]);
    const { threadId, turnId } = await user.ask({ content, modelId: 'demo', mode: 'work' });
    const { status, pendingToolCalls } = await user.turn(turnId);
    if (status !== 'waiting') throw new Error(`The turn with ${tool} is ${status}.`);
    return { threadId, turnId, toolCallId: pendingToolCalls[0]?.toolCallId ?? '' };
  };
  return {
    approval: await waiting('drive_delete', { path: '/doomed.txt' }),
    form: await waiting('ask_user', { question: 'Which colour?', options: ['red', 'blue'] }),
  };
}

/** Another space, with a paid answer and a clone that are on their way when Atrium stops. */
async function fillBusy(machine: Machine, { server }: World): Promise<Filled['busy']> {
  const { id: spaceId } = await senderOf(machine.user)<{ id: string }>('POST', '/api/spaces', { name: 'Busy' });
  const user = asUser(machine, { ...machine.user, spaceId });
  await senderOf(user)('POST', `/api/billing/${spaceId}/setup`, { initialCredits: 100 });
  const stream = await user.send({ spaceId, content: slowQuestion, modelId: 'paid' });
  const { turnId } = idsOf(stream);
  stream.abort();
  await waitFor('a reservation', async () => {
    const { reserved } = await user.get<{ reserved: number }>(`/api/billing/${spaceId}`);
    return reserved > 0;
  });
  server.holdAfter = 10;
  const git = gitOf(user);
  const { body } = await git.clone({ url: remoteRepository(server, { 'a.txt': 'held\n' }).url });
  await waitFor('the clone to be held', () => server.isHolding);
  return { spaceId, turnId, cloneId: body.id, operationId: body.operationId ?? '' };
}
