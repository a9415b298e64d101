import { randomBytes } from 'node:crypto';
import { rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { Pace } from '../../backup/pace.ts';
import { loadObjects } from '../../backup/restore/objectsPart.ts';
import { toLines } from '../../backup/vault/lines.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { buildVault, manifestOf } from '../builders/backups.ts';
import { buildBucket } from '../builders/drive.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

// The errors of a restore from a damaged backup.

let environment: TestEnvironment;
let storage: ObjectStore;
beforeAll(async () => {
  environment = await createTestEnvironment();
  const bucket = await buildBucket();
  bucket.client.destroy();
  storage = new ObjectStore({ ...environment.config.storage, bucket: bucket.name });
});
afterAll(async () => {
  storage.close();
  await environment.close();
});

const { signal } = new AbortController();
const pace = new Pace(undefined);

// The smaller object is uploaded in one request, the larger one in parts.
test.each([1_000, 20_000_000])('a restore names the lost or truncated piece of an object of %d bytes', async (size) => {
  const { vault, backup } = await buildVault();
  async function* bytes() {
    yield randomBytes(size);
  }
  const object = { key: `object${size}`, ...(await vault.store(bytes())) };
  async function* entries() {
    yield object;
  }
  const manifest = {
    ...manifestOf({ at: '2026-01-01T00:00:00.000Z', objects: await vault.store(toLines(entries())) }),
  };
  const load = () => loadObjects(manifest, { vault, storage, isResumed: false, pace, signal });
  await load();

  const piece = object.pieces.at(-1) ?? '';
  const name = `pieces/${piece.slice(0, 2)}/${piece}`;
  truncateSync(join(backup.to, name), 20);
  await expect(load()).rejects.toThrow(`The piece ${name} in ${backup.to} is damaged.`);
  rmSync(join(backup.to, name));
  await expect(load()).rejects.toThrow(`The piece ${name} is missing in ${backup.to}.`);
});
