import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { appsOf } from '../builders/app.ts';
import { automationsOf, deliver } from '../builders/automations.ts';
import { asUser, type ChatUser } from '../builders/chat.ts';
import { computerOf } from '../builders/computer.ts';
import { databasesOf, enter } from '../builders/databases.ts';
import { driveOf } from '../builders/drive.ts';
import { loseAll, type Machine, newMachine, startOn } from '../builders/machines.ts';
import { gitOf, type OperationBody } from '../builders/repository.ts';
import { waitFor } from '../support/waitFor.ts';
import { unpack } from './archive.ts';
import { type Filled, readContents } from './contents.ts';
import { startWorld, stop, type World } from './installation.ts';

// Installations of earlier versions, as `npm run record-installation` stored them, work with this version.

interface Stored {
  stoppedAt: string;
  filled: Filled;
  contents: Record<string, unknown>;
}

const folder = import.meta.dirname;
const versions = readdirSync(folder).flatMap((name) => /^(\d.*)\.tar\.zst$/.exec(name)?.[1] ?? []);
const storedOf = (version: string) => JSON.parse(readFileSync(join(folder, `${version}.json`), 'utf8')) as Stored;

describe.each(versions)('The stored installation of %s', (version) => {
  const { stoppedAt, filled, contents } = storedOf(version);
  const { spaceId } = filled;
  const space = `/api/spaces/${spaceId}`;
  let world: World;
  let dataDir: string;
  let settings: ReturnType<World['settingsOf']>;
  let machine: Machine;
  let user: ChatUser;
  beforeAll(async () => {
    world = await startWorld({ isRecording: false });
    dataDir = newMachine();
    await unpack(join(folder, `${version}.tar.zst`), dataDir, stoppedAt);
    settings = { ...world.settingsOf(dataDir), ATRIUM_WEBHOOK_RETRY_SECONDS: Array(20).fill('5').join() };
    await startAgain();
  });
  afterAll(async () => {
    // Ends what a failed test left running.
    await loseAll();
    await world.close();
  });

  async function startAgain(): Promise<void> {
    machine = await startOn(settings);
    user = asUser(machine, { ...machine.user, spaceId });
  }

  async function send<T>(path: string, method = 'POST', body?: unknown): Promise<T> {
    const response = await user.fetch(path, { method, ...(body !== undefined && { body }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  test('Everything in it is there, byte for byte', async () => {
    expect(await readContents(user, filled)).toMatchObject(contents);
    const shared = await fetch(`${machine.url}${filled.sharePath}`, { headers: { accept: 'application/json' } });
    expect(JSON.stringify(await shared.json())).toContain('Remember me, “Ada” 🦉.');
  });

  test('The delivery that was refused is delivered', async () => {
    const { endpointId, deliveryId } = filled.webhook;
    const endpoint = `${space}/webhook-endpoints/${endpointId}`;
    await send(endpoint, 'PATCH', { url: world.receiver.url });
    const isDelivered = async () =>
      (await user.get<{ status: string }>(`${endpoint}/deliveries/${deliveryId}`)).status === 'delivered';
    await waitFor('the delivery', isDelivered);
    expect(world.receiver.received.map(({ headers }) => headers['webhook-id'])).toContain(deliveryId);
  });

  test('Doctor finds nothing wrong', async () => {
    const { code, output } = await machine.run('doctor', '--timeout', '60');
    expect([code, output]).toEqual([0, expect.not.stringContaining('✗')]);
  });

  test('The key works, people sign in, and an invited person joins', async () => {
    const withKey = asUser(machine, { ...user, token: filled.key });
    expect((await withKey.fetch(`${space}/threads`)).status).toBe(200);
    expect((await withKey.fetch(`${space}/secrets/env`)).status).toBe(403);
    const { code } = JSON.parse((await machine.run('code', '--json')).stdout) as { code: string };
    const exchanged = await user.fetch('/auth/exchange-code', { method: 'POST', body: { code } });
    const { sessionToken: token } = (await exchanged.json()) as { sessionToken: string };
    expect((await asUser(machine, { ...user, token }).fetch('/api/me')).status).toBe(200);
    const { email, invitationId } = filled.invited;
    await machine.run('user', 'add', email);
    const guestToken = (await machine.run('token', '--user', email)).stdout.trim();
    const guest = asUser(machine, { ...user, token: guestToken });
    expect((await guest.fetch(`/api/invitations/${invitationId}/accept`, { method: 'POST' })).status).toBe(200);
    expect((await guest.fetch(space)).status).toBe(200);
  });

  test('A turn that waits for approval goes on when it is approved', async () => {
    const { turnId, toolCallId } = filled.waiting.approval;
    await send(`/chat/turns/${turnId}/approvals/${toolCallId}`, 'POST', { approved: true });
    expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
    expect(await driveOf(machine, user).names('/')).not.toContain('doomed.txt');
  });

  test('A turn that waits for an answer goes on when it is answered, and its thread can be continued', async () => {
    const { threadId, turnId, toolCallId } = filled.waiting.form;
    const answer = await user.ask({ threadId, toolResults: [{ toolUseId: toolCallId, content: 'blue' }] });
    expect([answer.turnId, answer.text]).toEqual([turnId, 'ask_user: blue']);
    expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
    expect((await user.ask({ threadId, content: '/say More', modelId: 'demo' })).text).toBe('More');
  });

  test('Work that ran when it stopped ends, and no credits stay reserved', async () => {
    const { spaceId: busy, turnId, operationId } = filled.busy;
    // A turn that is older than the longest working time ends by that, a younger one with an answer.
    expect(['completed', 'failed']).toContain((await user.ended(turnId)).status);
    await waitFor('the clone to end', async () => {
      const { status } = await user.get<OperationBody>(`/api/operations/${operationId}`);
      return status !== 'running';
    });
    const billing = () => user.get<{ reserved: number; balance: number; spent: number }>(`/api/billing/${busy}`);
    await waitFor('nothing to be reserved', async () => (await billing()).reserved === 0);
    const { balance, spent } = await billing();
    expect(balance + spent).toBe(100);
    expect((await machine.run('billing', 'check')).code).toBe(0);
  });

  test('The automation runs at its time, and by its webhook', async () => {
    const automations = automationsOf(user);
    const at = new Date(Date.now() + 3_000).toISOString();
    await automations.change(filled.automationId, { schedule: { at } });
    expect(await automations.ended(filled.automationId, 2)).toMatchObject([{ kind: 'schedule' }, {}]);
    expect((await deliver(machine.url, filled.automationId, filled.automationSecret)).status).toBe(200);
    expect(await automations.ended(filled.automationId, 3)).toMatchObject([{ kind: 'webhook' }, {}, {}]);
  });

  test('The app runs by request and by its webhook', async () => {
    const { itemId, secret } = filled.app;
    const apps = appsOf(machine, user);
    expect((await apps.run(itemId, { component: 'run' })).body).toMatchObject({ output: 'Hello from an app.\n' });
    expect((await apps.deliver(itemId, { secret, component: 'receive', body: 'again' })).status).toBe(200);
    await waitFor('the delivery to have run', async () => {
      const { data } = (await apps.runs(itemId)).body;
      return data.length === 4 && data.every(({ status }) => status === 'succeeded');
    });
  });

  test('The computer wakes with its files and its variable', async () => {
    const computer = computerOf(user, filled.computerId);
    const look =
      'cat link; stat -c "%a %U" work/note.txt; echo "$GREETING"; echo more >> link && tail -n 1 work/note.txt';
    expect(await computer.exec(look)).toMatchObject({ exitCode: 0, stdout: 'at home\n600 user\nhello\nmore\n' });
  });

  test('The repository gives its commits', async () => {
    const git = gitOf(user);
    const { itemId, commits } = filled.repository;
    const checkout = await git.send('POST', `/git/${itemId}/checkout`, { branch: 'main' });
    expect([checkout.status, checkout.code]).toEqual([200, undefined]);
    const { body } = await git.send<{ data: { id: string }[] }>('GET', `/git/${itemId}/log`);
    expect(body.data.map(({ id }) => id)).toEqual(commits);
    const branches = await git.send<{ data: { name: string }[] }>('GET', `/git/${itemId}/branches`);
    expect(branches.body.data.map(({ name }) => name)).toContain('mine');
  });

  test('The database has its rows, and its backup can be restored', async () => {
    const databases = databasesOf(user);
    const goodsIn = async (id: string) => {
      await using connection = await enter(await databases.connection(id));
      return (await connection.query('SELECT name FROM goods'))[0];
    };
    const { id, backupId } = filled.database;
    const goods = [{ name: 'tea' }, { name: 'Käse' }];
    expect(await goodsIn(id)).toEqual(goods);
    const restored = await databases.restoreFrom(id, backupId, 'from the backup');
    await waitFor('a restored database', async () => (await databases.get(restored.id)).status === 'ready');
    expect(await goodsIn(restored.id)).toEqual(goods);
    await waitFor('its size', async () => (await databases.get(restored.id)).tableCount === 1);
  });

  test('The upload in parts is completed by its last part, and the trash gives its file back', async () => {
    const { id, text } = filled.upload;
    interface Upload {
      itemId: string | null;
      parts: { partNumber: number; url: string }[];
    }
    const path = `${space}/drive/uploads/${id}`;
    const { parts } = await user.get<Upload>(path);
    expect(parts.map(({ partNumber }) => partNumber)).toEqual([2]);
    expect((await fetch(parts[0]?.url ?? '', { method: 'PUT', body: text })).status).toBe(200);
    await send(`${path}/complete`);
    const itemId = await waitFor('the upload to be placed', async () => (await user.get<Upload>(path)).itemId);
    const whole = Buffer.concat([Buffer.alloc(16 * 1_048_576, 'the first part '), Buffer.from(text)]);
    expect(await driveOf(machine, user).item(itemId)).toMatchObject({
      sha256: createHash('sha256').update(whole).digest('hex'),
    });
    await send(`${space}/drive/items/${filled.trashedId}/restore`, 'POST', { onConflict: 'error' });
    expect(await driveOf(machine, user).content(filled.trashedId)).toBe('No longer needed.\n');
  });

  test('A second start changes nothing', async () => {
    // Computers that run stop with Atrium.
    const read = async () => ({ ...(await readContents(user, filled)), [`${space}/computers`]: undefined });
    const before = await read();
    await stop(machine);
    await startAgain();
    expect(await read()).toEqual(before);
    await stop(machine);
  });
});
