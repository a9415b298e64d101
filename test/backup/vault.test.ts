import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { Progress } from '../../backup/make/progress.ts';
import { prune } from '../../backup/make/prune.ts';
import { toLines } from '../../backup/vault/lines.ts';
import { listBackups, readManifest, writeManifest } from '../../backup/vault/manifests.ts';
import { openVault } from '../../backup/vault/openVault.ts';
import { type Stored, Vault } from '../../backup/vault/vault.ts';
import { verify } from '../../backup/verify.ts';
import { buildVault, manifestOf } from '../builders/backups.ts';
import { stackEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';

const signal = new AbortController().signal;

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function all(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The same bytes in every run. */
const bytesOf = (name: string, size: number) => createHash('shake256', { outputLength: size }).update(name).digest();

/** A vault that cuts the same bytes at the same places in every run. */
async function buildFixedVault(cuts = bytesOf('cuts', 1_024)): Promise<Vault> {
  const { place } = (await buildVault()).vault;
  const vault = new Vault(place, { seal: bytesOf('seal', 32), names: bytesOf('names', 32), cuts });
  await vault.look();
  return vault;
}

const files = (folder: string) =>
  readdirSync(join(folder, 'pieces'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.includes('/'))
    .map((name) => join(folder, 'pieces', name));

/** Makes a backup with these contents as objects of a bucket. */
async function backUp(vault: Vault, at: string, contents: readonly Buffer[]) {
  const objects: (Stored & { key: string })[] = [];
  for (const [index, bytes] of contents.entries()) {
    objects.push({ key: `key${index}`, ...(await vault.store(inPieces(bytes, 10_000))) });
  }
  async function* entries() {
    yield* objects;
  }
  const stored = {
    database: await vault.store(inPieces(Buffer.from('dump'), 10)),
    objects: await vault.store(toLines(entries())),
  };
  return { objects, manifest: await writeManifest(vault, manifestOf({ at, ...stored })) };
}

test('A stream is read as it was stored, and a part that two streams share is stored once', async () => {
  const vault = await buildFixedVault();
  const bytes = bytesOf('content', 9_000_000);
  const first = await vault.store(inPieces(bytes, 65_536));
  expect(first.pieces.length).toBeGreaterThan(2);
  expect((await all(vault.read(first))).equals(bytes)).toBe(true);

  const before = vault.counts.newBytes;
  const moved = Buffer.concat([bytesOf('before', 1_234), bytes, Buffer.from('end')]);
  const second = await vault.store(inPieces(moved, 7_777));
  expect((await all(vault.read(second))).equals(moved)).toBe(true);
  // Only the pieces at both ends are new. Each has at most 4 MiB.
  expect(vault.counts.newBytes - before).toBeLessThan(bytes.length);
  expect(second.pieces.slice(1, -1)).toEqual(first.pieces.slice(1, -1));
});

test('A failed write fails only its own stream, and its slot is free for the next one', async () => {
  // Cuts off a piece as soon as it is long enough.
  const vault = await buildFixedVault(Buffer.alloc(1_024));
  const bytes = bytesOf('content', 3_000_000);
  const { place } = vault;
  const write = place.write.bind(place);
  place.write = () => Promise.reject(new Error('There is no room.'));
  await expect(vault.store(inPieces(bytes, 65_536))).rejects.toThrow('There is no room.');
  place.write = write;
  const stored = await vault.store(inPieces(bytes, 65_536));
  expect(stored.pieces).toHaveLength(12);
  expect((await all(vault.read(stored))).equals(bytes)).toBe(true);
});

test('an empty stream and a stream of one byte are read as they were stored', async () => {
  const { vault } = await buildVault();
  const empty = await vault.store(inPieces(Buffer.alloc(0), 1));
  expect(empty).toEqual({ bytes: 0, pieces: [] });
  expect(await all(vault.read(empty))).toHaveLength(0);
  expect(await all(vault.read(await vault.store(inPieces(Buffer.from('x'), 1))))).toEqual(Buffer.from('x'));
});

test('the folder has neither plain contents nor keys', async () => {
  const { vault, backup } = await buildVault();
  await vault.store(inPieces(Buffer.from('the words of a person'), 100));
  await vault.writeSealed('backups/one', { keys: { 'master.key': 'c2VjcmV0' } });
  const texts = readdirSync(backup.to, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
  expect(texts.length).toBe(3);
  for (const text of texts) expect(text).not.toMatch(/words of a person|c2VjcmV0|master/);
  expect(texts.join()).not.toContain(readFileSync(backup.keyFile, 'utf8').trim());
});

test('verify finds pieces that are changed, truncated, swapped or missing', async () => {
  const { vault, backup } = await buildVault();
  const { manifest } = await backUp(vault, '2026-01-01T00:00:00.000Z', [randomBytes(1_000), randomBytes(2_000)]);
  expect(await verify(vault)).toMatchObject({ id: manifest.id, pieces: 4 });
  for (const [damage, said] of [
    [(file: string, bytes: Buffer) => writeFileSync(file, bytes.subarray(0, -1)), /is damaged/],
    [
      (file: string, bytes: Buffer) =>
        writeFileSync(
          file,
          bytes.map((byte, at) => (at === 40 ? ~byte : byte)),
        ),
      /is damaged/,
    ],
    [(file: string) => rmSync(file), /is missing/],
    [(file: string) => writeFileSync(file, ''), /is damaged/],
  ] as const) {
    for (const file of files(backup.to)) {
      const bytes = readFileSync(file);
      damage(file, bytes);
      await expect(verify(vault)).rejects.toThrow(said);
      writeFileSync(file, bytes);
    }
  }
  const [one, other] = files(backup.to) as [string, string];
  const kept = readFileSync(one);
  writeFileSync(one, readFileSync(other));
  await expect(verify(vault)).rejects.toThrow(/is damaged/);
  writeFileSync(one, kept);
  expect(await verify(vault)).toMatchObject({ id: manifest.id });
});

test('a damaged piece that a later backup needs is found and written again', async () => {
  const { vault, backup } = await buildVault();
  const bytes = randomBytes(1_000);
  const stored = await vault.store(inPieces(bytes, 100));
  const [file] = files(backup.to) as [string];
  for (const damaged of [Buffer.alloc(0), Buffer.alloc(1_100, 1)]) {
    writeFileSync(file, damaged);
    const later = await openVault(backup);
    await later.look();
    expect(await later.has(stored)).toBe(false);
    expect(await later.store(inPieces(bytes, 100))).toEqual(stored);
    expect(later.sample).toMatchObject({ damaged: 1 });
    expect(await all(later.read(stored))).toEqual(bytes);
  }
});

test('prune removes old backups with the pieces that no other backup needs', async () => {
  const { vault, backup } = await buildVault();
  const [first, second, third] = [randomBytes(1_000), randomBytes(1_000), randomBytes(1_000)];
  await backUp(vault, '2026-01-01T00:00:00.000Z', [first, second]);
  const middle = await backUp(vault, '2026-01-02T00:00:00.000Z', [second]);
  const last = await backUp(vault, '2026-01-03T00:00:00.000Z', [second, third]);
  await vault.store(inPieces(Buffer.from('of a backup that was killed'), 100));
  expect(await prune(vault, 2, { signal })).toHaveLength(1);
  expect(await listBackups(vault)).toEqual([middle.manifest.id, last.manifest.id]);
  for (const { manifest } of [middle, last]) await verify(vault, manifest.id);
  // The dump, `second`, `third`, and two lists of objects.
  expect(files(backup.to)).toHaveLength(5);

  // If a backup to keep cannot be read, nothing is removed.
  writeFileSync(join(backup.to, 'backups', last.manifest.id), 'damaged by something else');
  await expect(prune(vault, 1, { signal })).rejects.toThrow(/is damaged/);
  expect(files(backup.to)).toHaveLength(5);
  expect(await listBackups(vault)).toHaveLength(2);
});

test('foreign files in the backup folder neither lead out of it nor stop backups', async () => {
  const { vault, backup } = await buildVault();
  const { manifest } = await backUp(vault, '2026-01-01T00:00:00.000Z', [randomBytes(1_000)]);
  const outside = temporaryFolder();
  const place = (name: string) => join(backup.to, 'pieces', name);
  // A folder without pieces.
  const free = ['ab', 'bc', 'ce', 'de', 'ef'].find((name) => !existsSync(place(name))) as string;
  const id = free.repeat(32);
  for (const name of ['passwd', id]) writeFileSync(join(outside, name), 'of somebody else');
  mkdirSync(place('zz'));
  writeFileSync(place('zz/passwd'), '');
  writeFileSync(place(`zz/${id}`), '');
  for (const name of ['pa', free]) symlinkSync(outside, place(name));
  execFileSync('mkfifo', [place(`zz/${'cd'.repeat(32)}`)]);
  expect(await prune(vault, 1, { signal })).toEqual([]);
  expect(readdirSync(outside).sort()).toEqual([id, 'passwd']);
  await expect(vault.place.remove([`pieces/${free}/${id}`])).rejects.toThrow(/is a link to another folder/);
  await expect(vault.place.read(`pieces/${free}/${id}`, 1_000)).rejects.toThrow(/is a link to another folder/);
  await expect(vault.place.write(`pieces/${free}/${id}`, Buffer.from('x'))).rejects.toThrow(
    /is a link to another folder/,
  );
  expect(readFileSync(join(outside, id), 'utf8')).toBe('of somebody else');
  expect(await vault.place.read(`pieces/zz/${'cd'.repeat(32)}`, 1_000)).toBeUndefined();
  expect(await verify(vault)).toMatchObject({ id: manifest.id });

  const [one] = files(backup.to).filter((file) => !file.includes('/zz/') && statSync(file).size > 0) as [string];
  truncateSync(one, 1_000_000_000);
  await expect(verify(vault)).rejects.toThrow(/is damaged: it is too large/);
});

test('junk beside backups is ignored, and the error for a damaged newest backup names the next one', async () => {
  const { vault, backup } = await buildVault();
  const { manifest } = await backUp(vault, '2026-01-01T00:00:00.000Z', [randomBytes(1_000)]);
  mkdirSync(join(backup.to, 'progress'));
  writeFileSync(join(backup.to, 'progress', 'abc'), 'junk');
  writeFileSync(join(backup.to, 'backups', 'zzz'), 'junk');
  const progress = await Progress.open(vault);
  expect(await progress.find('key0')).toBeUndefined();
  await Progress.forget(vault);
  expect(readdirSync(join(backup.to, 'progress'))).toEqual([]);
  expect(await readManifest(vault)).toMatchObject({ id: manifest.id });
  expect(await prune(vault, 1, { signal })).toEqual([]);

  const later = '20260102T000000Z-abcdef';
  writeFileSync(join(backup.to, 'backups', later), 'damaged');
  expect(await listBackups(vault)).toEqual([manifest.id, later]);
  await expect(readManifest(vault)).rejects.toThrow(
    new RegExp(`^The newest backup is damaged: .*${later}.* The next one is ${manifest.id}: name it to use it\\.$`),
  );
});

test('the error says whether the key, the folder or the address of the backups is wrong', async () => {
  const { backup } = await buildVault();
  const folder = temporaryFolder();
  const keyFile = join(folder, 'other');
  writeFileSync(keyFile, 'too short', { mode: 0o600 });
  await expect(openVault({ ...backup, keyFile })).rejects.toThrow(/is too short/);
  writeFileSync(keyFile, 'a passphrase that is long enough');
  await expect(openVault({ ...backup, keyFile })).rejects.toThrow(/were made with another/);
  await expect(openVault({ ...backup, keyFile: join(folder, 'none') })).rejects.toThrow(
    /There is no recovery key .*--key-file/,
  );
  await expect(openVault({ ...backup, keyFile: '/' })).rejects.toThrow(/can be read by others/);
  await expect(openVault({ ...backup, to: join(folder, 'none') })).rejects.toThrow(/There is no folder .*none/);
  await expect(openVault({ ...backup, to: folder })).rejects.toThrow(/There are no backups in/);
  await expect(openVault({ ...backup, to: folder }, { makes: true })).rejects.toThrow(/holds something else \(other\)/);
  await expect(openVault({ ...backup, to: 'ftp://somewhere' })).rejects.toThrow(/is no place for backups/);
  await expect(openVault({ ...backup, to: undefined })).rejects.toThrow(/ATRIUM_BACKUP_TO/);
  await expect(readManifest(await openVault(backup))).rejects.toThrow(/There is no finished backup/);
});

test('backups work in a bucket as in a folder', async () => {
  const {
    ATRIUM_S3_ENDPOINT: endpoint,
    ATRIUM_S3_ACCESS_KEY_ID: accessKeyId = '',
    ATRIUM_S3_SECRET_ACCESS_KEY: secretAccessKey = '',
  } = stackEnvironment();
  const s3 = { endpoint, region: 'us-east-1', accessKeyId, secretAccessKey };
  const bucket = `backups-${randomBytes(4).toString('hex')}`;
  const client = new S3Client({ ...s3, endpoint: endpoint ?? '', credentials: s3, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
  const { backup } = await buildVault();
  const vault = await openVault({ ...backup, to: `s3://${bucket}/of/atrium`, s3 }, { makes: true });
  await vault.look();
  const contents = Array.from({ length: 5 }, () => randomBytes(2_000));
  const old = await backUp(vault, '2026-01-01T00:00:00.000Z', contents);
  const { manifest } = await backUp(vault, '2026-01-02T00:00:00.000Z', contents.slice(1));
  expect(await prune(vault, 1, { signal })).toEqual([old.manifest.id]);
  expect(await verify(vault)).toMatchObject({ id: manifest.id, pieces: 6 });
  await vault.place.remove([`pieces/${old.objects[1]?.pieces[0]?.slice(0, 2)}/${old.objects[1]?.pieces[0]}`]);
  await expect(verify(vault)).rejects.toThrow(/is missing/);
  vault.place.close();
  await expect(openVault({ ...backup, to: 's3://no-such-bucket-there-is/x', s3 }, { makes: true })).rejects.toThrow(
    /^The place for backups s3:\/\/no-such-bucket-there-is\/x\/ cannot be used: /,
  );
});
