import { createECDH, createHash, randomUUID } from 'node:crypto';
import type { RowDataPacket } from 'mysql2/promise';
import { loadContract } from '../../api/frame/contract.ts';
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
import { insertEnvironment } from './environmentRows.ts';
import { buildSpace, buildUser } from './identity.ts';
import { insertRecording } from './recording.ts';
import { insertRows } from './rows.ts';
import { saveRow } from './save.ts';
import { insertDelivery, insertEndpoint } from './webhookRows.ts';

/** Kinds of signed-in callers: three roles in a space, and a member of another space. */
export type Kind = Role | 'stranger';
export const kinds: readonly Kind[] = ['owner', 'editor', 'viewer', 'stranger'];

export type People = Record<Kind, { id: string; email: string }>;

/** A space with these people. Personal objects in it (threads, sessions) belong to the viewer. */
export interface World {
  database: Database;
  identity: Identity;
  people: People;
  spaceId: string;
  /**
   * Sends a request as one of them in a new session, or without a credential as `nobody`. A body is sent as JSON unless
   * it is a form or multipart.
   */
  fetch(
    kind: Kind | 'nobody',
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Response>;
  /** The body of a response that must be 2xx. */
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

/** Default fields of a component. */
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

/** The columns of an object on the newest computer. */
async function ownerOf({ people, send, spaceId }: World) {
  const path = `/api/spaces/${spaceId}/computers`;
  const { data } = await send<{ data: { id: string }[] }>('owner', 'GET', path);
  return { spaceId, computerId: data.at(-1)?.id ?? '', createdBy: people.owner.id };
}

/** A link to the viewer's newest thread. */
async function shareThread(world: World): Promise<{ id: string; url: string }> {
  const threads = `/api/spaces/${world.spaceId}/threads?limit=1`;
  const { data } = await world.send<{ data: { id: string }[] }>('viewer', 'GET', threads);
  const threadId = data[0]?.id ?? (await builderOf('threadId', 'Threads')(world));
  return world.send('viewer', 'POST', `/api/threads/${threadId}/shares`, {});
}

/** A link to the newest browser session. */
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
 * For each path parameter of the contract: makes such an object in the world's space, and returns its value for the
 * path. A parameter needs a line here if the POST on its list does not make such an object. Use `Area.name` if another
 * area uses the name for something else, and `operationId.name` if an operation needs more of the object.
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
  fileId: async (world) => {
    const body = new FormData();
    body.append('file', new Blob(['a']), `${randomUUID()}.txt`);
    return (await world.send<{ id: string }>('owner', 'POST', `/api/spaces/${world.spaceId}/drive/upload`, body)).id;
  },
  choice: () => 'cancel',
  modelId: () => 'demo',
  'Secrets.name': async (world) => {
    const name = `SECRET_${randomUUID().replaceAll('-', '').toUpperCase()}`;
    await world.send('owner', 'PUT', `/api/spaces/${world.spaceId}/secrets/${name}`, { value: 'a value' });
    return name;
  },
  // The secret is given to all computers of the space, since the computer of the path is not known here.
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
  // An invitation to a space that the viewer does not belong to yet.
  'Account.invitationId': async (world) => {
    const { id } = await world.send<{ id: string }>('owner', 'POST', '/api/spaces', { name: 'Further' });
    const body = { email: world.people.viewer.email, role: 'viewer' };
    return (await world.send<{ id: string }>('owner', 'POST', `/api/spaces/${id}/invitations`, body)).id;
  },
  // Covers both kinds of links, since their page answers all callers alike.
  token: async (world) => (await invite(world)).link.split('/').at(-1) ?? '',
  'Sharing.token': async (world) => (await shareThread(world)).url.split('/').at(-1) ?? '',
  // For the newest thread, which is the one in the same path.
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
  // For the newest turn, which is the one in the same path.
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
  // An unused computer has no processes.
  processId: () => 'process',
  'readComputerFile.path': () => 'file',
  'writeComputerFile.path': () => 'file',
  'deleteComputerFile.path': () => 'file',
  // For the newest computer, which is the one in the same path.
  linkId: async (world) => {
    const path = `/api/spaces/${world.spaceId}/computers`;
    const { data } = await world.send<{ data: { id: string }[] }>('owner', 'GET', path);
    return (await world.send<{ id: string }>('owner', 'POST', `${path}/${data.at(-1)?.id}/ports`, { port: 80 })).id;
  },
  // A row, because the newest computer was never used and cannot be asked for a snapshot.
  snapshotId: async (world) => {
    const { spaceId, computerId, createdBy } = await ownerOf(world);
    const [id, save] = [newId('computerSnapshot'), saveRow({ spaceId, computerId })];
    const named = { id, spaceId, computerId, saveId: save.id, name: 'Kept', createdBy, createdAt: new Date() };
    await insertRows(world.database, { home_saves: save, computer_snapshots: named });
    return id;
  },
  // A row, because no host here can build one.
  environmentId: ({ database, people, spaceId }) =>
    insertEnvironment(database, { spaceId, createdBy: people.owner.id }),
  profileId: async (world) => insertProfile(world.database, await ownerOf(world)),
  'Browsers.sessionId': async (world) => insertBrowser(world.database, await ownerOf(world)),
  // For the newest session, which is the one in the same path.
  'Browsers.linkId': async (world) => (await linkToBrowser(world)).id,
  'Browsers.token': async (world) => (await linkToBrowser(world)).token,
  // The session has ended, so it has no tab.
  tabId: () => 'tab',
  // For the newest computer, which is the one in the same path.
  'Desktops.sessionId': async (world) => {
    return insertDesktop(world.database, await ownerOf(world));
  },
  // For the newest session, which is the one in the same path.
  'Desktops.recordingId': async ({ database, people, spaceId }) => {
    const sql =
      'SELECT id, computer_id AS computerId FROM desktop_sessions WHERE space_id = ? ORDER BY id DESC LIMIT 1';
    const [rows] = await database.pool.query<RowDataPacket[]>(sql, [spaceId]);
    const { id: sessionId = 'dsk_1', computerId = 'cmp_1' } = (rows[0] ?? {}) as { id?: string; computerId?: string };
    return insertRecording(database, { spaceId, computerId, sessionId, createdBy: people.owner.id });
  },
  // For the newest session, which is the one in the same path.
  'Desktops.linkId': async ({ database, people, spaceId }) => {
    const sql = 'SELECT id FROM desktop_sessions WHERE space_id = ? ORDER BY id DESC LIMIT 1';
    const [rows] = await database.pool.query<RowDataPacket[]>(sql, [spaceId]);
    const row = { session_id: rows[0]?.id ?? 'dsk_1', space_id: spaceId, control: 0, ttl_seconds: 600 };
    const id = newId('desktopLink');
    const made = { ...row, id, created_by: people.owner.id, created_at: new Date(), expires_at: new Date() };
    await database.pool.query('INSERT INTO desktop_links SET ?', [made]);
    return id;
  },
  // For the newest app, which is the one in the same path.
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
  // Cloned from a server that does not answer.
  'Git.itemId': async (world) => {
    const body = { url: 'https://git.example.com/tool.git', name: randomUUID() };
    return (await world.send<{ id: string }>('owner', 'POST', `/api/spaces/${world.spaceId}/git/clone`, body)).id;
  },
  appId: (world) => builderOf('itemId', 'Git')(world),
  // For the newest repository, which is the one in the same path.
  draftId: async ({ database, people, spaceId }) => {
    const sql = `SELECT item_id AS itemId, computer_id AS computerId FROM git_repositories WHERE space_id = ?
      ORDER BY item_id DESC LIMIT 1`;
    const [rows] = await database.pool.query<RowDataPacket[]>(sql, [spaceId]);
    const { itemId = 'itm_1', computerId = 'cmp_1' }: Partial<Record<string, string>> = rows[0] ?? {};
    return insertDraft(database, { itemId, spaceId, computerId, createdBy: people.owner.id });
  },
  driveItemId: (world) => builderOf('itemId', 'Git')(world),
  // Its manifest is already stored, so that nothing has to read the file.
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
  // A run that was cancelled before it began.
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
  // The server gets the database once a sweep aligns it, if there is a server.
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
  // Belongs to the editor.
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

/** A waiting version of an app, one for each world and operation. */
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

/** A database for backups, one for each world. */
function databaseWithBackups(world: World): Promise<string> {
  const known = backedUp.get(world) ?? Promise.resolve(builderOf('databaseId', 'Databases')(world));
  backedUp.set(world, known);
  return known;
}

async function invite(world: World): Promise<{ id: string; link: string }> {
  const body = { email: `${randomUUID()}@example.com`, role: 'viewer' };
  return world.send('owner', 'POST', `/api/spaces/${world.spaceId}/invitations`, body);
}

/** The builder for a path parameter. Throws if there is none. */
export function builderOf(parameter: string, area: string, operationId = ''): Builder {
  return (
    objects[`${operationId}.${parameter}`] ??
    objects[`${area}.${parameter}`] ??
    objects[parameter] ??
    adderOf(parameter) ??
    raise(`test/builders/world.ts does not know how to make a {${parameter}}: add it.`)
  );
}

/** Makes an object through the POST on its list, with the example of the contract. Undefined if there is no such list. */
function adderOf(parameter: string): Builder | undefined {
  const { document, operations } = loadContract();
  const item = operations.find(({ path }) => path.endsWith(`/{${parameter}}`));
  const list = item?.path.slice(0, item.path.lastIndexOf('/'));
  const adding = operations.find(({ method, path }) => method === 'POST' && path === list);
  if (adding === undefined || list === undefined) return undefined;
  const { requestBody } = (document.paths as Record<string, { post: { requestBody?: object } }>)[list]?.post ?? {};
  const { content } = requestBody as { content: Record<string, { example?: object }> };
  const body = content['application/json']?.example;
  return async (world) =>
    (await world.send<{ id: string }>('owner', 'POST', list.replace('{spaceId}', world.spaceId), body)).id;
}

function raise(message: string): never {
  throw new Error(message);
}
