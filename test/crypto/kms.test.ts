import { randomBytes } from 'node:crypto';
import { openEnvelope, rotateKeys } from '../../models/identity/index.ts';
import { startKms, type TestKms } from '../fakes/kms.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

// AWS KMS as the master key, over its HTTP interface.

let kms: TestKms;
let environment: TestEnvironment;
const credentials = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };

beforeAll(async () => {
  Object.assign(process.env, credentials);
  kms = await startKms();
});
afterAll(async () => {
  for (const name of Object.keys(credentials)) delete process.env[name];
  await kms.close();
});
beforeEach(async () => {
  environment = await createTestEnvironment({
    ATRIUM_KMS_KEY_ID: 'alias/atrium',
    ATRIUM_KMS_REGION: 'eu-central-1',
    ATRIUM_KMS_ENDPOINT: kms.url,
  });
  kms.calls.length = 0;
  kms.failWith = undefined;
});
afterEach(() => environment.close());

const open = (changes: Partial<TestEnvironment['config']> = {}) =>
  openEnvelope(environment.database, { ...environment.config, ...changes });

test('KMS wraps a data key once, bound to its scope and version, and is not called for each row', async () => {
  const one = await open();
  const sealed = await one.seal('spc_1', 'secrets/A', Buffer.from('value'));
  for (let row = 0; row < 20; row++) await one.seal('spc_1', `secrets/B${row}`, Buffer.from('value'));
  const other = await open();
  expect((await other.open('spc_1', 'secrets/A', sealed)).toString()).toBe('value');
  expect(kms.calls.filter(({ action }) => action === 'Encrypt')).toEqual([
    { action: 'Encrypt', keyId: 'alias/atrium', context: { 'atrium:data-key': 'spc_1/1' } },
  ]);
  expect(kms.calls.filter(({ action }) => action === 'Decrypt').length).toBeLessThanOrEqual(2);
});

test('a wrapped key that was copied from another space does not open', async () => {
  const one = await open();
  const sealed = await one.seal('spc_1', 'secrets/A', Buffer.from('value'));
  await one.seal('spc_2', 'secrets/A', Buffer.from('other'));
  const { pool } = environment.database;
  await pool.query(`UPDATE data_keys a JOIN data_keys b ON b.scope = 'spc_2'
    SET a.wrapped_key = b.wrapped_key WHERE a.scope = 'spc_1'`);
  await expect((await open()).open('spc_1', 'secrets/A', sealed)).rejects.toThrow(/does not open the wrapped key/);
});

test('sealing fails while KMS refuses, and works again afterwards', async () => {
  kms.failWith = 'AccessDeniedException';
  const envelope = await open();
  await expect(envelope.seal('spc_1', 'secrets/A', Buffer.from('v'))).rejects.toMatchObject({
    name: 'AccessDeniedException',
  });
  kms.failWith = undefined;
  const sealed = await envelope.seal('spc_1', 'secrets/A', Buffer.from('v'));
  expect((await envelope.open('spc_1', 'secrets/A', sealed)).toString()).toBe('v');
});

test('a rotation moves data keys from a local master key to KMS', async () => {
  const masterKey = randomBytes(32).toString('base64');
  const own = { masterKey, kms: Object.freeze({ keyId: undefined, region: undefined, endpoint: undefined }) };
  const sealed = await (await open(own)).seal('spc_1', 'secrets/A', Buffer.from('value'));
  const { database, config } = environment;
  const there = await rotateKeys(database, { ...config, masterKey });
  expect(there.masterKeyId).toBe('kms:alias/atrium');
  expect((await (await open({ masterKey: undefined })).open('spc_1', 'secrets/A', sealed)).toString()).toBe('value');
  const withKmsKnown = await open({ masterKey });
  expect((await withKmsKnown.open('spc_1', 'secrets/A', sealed)).toString()).toBe('value');
});
