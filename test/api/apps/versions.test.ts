import { deepStrictEqual } from 'node:assert';
import { getAppOf } from '../../../models/apps/app.ts';
import { lookAtApp } from '../../../models/apps/lookAtApp.ts';
import type { DriveItem } from '../../../models/drive/driveItem.ts';
import { appsOf, manifestOf, scheduleManifest, webhookManifest } from '../../builders/app.ts';
import { asUser, buildChatUser, type ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// A later run of an app has no more rights than the author of the last change to the app. No host runs here: these
// tests check which version is in use and which waits. That the version in use runs is tested in runs.test.ts.

let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({ ...hurriedSweeper });
});
afterAll(() => product.close());

const secrets = ['TOKEN'];
const open = webhookManifest('cat; echo $TOKEN | rev', { auth: 'none', secrets });

async function setUp(manifest = webhookManifest('cat'), files: Record<string, string> = {}) {
  const user = await buildChatUser(product);
  const apps = appsOf(product, user);
  await apps.send('PUT', `${apps.space}/secrets/TOKEN`, { value: 'hunter2-hunter2' });
  const id = await apps.app(manifest, files);
  const keyWith = async (...scopes: string[]): Promise<ChatUser> => {
    const { key } = await product.identity.keys.create(user.id, { name: 'bot', scopes });
    return asUser(product, { ...user, token: key });
  };
  const versions = async () => (await apps.versions(id)).body.data;
  return { user, apps, id, keyWith, versions };
}

test('A change by a drive-only key waits for approval, and the version in use goes on', async () => {
  const { apps, id, keyWith, versions } = await setUp();
  const writer = appsOf(product, await keyWith('drive:write'));
  await writer.put(id, 'atrium.yaml', open);
  const refused = { status: 401, body: { code: 'INVALID_SIGNATURE' } };
  expect(await apps.deliver(id)).toMatchObject(refused);
  const secret = await apps.secret(id);
  const { body } = await apps.deliver(id, { secret });
  expect(body.message).toContain('waits for approval');
  const [run] = (await apps.runs(id)).body.data;
  expect(run?.id).toBe(body.runId);
  const app = (await apps.get(id)).body;
  expect(app.components).toMatchObject([{ command: 'cat', auth: 'signature', secrets: [] }]);
  const [waiting, inUse] = await versions();
  expect([app.waitingVersionId, app.versionId]).toEqual([waiting?.id, inUse?.id]);
  expect(waiting).toMatchObject({ state: 'waiting', runsAs: null, changedBy: [{ turnId: null }] });
  expect(waiting?.reasons.map(({ detail }) => detail)).toEqual([
    expect.stringContaining('"apps:write"'),
    expect.stringContaining('"secrets:read"'),
  ]);
  // Also after the owner changes another file: the waiting version still contains the key's change.
  await apps.put(id, 'notes.txt', 'mine');
  expect(await apps.deliver(id)).toMatchObject(refused);
  // With the files as before, the version in use is the current one again.
  await apps.put(id, 'atrium.yaml', webhookManifest('cat'));
  await apps.send('DELETE', `${apps.space}/drive/items/${await itemIn(apps, id, 'notes.txt')}`);
  expect((await apps.get(id)).body).toMatchObject({ versionId: app.versionId, waitingVersionId: null });
});

async function itemIn(apps: ReturnType<typeof appsOf>, folderId: string, name: string): Promise<string> {
  const path = `${apps.space}/drive/items?parentId=${folderId}`;
  const { data } = (await apps.send<{ data: { id: string; name: string }[] }>('GET', path)).body;
  return data.find((item) => item.name === name)?.id ?? '';
}

type Change = (apps: ReturnType<typeof appsOf>, id: string) => Promise<unknown>;
test.each<[string, Change]>([
  ['writing a file', (apps, id) => apps.put(id, 'run.sh', 'env')],
  ['adding a file', (apps, id) => apps.put(id, 'new.sh', 'env')],
  [
    'renaming one',
    async (apps, id) =>
      apps.send('PATCH', `${apps.space}/drive/items/${await itemIn(apps, id, 'other.sh')}`, {
        name: 'run.sh',
        onConflict: 'replace',
      }),
  ],
  [
    'moving a folder in',
    async (apps, id) => {
      const folder = await apps.folder({ 'evil.sh': 'env' });
      return apps.send('PATCH', `${apps.space}/drive/items/${folder}`, { parentId: id });
    },
  ],
  [
    'moving one out',
    async (apps, id) =>
      apps.send('PATCH', `${apps.space}/drive/items/${await itemIn(apps, id, 'run.sh')}`, {
        parentId: await apps.folder(),
      }),
  ],
  [
    'removing one',
    async (apps, id) => apps.send('DELETE', `${apps.space}/drive/items/${await itemIn(apps, id, 'run.sh')}`),
  ],
  [
    'purging one',
    async (apps, id) =>
      apps.send('DELETE', `${apps.space}/drive/items/${await itemIn(apps, id, 'run.sh')}?permanent=true`),
  ],
])('%s by a key without secrets:read waits for approval if the app gets secrets', async (_what, change) => {
  const manifest = scheduleManifest('./run.sh', { secrets });
  const { apps, id, keyWith } = await setUp(manifest, { 'run.sh': 'true', 'other.sh': 'env' });
  const before = (await apps.get(id)).body;
  await change(appsOf(product, await keyWith('drive:write', 'apps:write')), id);
  const after = (await apps.get(id)).body;
  expect(after.waitingVersionId).toEqual(expect.any(String));
  expect(after.versionId).toBe(before.versionId);
  // The same change by the owner is in use at once.
  const { apps: own, id: ownId } = await setUp(manifest, { 'run.sh': 'true', 'other.sh': 'env' });
  const ownBefore = (await own.get(ownId)).body;
  await change(own, ownId);
  const ownAfter = (await own.get(ownId)).body;
  expect(ownAfter.waitingVersionId).toBeNull();
  expect(ownAfter.versionId).not.toBe(ownBefore.versionId);
});

test('Restoring an older file version, or a file from the trash, counts as a change by the caller', async () => {
  const { apps, id, keyWith } = await setUp(scheduleManifest('./run.sh', { secrets }), { 'run.sh': 'one' });
  await apps.put(id, 'run.sh', 'two');
  const before = (await apps.get(id)).body;
  const key = appsOf(product, await keyWith('drive:write'));
  const item = await itemIn(apps, id, 'run.sh');
  expect((await key.send('POST', `${apps.space}/drive/items/${item}/versions/1/restore`)).status).toBe(200);
  expect((await apps.get(id)).body).toMatchObject({
    versionId: before.versionId,
    waitingVersionId: expect.any(String),
  });
  await apps.put(id, 'run.sh', 'two');
  expect((await apps.get(id)).body.waitingVersionId).toBeNull();
  const gone = await itemIn(apps, id, 'run.sh');
  await apps.send('DELETE', `${apps.space}/drive/items/${gone}`);
  const without = (await apps.get(id)).body;
  expect(without.waitingVersionId).toBeNull();
  expect((await key.send('POST', `${apps.space}/drive/items/${gone}/restore`)).status).toBe(200);
  const back = (await apps.get(id)).body;
  expect(back).toMatchObject({ versionId: without.versionId, waitingVersionId: expect.any(String) });
});

test('A change by a key with all needed scopes is in use at once, and its runs have only those scopes', async () => {
  const { user, apps, id, keyWith, versions } = await setUp();
  const key = appsOf(product, await keyWith('drive:write', 'apps:write', 'secrets:read'));
  await key.put(id, 'atrium.yaml', open);
  const { runId } = (await apps.deliver(id)).body;
  const [inUse] = await versions();
  expect(inUse).toMatchObject({ state: 'in_use', runsAs: user.id, reasons: [] });
  const { pool } = product.environment.database;
  const [rows] = await pool.query('SELECT scopes FROM app_runs WHERE id = ?', [runId]);
  deepStrictEqual(JSON.parse((rows as { scopes: string }[])[0]?.scopes ?? ''), [
    'drive:write',
    'apps:write',
    'secrets:read',
  ]);
});

test('Only a caller with all needed rights decides on a waiting version, and the decision is final', async () => {
  const { user, apps, id, keyWith, versions } = await setUp();
  const writer = appsOf(product, await keyWith('drive:write'));
  await writer.put(id, 'atrium.yaml', open);
  const { waitingVersionId: waiting, versionId } = (await apps.get(id)).body;
  const narrow = appsOf(product, await keyWith('apps:write', 'approvals'));
  expect(await narrow.approve(id, waiting ?? '')).toMatchObject({ status: 403, body: { code: 'INSUFFICIENT_SCOPE' } });
  const program = appsOf(product, await keyWith('apps:write', 'secrets:read'));
  expect(await program.approve(id, waiting ?? '')).toMatchObject({
    status: 403,
    body: { detail: expect.stringContaining('approvals') },
  });
  const [stranger, viewer] = [await buildChatUser(product), await buildChatUser(product)];
  await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
  expect((await appsOf(product, stranger).approve(id, waiting ?? '')).status).toBe(404);
  expect((await appsOf(product, viewer).approve(id, waiting ?? '')).status).toBe(403);
  const other = await setUp();
  expect((await other.apps.approve(other.id, waiting ?? '')).status).toBe(404);
  expect((await apps.approve(id, 'ver_none')).status).toBe(404);
  expect((await apps.version(id, waiting ?? '')).body).toMatchObject({
    components: [{ auth: 'none', secrets }],
    files: { added: [], changed: ['atrium.yaml'], removed: [] },
  });

  expect(await apps.refuse(id, waiting ?? '')).toMatchObject({ status: 200, body: { state: 'refused' } });
  expect((await apps.refuse(id, waiting ?? '')).status).toBe(200);
  const gone = { status: 409, body: { code: 'APP_VERSION_REPLACED' } };
  expect(await apps.approve(id, waiting ?? '')).toMatchObject(gone);
  expect((await apps.get(id)).body).toMatchObject({ versionId, waitingVersionId: null });
  // The next change by another user does not let the refused change in.
  await apps.put(id, 'notes.txt', 'mine');
  const next = (await apps.get(id)).body.waitingVersionId ?? '';
  expect(next).not.toBe('');
  // A reviewer cannot approve a version that has changed since the reviewer saw it.
  await writer.put(id, 'more.sh', 'env');
  expect(await apps.approve(id, next)).toMatchObject(gone);
  const last = (await apps.get(id)).body.waitingVersionId ?? '';
  expect(await apps.approve(id, last)).toMatchObject({ status: 200, body: { state: 'in_use', runsAs: user.id } });
  expect((await apps.approve(id, last)).status).toBe(200);
  expect(await apps.refuse(id, last)).toMatchObject(gone);
  expect((await apps.deliver(id)).status).toBe(200);
  expect((await versions()).map(({ state }) => state)).toEqual(['in_use', 'replaced', 'refused', 'replaced']);
});

test("An app that a key creates with more than the key's rights waits for approval from the start", async () => {
  const { apps, keyWith } = await setUp();
  const key = appsOf(product, await keyWith('apps:write', 'apps:read', 'drive:write'));
  const id = await key.app(webhookManifest('cat', { auth: 'none', secrets }));
  const app = (await apps.get(id)).body;
  expect(app).toMatchObject({ versionId: null, waitingVersionId: expect.any(String), components: [] });
  const waits = { status: 409, body: { code: 'APP_VERSION_WAITS' } };
  expect(await apps.deliver(id)).toMatchObject(waits);
  expect(await apps.run(id)).toMatchObject(waits);
  expect((await apps.approve(id, app.waitingVersionId ?? '')).status).toBe(200);
  expect((await apps.deliver(id)).status).toBe(200);
});

test('A change by an agent waits for approval if the app gets secrets or runs by itself', async () => {
  const { user, apps, id, versions } = await setUp();
  const { path } = (await apps.send<{ path: string }>('GET', `${apps.space}/drive/items/${id}`)).body;
  const calls = [
    ['drive_write', { path: `${path}/atrium.yaml`, content: open }],
    ['app_list', {}],
    ['app_run', { app: path, component: 'receive' }],
  ] as const;
  const { chunks } = await user.ask({ content: toolLines(calls), modelId: 'demo', mode: 'work' });
  const outputs = toolOutputs(chunks).map((output) => JSON.stringify(output));
  expect(outputs[0]).toContain('approves the new version');
  expect(outputs[2]).toContain('cannot be run directly');
  expect(await apps.deliver(id)).toMatchObject({ status: 401 });
  const [waiting] = await versions();
  expect(waiting).toMatchObject({ state: 'waiting', reasons: [{ code: 'CHANGED_BY_AGENT' }] });
  expect(waiting?.changedBy[0]?.turnId).toEqual(expect.any(String));
  const listed = await user.ask({ content: toolLines([['app_list', {}]]), modelId: 'demo', mode: 'work' });
  expect(JSON.stringify(toolOutputs(listed.chunks))).toContain('waits for approval');

  // This app runs only on request and gets no secrets, so an agent could run it at a terminal as well.
  const plain = await apps.app(manifestOf('true'));
  const { path: plainPath } = (await apps.send<{ path: string }>('GET', `${apps.space}/drive/items/${plain}`)).body;
  const writing = ['drive_write', { path: `${plainPath}/a.sh`, content: 'true' }] as const;
  await user.ask({ content: toolLines([writing]), modelId: 'demo', mode: 'work' });
  expect((await apps.get(plain)).body.waitingVersionId).toBeNull();
});

describe('Authors of files need the rights that the app asks for when the files are taken into use', () => {
  const receiving = webhookManifest('./recv.sh', { auth: 'none', secrets });
  const owners = 'cat > /dev/null';
  const theirs = 'echo $TOKEN | rev';
  const plain = manifestOf('true');

  async function setUpReceiver(manifest = receiving) {
    const set = await setUp(manifest, { 'recv.sh': owners });
    const { apps, id, user } = set;
    const { path } = (await apps.send<{ path: string }>('GET', `${apps.space}/drive/items/${id}`)).body;
    const asAgent = async (files: Record<string, string>) => {
      const calls = Object.entries(files).map(
        ([name, content]) => ['drive_write', { path: `${path}/${name}`, content }] as const,
      );
      await user.ask({ content: toolLines(calls), modelId: 'demo', mode: 'work' });
    };
    const reasons = async () => {
      const { waitingVersionId } = (await apps.get(id)).body;
      if (waitingVersionId == null) return [];
      return (await apps.version(id, waitingVersionId)).body.reasons.map(({ code }) => code);
    };
    /** The files that a reviewer is shown. */
    const changed = async () => {
      const { waitingVersionId } = (await apps.get(id)).body;
      return (await apps.version(id, waitingVersionId ?? '')).body.files?.changed;
    };
    return { ...set, asAgent, reasons, changed };
  }

  type Author = (set: Awaited<ReturnType<typeof setUpReceiver>>, files: Record<string, string>) => Promise<unknown>;
  test.each<[string, Author]>([
    ['an agent', ({ asAgent }, files) => asAgent(files)],
    [
      'a key without secrets:read',
      async ({ id, keyWith }, files) => {
        const key = appsOf(product, await keyWith('drive:write', 'apps:write'));
        for (const [name, content] of Object.entries(files)) await key.put(id, name, content);
      },
    ],
  ])('%s cannot change files by removing the secrets from the manifest first', async (_who, change) => {
    const set = await setUpReceiver();
    const { apps, id, changed, reasons } = set;
    const { versionId } = (await apps.get(id)).body;
    await change(set, { 'recv.sh': theirs, 'atrium.yaml': plain });
    expect((await reasons()).length).toBeGreaterThan(0);
    // The webhook of the version in use still works.
    expect((await apps.deliver(id)).status).toBe(200);
    await change(set, { 'atrium.yaml': receiving });
    expect(await changed()).toEqual(['recv.sh']);
    // The owner restores the manifest. The script is still by another author.
    await apps.put(id, 'atrium.yaml', plain);
    const item = await itemIn(apps, id, 'atrium.yaml');
    expect((await apps.send('POST', `${apps.space}/drive/items/${item}/versions/1/restore`)).status).toBe(200);
    expect((await reasons()).length).toBeGreaterThan(0);
    expect((await apps.get(id)).body.versionId).toBe(versionId);
  });

  test('A file that an agent changed in an app without secrets waits when the owner adds secrets', async () => {
    const { apps, id, asAgent, changed, reasons } = await setUpReceiver(plain);
    await asAgent({ 'recv.sh': theirs });
    expect((await apps.get(id)).body.waitingVersionId).toBeNull();
    // The content is known as the agent's, also after the owner replaces it and writes it again.
    await apps.put(id, 'notes.txt', 'mine');
    await apps.put(id, 'recv.sh', owners);
    await apps.put(id, 'recv.sh', theirs);
    await apps.put(id, 'atrium.yaml', receiving);
    expect(await reasons()).toEqual(['CHANGED_BY_AGENT']);
    expect(await changed()).toEqual(['atrium.yaml', 'recv.sh']);
    const { waitingVersionId } = (await apps.get(id)).body;
    expect((await apps.approve(id, waitingVersionId ?? '')).status).toBe(200);
    // Approved content counts as the approver's own.
    await apps.put(id, 'notes.txt', 'more');
    expect((await apps.get(id)).body.waitingVersionId).toBeNull();
  });

  test('A file that a key changed while the app had no secrets waits when the secrets come back', async () => {
    const { apps, id, keyWith, changed, reasons } = await setUpReceiver();
    await apps.put(id, 'atrium.yaml', plain);
    expect((await apps.get(id)).body.components).toMatchObject([{ secrets: [] }]);
    await appsOf(product, await keyWith('drive:write', 'apps:write')).put(id, 'recv.sh', theirs);
    const { versionId, waitingVersionId } = (await apps.get(id)).body;
    expect(waitingVersionId).toBeNull();
    await apps.put(id, 'atrium.yaml', receiving);
    expect(await reasons()).toEqual(['SCOPE_MISSING']);
    expect(await changed()).toEqual(['atrium.yaml', 'recv.sh']);
    expect((await apps.get(id)).body.versionId).toBe(versionId);
  });

  test('Content that a key approved has only the rights of that key', async () => {
    const { apps, id, asAgent, keyWith, reasons, changed } = await setUpReceiver();
    await asAgent({ 'recv.sh': theirs, 'atrium.yaml': plain });
    const { waitingVersionId } = (await apps.get(id)).body;
    const key = appsOf(product, await keyWith('apps:write', 'approvals'));
    expect((await key.approve(id, waitingVersionId ?? '')).status).toBe(200);
    await apps.put(id, 'atrium.yaml', receiving);
    expect(await reasons()).toEqual(['SCOPE_MISSING']);
    expect(await changed()).toEqual(['recv.sh']);
    const next = (await apps.get(id)).body.waitingVersionId ?? '';
    expect((await apps.approve(id, next)).status).toBe(200);
  });
});

test('A caller with an outdated app row still learns of the waiting version', async () => {
  const { apps, id, keyWith } = await setUp();
  const { database } = product.environment;
  await appsOf(product, await keyWith('drive:write')).put(id, 'atrium.yaml', open);
  const before = await getAppOf(database, id);
  const { waitingVersionId } = (await apps.get(id)).body;
  expect(waitingVersionId).toEqual(expect.any(String));
  const deps = { database, appManifests: { read: () => Promise.reject(new Error('It was looked at already.')) } };
  const folder = { id, spaceId: before.spaceId, kind: 'folder' } as DriveItem;
  const now = await lookAtApp(deps, before, folder, AbortSignal.timeout(10_000));
  expect(now.waitingId).toBe(waitingVersionId);
});

test('A key without secrets:read cannot move an app with secrets to another computer', async () => {
  const { apps, id, keyWith } = await setUp(manifestOf('true', { secrets }));
  const { id: computerId } = (await apps.send<{ id: string }>('POST', `${apps.space}/computers`, {})).body;
  const before = (await apps.get(id)).body.computerId;
  const key = appsOf(product, await keyWith('apps:write', 'computers:write'));
  const moved = await key.send('POST', `/api/apps/${id}/process/set-computer`, { computerId });
  expect(moved).toMatchObject({ status: 403, body: { code: 'INSUFFICIENT_SCOPE' } });
  expect((await apps.get(id)).body.computerId).toBe(before);
});

test('The sweep takes a change into use that no request has looked at', async () => {
  const { apps, id } = await setUp(manifestOf('true'));
  const { pool } = product.environment.database;
  const component = async () => {
    const [rows] = await pool.query('SELECT manifest FROM apps WHERE item_id = ?', [id]);
    return (rows as { manifest: string }[])[0]?.manifest ?? '';
  };
  await apps.put(id, 'atrium.yaml', manifestOf('echo swept'));
  await waitFor('the sweep', async () => (await component()).includes('swept'));
});
