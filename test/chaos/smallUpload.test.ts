import { randomUUID } from 'node:crypto';
import { Op } from 'sequelize';
import { driveModels } from '../../models/drive/models.ts';
import { buildChatUser, type ChatUser } from '../builders/chat.ts';
import { buildBucket, driveOf, expectNoOrphans, formOf, type TestBucket, type UploadBody } from '../builders/drive.ts';
import { buildIdentity } from '../builders/identity.ts';
import { createTestEnvironment, stackEnvironment, type TestEnvironment } from '../support/environment.ts';
import { inFull } from '../support/inFull.ts';
import { type ProductProcess, startProduct } from '../support/product.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

/**
 * The process is killed after each write of a small upload. When the client repeats the request, there is one file with
 * its bytes, and nothing else is left.
 */
// Each kill costs a start, which takes long on a busy machine.
jest.setTimeout(600_000);

let environment: TestEnvironment;
let bucket: TestBucket;
let wire: TcpProxy;
let gate: TcpProxy;
let product: ProductProcess;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  bucket = await buildBucket();
  environment = await createTestEnvironment({ ATRIUM_S3_BUCKET: bucket.name, ...hurriedSweeper });
  wire = await startTcpProxy(() => environment.config.database.url);
  gate = await startTcpProxy(() => stackEnvironment().ATRIUM_S3_ENDPOINT ?? '');
  product = await start();
  const address = {
    get url() {
      return product.apiUrl;
    },
  };
  const identity = await buildIdentity(environment);
  user = await buildChatUser(Object.assign(address, { identity }));
  drive = driveOf(address as never, user);
});
afterAll(async () => {
  await product.stop();
  for (const proxy of [wire, gate]) await proxy.stop();
  bucket.client.destroy();
  await environment.close();
});

function start(): Promise<ProductProcess> {
  const url = new URL(environment.config.database.url);
  url.host = new URL(wire.url).host;
  return startProduct(environment, 'both', { ATRIUM_DATABASE_URL: url.href, ATRIUM_S3_ENDPOINT: gate.url });
}

const send = (path: string, key: string) =>
  drive.send('POST', '/upload', formOf({ path }, [{ bytes: `bytes of ${path}` }]), { 'idempotency-key': key });

/** Waits until the sweeper has removed the objects that were arriving before `time`. */
async function swept(time: Date): Promise<void> {
  const { DriveObject } = driveModels(environment.database);
  const createdAt = { [Op.lte]: time };
  await waitFor('the sweeper', async () => {
    await DriveObject.update({ leaseExpiresAt: new Date(0) }, { where: { state: 'arriving', createdAt } });
    const left = [{ state: 'arriving' }, { state: 'doomed', leaseExpiresAt: null }];
    return (await DriveObject.count({ where: { createdAt, [Op.or]: left } })) === 0;
  });
}

const commit = ['UPDATE drives d', 'COMMIT'];

const moments: [string, () => TcpProxy, string[]][] = [
  ['when names have been reserved', () => wire, ['INSERT INTO drive_objects (object_key']],
  ['when the object is stored', () => gate, ['PUT /']],
  ['when the bytes are counted and the object is kept', () => wire, commit.slice(0, 1)],
  ['when the file has a row', () => wire, ['UPDATE drives d', 'INSERT INTO `drive_items`']],
  ['when its words are there', () => wire, ['UPDATE drives d', 'INSERT INTO drive_words']],
  ['when its answer is kept', () => wire, ['UPDATE drives d', 'the key of']],
  ['when all is committed', () => wire, commit],
];
const early = 'when the object is stored';
const late = 'when all is committed';

test.each(inFull('drive').runs ? moments : moments.filter(([moment]) => moment === early || moment === late))(
  'An upload that is killed %s is one file after a repeat',
  async (moment, proxy, texts) => {
    const folder = `/${moment}`;
    const key = `the key of ${moment}`;
    await (await send(`${folder}/first`, randomUUID())).json();
    const isThere = proxy().holdAnswerTo(...texts);
    const lost = send(`${folder}/small`, key).catch(() => undefined);
    await waitFor('the moment', isThere);
    await product.kill('SIGKILL');
    await lost;
    const killedAt = new Date();
    expect(await namesOf(folder)).toEqual(moment === late ? ['first', 'small'] : ['first']);
    product = await start();
    const again = await send(`${folder}/small`, key);
    expect(again.status).toBe(200);
    const { id } = (await again.json()) as UploadBody;
    expect(await drive.content(id)).toBe(`bytes of ${folder}/small`);
    expect(await drive.names(folder)).toEqual(['first', 'small']);
    await swept(killedAt);
    await expectNoOrphans({ environment, bucket } as never, user.spaceId);
  },
);

/** Without an Idempotency-Key. */
const sendPlain = (path: string) => drive.upload({ path }, { bytes: `bytes of ${path}` });

test('A kill at the commit of an upload without a key leaves all of it or nothing', async () => {
  for (const name of ['first', 'second']) expect((await sendPlain(`/whole/${name}`)).status).toBe(200);
  const isThere = wire.holdAnswerTo(...commit);
  const lost = sendPlain('/whole/small').catch(() => undefined);
  await waitFor('the moment', isThere);
  await product.kill('SIGKILL');
  await lost;
  const killedAt = new Date();
  product = await start();
  await swept(killedAt);
  const again = await sendPlain('/whole/small');
  expect([200, 409]).toContain(again.status);
  const { data } = await drive.get<{ data: { id: string }[] }>('/items?path=/whole');
  expect(await Promise.all(data.map(({ id }) => drive.content(id)))).toEqual(
    ['first', 'second', 'small'].map((name) => `bytes of /whole/${name}`),
  );
  await expectNoOrphans({ environment, bucket } as never, user.spaceId);
});

test('A lost answer to that commit is an error, and leaves all of the upload or nothing', async () => {
  for (const name of ['first', 'second']) expect((await sendPlain(`/unheard/${name}`)).status).toBe(200);
  const isLost = wire.loseAnswerTo(...commit);
  const lost = await sendPlain('/unheard/small');
  expect([isLost(), lost.status >= 500]).toEqual([true, true]);
  expect([200, 409]).toContain((await sendPlain('/unheard/small')).status);
  expect(await drive.names('/unheard')).toEqual(['first', 'second', 'small']);
  const found = await drive.get<{ data: unknown[] }>('/search?q=small&in=name');
  expect(found.data.length).toBeGreaterThan(0);
  await expectNoOrphans({ environment, bucket } as never, user.spaceId);
});

/** Reads the database, because the process is killed. */
async function namesOf(folder: string): Promise<string[]> {
  const [rows] = await environment.database.pool.query(
    'SELECT c.name FROM drive_items f JOIN drive_items c ON c.parent_id = f.id WHERE f.name = ? ORDER BY c.name',
    [folder.slice(1)],
  );
  return (rows as { name: string }[]).map(({ name }) => name);
}

test('A lost answer to the COMMIT is an error, and a repeat of the request gets the file', async () => {
  await send('/lost/first', randomUUID());
  const key = randomUUID();
  const isLost = wire.loseAnswerTo(...commit);
  const first = await send('/lost/small', key);
  expect([isLost(), first.ok]).toEqual([true, false]);
  const again = await send('/lost/small', key);
  expect(again.status).toBe(200);
  expect(await drive.content(((await again.json()) as UploadBody).id)).toBe('bytes of /lost/small');
  await expectNoOrphans({ environment, bucket } as never, user.spaceId);
});
