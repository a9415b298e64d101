import { appsOf, manifestOf } from '../../builders/app.ts';
import { buildChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct();
});
afterAll(() => product.close());

async function setUp() {
  const user = await buildChatUser(product);
  return { user, apps: appsOf(product, user) };
}

test('Registering a folder with a manifest creates an app, and registering it again returns the same app', async () => {
  const { user, apps } = await setUp();
  const id = await apps.folder({ 'atrium.yaml': manifestOf('make') });
  const made = await apps.make(id);
  expect(made).toMatchObject({
    status: 201,
    body: {
      id,
      spaceId: user.spaceId,
      name: 'App',
      kind: 'folder',
      folder: `apps/${id}`,
      components: [{ name: 'run', kind: 'process', command: 'make', isDefault: true }],
      problem: null,
    },
  });
  expect(await apps.make(id)).toEqual({ ...made, status: 200 });
  expect((await apps.list()).body.data).toEqual([made.body]);
  expect((await apps.get(id)).body).toEqual(made.body);
  const { computerId } = await user.get<{ computerId: string }>(`${apps.space}/computers/status`);
  expect(made.body.computerId).toBe(computerId);
});

test('Errors in a manifest are reported with line and column', async () => {
  const { apps } = await setUp();
  const text = 'name: App\ncomponents:\n  - name: run\n    kind: process\n    comand: x\n';
  const id = await apps.folder({ 'atrium.yaml': text });
  expect(await apps.make(id)).toMatchObject({
    status: 422,
    body: {
      code: 'APP_MANIFEST_INVALID',
      detail: 'Line 5 of the manifest is wrong: there is no field `comand` here',
      errors: [
        { pointer: 'atrium.yaml:5:5', detail: 'there is no field `comand` here' },
        { pointer: 'atrium.yaml:3:5', detail: '`command` is missing' },
      ],
    },
  });
  expect((await apps.list()).body.data).toEqual([]);
  expect(await apps.get(id)).toMatchObject({ status: 404 });
});

test('A folder without a manifest, a folder with an oversized manifest, and a file cannot become apps', async () => {
  const { apps } = await setUp();
  const empty = await apps.folder();
  expect(await apps.make(empty)).toMatchObject({ status: 422, body: { code: 'APP_MANIFEST_MISSING' } });
  const large = await apps.folder({ 'atrium.yaml': `# ${'x'.repeat(70_000)}\n${manifestOf('make')}` });
  expect(await apps.make(large)).toMatchObject({ status: 422, body: { code: 'APP_MANIFEST_TOO_LARGE' } });
  const { body } = await apps.send<{ data: { id: string }[] }>('GET', `${apps.space}/drive/items?parentId=${large}`);
  expect(await apps.make(body.data[0]?.id ?? '')).toMatchObject({ status: 409, body: { code: 'NOT_AN_APP' } });
  expect(await apps.make('itm_none')).toMatchObject({ status: 404 });
});

test('A changed manifest takes effect, and an invalid one keeps the last valid manifest and reports the problem', async () => {
  const { apps } = await setUp();
  const id = await apps.app(manifestOf('make'));
  await apps.put(id, 'atrium.yaml', manifestOf('make all'));
  expect((await apps.get(id)).body.components[0]?.command).toBe('make all');
  await apps.put(id, 'atrium.yaml', 'name: App\n');
  const wrong = (await apps.get(id)).body;
  expect([wrong.components[0]?.command, wrong.problem?.code]).toEqual(['make all', 'APP_MANIFEST_INVALID']);
  expect(wrong.problem?.faults).toEqual([{ line: 1, column: 1, detail: '`components` is missing' }]);
  expect((await apps.list()).body.data[0]?.problem).toEqual(wrong.problem);
  const items = await apps.send<{ data: { id: string }[] }>('GET', `${apps.space}/drive/items?parentId=${id}`);
  await apps.send('DELETE', `${apps.space}/drive/items/${items.body.data[0]?.id}`);
  expect((await apps.get(id)).body.problem?.code).toBe('APP_MANIFEST_MISSING');
  await apps.put(id, 'atrium.yaml', manifestOf('make again'));
  expect((await apps.get(id)).body).toMatchObject({ problem: null, components: [{ command: 'make again' }] });
});

test('Removing an app keeps its folder, and deleting the folder for good removes the app', async () => {
  const { apps } = await setUp();
  const id = await apps.app(manifestOf('make'));
  expect(await apps.remove(id)).toMatchObject({ status: 204 });
  expect(await apps.remove(id)).toMatchObject({ status: 404 });
  expect((await apps.list()).body.data).toEqual([]);
  expect(await apps.send('GET', `${apps.space}/drive/items/${id}`)).toMatchObject({ status: 200 });
  expect(await apps.make(id)).toMatchObject({ status: 201 });
  // An app in the trash is hidden and comes back with its folder.
  await apps.send('DELETE', `${apps.space}/drive/items/${id}`);
  expect(await apps.get(id)).toMatchObject({ status: 404 });
  expect((await apps.list()).body.data).toEqual([]);
  await apps.send('POST', `${apps.space}/drive/items/${id}/restore`);
  expect(await apps.get(id)).toMatchObject({ status: 200 });
  await apps.send('DELETE', `${apps.space}/drive/items/${id}?permanent=true`);
  const { pool } = product.environment.database;
  const [rows] = await pool.query('SELECT id FROM apps WHERE item_id = ? AND live = 1', [id]);
  expect(rows).toEqual([]);
});

test('404 for an app of another space', async () => {
  const { apps } = await setUp();
  const other = (await setUp()).apps;
  const id = await apps.app(manifestOf('make'));
  const answers = [await other.get(id), await other.remove(id), await other.make(id)];
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
  expect(await apps.get(id)).toMatchObject({ status: 200 });
});
