import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ConfigError } from '../../config/index.ts';
import { masterKeyFileName, readOrCreateMasterKey } from '../../crypto/masterKeyFile.ts';
import { openMasterKeys } from '../../crypto/openMasterKeys.ts';

let dataDir: string;
let file: string;

beforeEach(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), 'atrium-key-'));
  file = path.join(dataDir, masterKeyFileName);
});
afterEach(() => rmSync(dataDir, { recursive: true }));

test('the first start creates a key that only its owner can read, and the second start reads it', async () => {
  const key = await readOrCreateMasterKey(dataDir);
  expect(key).toHaveLength(32);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await expect(readOrCreateMasterKey(dataDir)).resolves.toEqual(key);
});

test('twenty simultaneous first starts agree on one key and leave no other file', async () => {
  const keys = await Promise.all(Array.from({ length: 20 }, () => readOrCreateMasterKey(dataDir)));
  expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(1);
  expect(readdirSync(dataDir)).toEqual([masterKeyFileName]);
});

test('a missing data directory is created', async () => {
  await expect(readOrCreateMasterKey(path.join(dataDir, 'deep', 'er'))).resolves.toHaveLength(32);
});

test('a key file that other users can read is refused, with the command that fixes it', async () => {
  await readOrCreateMasterKey(dataDir);
  await chmod(file, 0o644);
  await expect(readOrCreateMasterKey(dataDir)).rejects.toThrow(/chmod 600/);
});

test('a key file without a key is refused and not replaced', async () => {
  await writeFile(file, 'oops', { mode: 0o600 });
  await expect(readOrCreateMasterKey(dataDir)).rejects.toThrow(ConfigError);
  await expect(readFile(file, 'utf8')).resolves.toBe('oops');
});

test('a key from the environment is used, and no file is created', async () => {
  const masterKey = Buffer.alloc(32, 7).toString('base64');
  const kms = { keyId: undefined, region: undefined, endpoint: undefined };
  const ring = await openMasterKeys({ dataDir, masterKey, otherMasterKeys: [], kms });
  const current = await ring.current();
  expect(current.id).toMatch(/^local:[0-9a-f]{16}$/);
  await expect(ring.byId(current.id)).resolves.toBe(current);
  expect(readdirSync(dataDir)).toEqual([]);
});
