import { createECDH, createHash, randomUUID } from 'node:crypto';
import type { RowDataPacket } from 'mysql2/promise';
import { newId } from '../../base/ids.ts';
import { getAppOf } from '../../models/apps/app.ts';
import { createBrowserLink, renewBrowserToken } from '../../models/browsers/links.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Database } from '../../models/database/database.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { Role } from '../../models/identity/tables.ts';
import { operationModels } from '../../models/operations/operation.ts';
import { insertBrowser, insertProfile } from './browserRows.ts';
import { insertBackup, insertDatabase } from './database.ts';
import { insertDesktop } from './desktop.ts';
import { insertDraft } from './draft.ts';
import { buildSpace, buildUser } from './identity.ts';
import { insertRecording } from './recording.ts';
import { insertRows } from './rows.ts';
import { insertDelivery, insertEndpoint } from './webhookRows.ts';

/** The kinds of signed-in callers: three roles in a space, and a member of another one. */
export type Kind = Role | 'stranger';
export const kinds: readonly Kind[] = ['owner', 'editor', 'viewer', 'stranger'];

export type People = Record<Kind, { id: string; email: string }>;

/** A space of these people's. What is one person's own in it (threads, sessions) is the viewer's. */
export interface World {
  database: Database;
  identity: Identity;
  people: People;
  spaceId: string;
  /**
   * A request as one of them, in a session of its own; as nobody, without a credential. What is neither a form nor
   * multipart is sent as JSON.
   */
  fetch(
    kind: Kind | 'nobody',
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Response>;
  /** The body of an answer that must be 2xx. */
  send<T>(kind: Kind, method: string, path: string, body?: unknown): Promise<T>;
}

export async function buildPeople(identity: Identity): Promise<People> {
  const entries = kinds.map(async (kind) => [kind, (await buildUser(identity, kind)).user] as const);
  const people = Object.fromEntries(await Promise.all(entries)) as unknown as People;
  await buildSpace(identity, people.stranger.id, 'Elsewhere');
  return people;
}

export async function buildWorld(
  product: { url: string; identity: Identity; environment: { database: Database } },
  people: People,
): Promise<World> {
  const { identity, url, environment } = product;
  const { space } = await buildSpace(identity, people.owner.id);
  for (const role of ['editor', 'viewer'] as const) await identity.members.add(space.id, people[role].email, role);
  const world: World = {
    database: environment.database,
    identity,
    people,
    spaceId: space.id,
    async fetch(kind, method, path, body, headers = {}) {
      const isJson = body !== undefined && !(body instanceof FormData) && !(body instanceof URLSearchParams);
      const token = kind === 'nobody' ? undefined : await identity.sessions.create(people[kind].id);
      return fetch(url + path, {
        method,
        redirect: 'manual',
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(isJson && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as FormData | URLSearchParams) }),
      });
    },
    async send<T>(kind: Kind, method: string, path: string, body?: unknown) {
      const response = await world.fetch(kind, method, path, body);
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
      return (text === '' ? undefined : JSON.parse(text)) as T;
    },
  };
  return world;
}

const threadFile = 'a.txt';

/** What a component has that says nothing of it. */
const filledIn = {
  cwd: '',
  env: {},
  secrets: [],
  timeoutSeconds: 60,
  retry: { attempts: 1, delaySeconds: 0 },
  concurrency: 1,
  isDefault: true,
};

const nightly = { cron: '0 3 * * *', timeZone: 'UTC', jitterSeconds: 0 };

type Builder = (world: World) => string | Promise<string>;

/** Of what is on the computer that was made last. */
async function ownerOf({ people, send, spaceId }: World) {
  const path = `/api/spaces/${spaceId}/computers`;
  const { data } = await send<{ data: { id: string }[] }>('owner', 'GET', path);
  return { spaceId, computerId: data.at(-1)?.id ?? '', createdBy: people.owner.id };
}

/** A link to the viewer's thread that was made last. */
async function shareThread(world: World): Promise<{ id: string; url: string }> {
  const threads = `/api/spaces/${world.spaceId}/threads?limit=1`;
  const { data } = await world.send<{ data: { id: string }[] }>('viewer', 'GET', threads);
  const threadId = data[0]?.id ?? (await builderOf('threadId', 'Threads')(world));
  return world.send('viewer', 'POST', `/api/threads/${threadId}/shares`, {});
}

/** A link to the browser session that was made last. */
async function linkToBrowser(world: World): Promise<{ id: string; token: string }> {
  const { database, people, spaceId } = world;
  const sql = 'SELECT id FROM browser_sessions WHERE space_id = ? ORDER BY id DESC LIMIT 1';
  const [rows] = await database.pool.query<RowDataPacket[]>(sql, [spaceId]);
  const sessionId = String(rows[0]?.id ?? (await builderOf('sessionId', 'Browsers')(world)));
  const link = {
    id: newId('browserLink'),
    spaceId,
    sessionId,
    createdBy: people.owner.id,
    apiKeyId: null,
    loginSessionId: null,
  };
  const actor = { userId: people.owner.id, credentialId: null, address: null };
  await createBrowserLink(database, { ...link, ttlSeconds: 600 }, actor);
  return { id: link.id, token: (await renewBrowserToken(database, link.id)).token };
}

/**
 * For each parameter in a path of the contract: makes such an object in the world's space, and gives what stands for it
 * in the path. A new parameter needs a line here; `Area.name` is for a name that another area uses for something else,
 * `operationId.name` for an operation that asks more of it.
 */
export const objects: Record<string, Builder> = {
  spaceId: ({ spaceId }) => spaceId,
  userId: ({ people }) => people.viewer.id,
  keyId: async ({ identity, people }) => (await identity.keys.create(people.viewer.id, { name: 'key' })).row.id,
  sessionId: async ({ identity, people }) => {
    await identity.sessions.create(people.viewer.id);
    return (await identity.sessions.list(people.viewer.id, { limit: 1 })).data[0]?.id ?? '';
  },
  'Billing.sessionId': async (world) => {
    const path = `/api/billing/${world.spaceId}/top-up`;
    const { url } = await world.send<{ url: string }>('owner', 'POST', path, { amount: 10 });
    return url.split('/').at(-1) ?? '';
  },
  choice: () => 'cancel',
  modelId: () => 'demo',
  'Secrets.name': async (world) => {
    const name = `SECRET_${randomUUID().replaceAll('-', '').toUpperCase()}`;
    await world.send('owner', 'PUT', `/api/spaces/${world.spaceId}/secrets/${name}`, { value: 'a value' });
    return name;
  },
  // A secret that all the computers of the space have: which of them is meant is not known here.
  'Computers.name': async (world) => {
    const name = await builderOf('name', 'Secrets')(world);
    const computers = `/api/spaces/${world.spaceId}/computers`;
    const { data } = await world.send<{ data: { id: string }[] }>('owner', 'GET', `${computers}?limit=200`);
    for (const { id } of data) {
      await world.send('owner', 'PUT', `${computers}/${id}/secrets/${name}`, { hosts: ['api.example.com'] });
    }
    return name;
  },
  invitationId: async (world) => (await invite(world)).id,
  // Into a space whose member the viewer is not yet.
  'Account.invitationId': async (world) => {
    const { id } = await world.send<{ id: string }>('owner', 'POST', '/api/spaces', { name: 'Further' });
    const body = { email: world.people.viewer.email, role: 'viewer' };
    return (await world.send<{ id: string }>('owner', 'POST', `/api/spaces/${id}/invitations`, body)).id;
  },
  // Of both kinds of links: what the page says to anybody is the same for all callers.
  token: async (world) => (await invite(world)).link.split('/').at(-1) ?? '',
  'Sharing.token': async (world) => (await shareThread(world)).url.split('/').at(-1) ?? '',
  // Of the thread that was made last: the one in the same path.
  shareId: async (world) => (await shareThread(world)).id,
  threadId: async (world) =>
    (await world.send<{ id: string }>('viewer', 'POST', `/api/spaces/${world.spaceId}/threads`)).id,
  // A thread with the file that the same query names.
  'getThreadFileUrl.threadId': async (world) => {
    const threadId = await builderOf('threadId', 'Threads')(world);
    const body = new FormData();
    body.append('threadId', threadId);
    body.append('file', new Blob(['a']), threadFile);
    await world.send('viewer', 'POST', `/api/spaces/${world.spaceId}/thread-files`, body);
    return threadId;
  },
  'getThreadFileUrl.path': () => `/${threadFile}`,
  turnId: async (world) => {
    const body = { content: '/say hello', modelId: 'demo', spaceId: world.spaceId };
    const response = await world.fetch('viewer', 'POST', '/chat/stream', body);
    await response.text();
    return response.headers.get('x-turn-id') ?? '';
  },
  // Of the turn that was made last: the one in the same path.
  toolCallId: async ({ database, spaceId }) => {
    const { ToolCall, Turn } = chatModels(database);
    const turn = await Turn.findOne({ where: { spaceId }, order: [['id', 'DESC']], rejectOnEmpty: true });
    const call = { turnId: turn.id, step: 0, toolName: 'drive_delete', input: {}, status: 'pending' };
    const row = { ...call, id: newId('toolCall'), waitsFor: 'approval', deadlineAt: new Date(), createdAt: new Date() };
    return (await ToolCall.create(row)).id;
  },
  mcpServerId: async (world) => {
    const body = { name: `s${randomUUID().slice(0, 8)}`, url: 'http://127.0.0.1:9/mcp' };
    return (await world.send<{ id: string }>('owner', 'POST', `/api/spaces/${world.spaceId}/mcp-servers`, body)).id;
  },
  itemId: async (world) => {
    const path = `/folder ${randomUUID()}`;
    return (await world.send<{ id: string }>('owner', 'POST', `/api/spaces/${world.spaceId}/drive/folders`, { path }))
      .id;
  },
  computerId: async (world) =>
    (await world.send<{ id: string }>('owner', 'POST', `/api/spaces/${world.spaceId}/computers`, {})).id,
  // A computer that has never been used has none.
  processId: () => 'process',
  'readComputerFile.path': () => 'file',
  'writeComputerFile.path': () => 'file',
  'deleteComputerFile.path': () => 'file',
  // Of the computer that was made last: the one in the same path.
  linkId: async (world) => {
    const path = `/api/spaces/${world.spaceId}/computers`;
    const { data } = await world.send<{ data: { id: string }[] }>('owner', 'GET', path);
    return (await world.send<{ id: string }>('owner', 'POST', `${path}/${data.at(-1)?.id}/ports`, { port: 80 })).id;
  },
  profileId: async (world) => insertProfile(world.database, await ownerOf(world)),
  'Browsers.sessionId': async (world) => insertBrowser(world.database, await ownerOf(world)),
  // Of the session that was made last: the one in the same path.
  'Browsers.linkId': async (world) => (await linkToBrowser(world)).id,
  'Browsers.token': async (world) => (await linkToBrowser(world)).token,
  // Of a session that has ended.
  tabId: () => 'tab',
  // Of the computer that was made last: the one in the same path.
  'Desktops.sessionId': async (world) => {
    return insertDesktop(world.database, await ownerOf(world));
  },
  // Of the session that was made last: the one in the same path.
  'Desktops.recordingId': async ({ database, people, spaceId }) => {
    const sql =
      'SELECT id, computer_id AS computerId FROM desktop_sessions WHERE space_id = ? ORDER BY id DESC LIMIT 1';
    const [rows] = await database.pool.query<RowDataPacket[]>(sql, [spaceId]);
    const { id: sessionId = 'dsk_1', computerId = 'cmp_1' } = (rows[0] ?? {}) as { id?: string; computerId?: string };
    return insertRecording(database, { spaceId, computerId, sessionId, createdBy: people.owner.id });
  },
  // Of the session that was made last: the one in the same path.
  'Desktops.linkId': async ({ database, people, spaceId }) => {
    const sql = 'SELECT id FROM desktop_sessions WHERE space_id = ? ORDER BY id DESC LIMIT 1';
    const [rows] = await database.pool.query<RowDataPacket[]>(sql, [spaceId]);
    const row = { session_id: rows[0]?.id ?? 'dsk_1', space_id: spaceId, control: 0, ttl_seconds: 600 };
    const id = newId('desktopLink');
    const made = { ...row, id, created_by: people.owner.id, created_at: new Date(), expires_at: new Date() };
    await database.pool.query('INSERT INTO desktop_links SET ?', [made]);
    return id;
  },
  // Of the app that was made last: the one in the same path.
  'Apps.linkId': async ({ database, people, spaceId }) => {
    const [rows] = await database.pool.query<RowDataPacket[]>(
      'SELECT id, item_id AS itemId FROM apps WHERE space_id = ? ORDER BY id DESC LIMIT 1',
      [spaceId],
    );
    const { id: app_id = 'app_1', itemId: item_id = 'itm_1' }: Partial<Record<string, string>> = rows[0] ?? {};
    const [runId, id] = [newId('run'), newId('portLink')];
    const common = { space_id: spaceId, created_at: new Date() };
    const place = { kind: 'folder', computerId: 'cmp_1', folder: 'apps' };
    const spec = JSON.stringify({ ...filledIn, kind: 'web', command: 'true', port: 8000, place });
    const state = { trigger_kind: 'preview', status: 'succeeded', attempt: 1, is_started: 1 };
    const user_id = people.owner.id;
    await insertRows(database, {
      app_runs: { ...common, ...state, id: runId, app_id, item_id, component: 'site', spec, user_id },
      port_links: {
        ...common,
        id,
        computer_id: 'cmp_1',
        port: 8000,
        label: id.slice(-26).toLowerCase(),
        created_by: user_id,
        expires_at: new Date(Date.now() + 3_600_000),
        run_id: runId,
      },
    });
    return id;
  },
  version: () => '1',
  uploadId: async (world) => {
    const body = { path: `/file ${randomUUID()}`, size: 1 };
    return (await world.send<{ id: string }>('editor', 'POST', `/api/spaces/${world.spaceId}/drive/uploads`, body)).id;
  },
  // From a server that does not answer.
  'Git.itemId': async (world) => {
    const body = { url: 'https://git.example.com/tool.git', name: randomUUID() };
    return (await world.send<{ id: string }>('owner', 'POST', `/api/spaces/${world.spaceId}/git/clone`, body)).id;
  },
  appId: (world) => builderOf('itemId', 'Git')(world),
  // Of the repository that was made last: the one in the same path.
  draftId: async ({ database, people, spaceId }) => {
    const sql = `SELECT item_id AS itemId, computer_id AS computerId FROM git_repositories WHERE space_id = ?
      ORDER BY item_id DESC LIMIT 1`;
    const [rows] = await database.pool.query<RowDataPacket[]>(sql, [spaceId]);
    const { itemId = 'itm_1', computerId = 'cmp_1' }: Partial<Record<string, string>> = rows[0] ?? {};
    return insertDraft(database, { itemId, spaceId, computerId, createdBy: people.owner.id });
  },
  driveItemId: (world) => builderOf('itemId', 'Git')(world),
  // Its manifest is known already, so that nobody has to read it.
  'Apps.driveItemId': async (world) => {
    const drive = `/api/spaces/${world.spaceId}/drive`;
    const path = `/app ${randomUUID()}`;
    const { id: itemId } = await world.send<{ id: string }>('owner', 'POST', `${drive}/folders`, { path });
    const components = [
      { ...filledIn, name: 'build', kind: 'process', command: 'true' },
      { ...filledIn, name: 'receive', kind: 'webhook', command: 'true', auth: 'signature' },
      { ...filledIn, ...nightly, name: 'nightly', kind: 'schedule', command: 'true', overlap: 'skip' },
      { ...filledIn, name: 'site', kind: 'web', command: 'true', port: 8000 },
    ];
    const manifest = JSON.stringify({ name: 'App', components });
    const body = new FormData();
    body.append('path', `${path}/atrium.yaml`);
    body.append('file', new Blob([manifest]), 'a');
    await world.send('owner', 'POST', `${drive}/upload`, body);
    const row = { id: newId('app'), item_id: itemId, live: 1, space_id: world.spaceId, created_at: new Date() };
    const read = { manifest, manifest_tag: createHash('sha256').update(manifest).digest('hex') };
    const made = { ...row, ...read, created_by: world.people.owner.id };
    await world.database.pool.query('INSERT INTO apps SET ?', [made]);
    const of = { id: newId('appSchedule'), app_id: row.id, item_id: itemId, space_id: world.spaceId };
    const { cron, timeZone: time_zone, jitterSeconds: jitter_seconds } = nightly;
    const tick = { next_at: new Date('2100-01-01'), due_at: new Date('2100-01-01') };
    const state = {
      cron,
      time_zone,
      jitter_seconds,
      ...tick,
      enabled: 1,
      failures: 0,
      version: 1,
      created_at: new Date(),
    };
    await world.database.pool.query('INSERT INTO app_schedules SET ?', [{ ...of, component: 'nightly', ...state }]);
    return itemId;
  },
  'getAppVersion.driveItemId': async (world) => (await waitingVersion(world, 'get')).itemId,
  'getAppVersion.versionId': async (world) => (await waitingVersion(world, 'get')).versionId,
  'approveAppVersion.driveItemId': async (world) => (await waitingVersion(world, 'approve')).itemId,
  'approveAppVersion.versionId': async (world) => (await waitingVersion(world, 'approve')).versionId,
  'refuseAppVersion.driveItemId': async (world) => (await waitingVersion(world, 'refuse')).itemId,
  'refuseAppVersion.versionId': async (world) => (await waitingVersion(world, 'refuse')).versionId,
  'Apps.component': () => 'nightly',
  'Webhooks.component': () => 'receive',
  'Webhooks.appId': (world) => builderOf('driveItemId', 'Apps')(world),
  endpointId: ({ database, people, spaceId }) => insertEndpoint(database, { spaceId, createdBy: people.owner.id }),
  'getWebhookDelivery.deliveryId': ({ database, spaceId }) => insertDelivery(database, spaceId),
  'replayWebhookDelivery.deliveryId': ({ database, spaceId }) => insertDelivery(database, spaceId),
  deliveryId: async (world) => {
    const itemId = await builderOf('driveItemId', 'Apps')(world);
    const { id: appId } = await getAppOf(world.database, itemId);
    const id = newId('delivery');
    const of = { id, app_id: appId, item_id: itemId, space_id: world.spaceId, component: 'receive', run_id: 'run_1' };
    const content = {
      method: 'POST',
      query: '',
      headers: '{}',
      body: Buffer.from('{}'),
      body_bytes: 2,
      has_content: 1,
    };
    const row = { ...of, ...content, auth: 'signature', delivery_id: 'msg_1', created_at: new Date() };
    await world.database.pool.query('INSERT INTO app_deliveries SET ?', [row]);
    return id;
  },
  // One that has ended before it began.
  runId: async (world) => {
    const itemId = await builderOf('driveItemId', 'Apps')(world);
    const { id: appId } = await getAppOf(world.database, itemId);
    const id = newId('run');
    const row = {
      id,
      app_id: appId,
      item_id: itemId,
      space_id: world.spaceId,
      component: 'run',
      trigger_kind: 'request',
    };
    const place = { kind: 'folder', computerId: 'cmp_1', folder: '' };
    const spec = JSON.stringify({ place, secrets: [], retry: { attempts: 1 }, concurrency: 1 });
    const state = { status: 'cancelled', active: null, attempt: 0, is_started: 0, user_id: world.people.owner.id };
    await world.database.pool.query('INSERT INTO app_runs SET ?', [{ ...row, ...state, spec, created_at: new Date() }]);
    return id;
  },
  // The server has it as soon as somebody looks after it, where there is one.
  databaseId: async ({ database, people, spaceId }) =>
    insertDatabase(database, { spaceId, createdBy: people.owner.id }),
  'deleteDatabaseBackup.databaseId': databaseWithBackups,
  'restoreDatabaseBackup.databaseId': databaseWithBackups,
  backupId: async (world) => {
    const databaseId = await databaseWithBackups(world);
    return insertBackup(world.database, { spaceId: world.spaceId, databaseId });
  },
  credentialId: async (world) => {
    const body = { name: 'Git server', host: 'git.example.com', secret: 'a token' };
    const path = `/api/spaces/${world.spaceId}/git/credentials`;
    return (await world.send<{ id: string }>('owner', 'POST', path, body)).id;
  },
  // The editor's own.
  automationId: async (world) => {
    const body = { name: 'Report', prompt: '/say hello', modelId: 'demo' };
    return (await world.send<{ id: string }>('editor', 'POST', `/api/spaces/${world.spaceId}/automations`, body)).id;
  },
  subscriptionId: async (world) => {
    const keys = { p256dh: createECDH('prime256v1').generateKeys('base64url'), auth: 'tBHItJI5svbpez7KI4CCXg' };
    const body = { endpoint: `https://push.example.com/${randomUUID()}`, keys };
    return (await world.send<{ id: string }>('viewer', 'POST', '/api/push/subscriptions', body)).id;
  },
  operationId: async ({ database, people, spaceId }) => {
    const operation = { kind: 'deleteThread' as const, spaceId, userId: people.viewer.id, subjectId: newId('thread') };
    return (await operationModels(database).Operation.begin(operation)).id;
  },
};

interface OfApp {
  itemId: string;
  versionId: string;
}

const waiting = new WeakMap<World, Record<string, Promise<OfApp>>>();

/** One for each world and operation: a version of an app that waits. */
function waitingVersion(world: World, operation: string): Promise<OfApp> {
  const known = waiting.get(world) ?? {};
  waiting.set(world, known);
  known[operation] ??= makeWaitingVersion(world);
  return known[operation];
}

async function makeWaitingVersion(world: World): Promise<OfApp> {
  const itemId = await builderOf('driveItemId', 'Apps')(world);
  const { id, manifest, manifestTag } = await getAppOf(world.database, itemId);
  const versionId = newId('appVersion');
  const of = { id: versionId, app_id: id, space_id: world.spaceId, state: 'waiting', content_hash: 'a'.repeat(64) };
  const content = { manifest: JSON.stringify(manifest), manifest_tag: manifestTag, files: '{}' };
  const row = { ...of, ...content, authors: '[]', reasons: '[]', created_at: new Date() };
  await world.database.pool.query('INSERT INTO app_versions SET ?', [row]);
  await world.database.pool.query('UPDATE apps SET waiting_id = ? WHERE id = ?', [versionId, id]);
  return { itemId, versionId };
}

const backedUp = new WeakMap<World, Promise<string>>();

/** One for each world, whose backups there are. */
function databaseWithBackups(world: World): Promise<string> {
  const known = backedUp.get(world) ?? Promise.resolve(builderOf('databaseId', 'Databases')(world));
  backedUp.set(world, known);
  return known;
}

async function invite(world: World): Promise<{ id: string; link: string }> {
  const body = { email: `${randomUUID()}@example.com`, role: 'viewer' };
  return world.send('owner', 'POST', `/api/spaces/${world.spaceId}/invitations`, body);
}

/** The builder of what a path's parameter names. Throws when there is none, and says where it belongs. */
export function builderOf(parameter: string, area: string, operationId = ''): Builder {
  const build = objects[`${operationId}.${parameter}`] ?? objects[`${area}.${parameter}`] ?? objects[parameter];
  if (build === undefined)
    throw new Error(`test/builders/world.ts does not know how to make a {${parameter}}: add it.`);
  return build;
}
