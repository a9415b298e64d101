import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, createDeflate, deflateSync } from 'node:zlib';
import { salvagePacks } from '../../../integrations/git/clone/salvage.ts';
import type { Git } from '../../../integrations/git/process/git.ts';
import { buildBareGit } from '../../builders/bareGit.ts';
import { gitIn, gitWith } from '../../support/gitRepository.ts';

/** Cut packs from an attacker who wants to cause endless work. */

const mebibyte = 1_048_576;
const blob = 3;

/** The head of an object in a pack. */
function headOf(type: number, size: number): Buffer {
  const bytes = [(type << 4) | (size % 16)];
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 0x80;
    bytes.push(rest % 128);
  }
  return Buffer.from(bytes);
}

/** The start of a deflate stream, and a part that can be repeated any number of times. */
async function zeros(size: number): Promise<{ start: Buffer; again: Buffer }> {
  const deflate = createDeflate();
  const flushed = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    deflate.write(Buffer.alloc(size));
    deflate.flush(constants.Z_FULL_FLUSH, resolve);
    await promise;
    return Buffer.concat([deflate.read() as Buffer]);
  };
  return { start: await flushed(), again: await flushed() };
}

/** Writes a pack of complete files, and then a file of 1 TiB, of which 128 MiB inflate to 128 GiB. */
async function writeBomb(git: Git, files: string[]): Promise<void> {
  const { start, again } = await zeros(16 * mebibyte);
  const head = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');
  head.writeUInt32BE(files.length + 1, 8);
  const whole = files.flatMap((text) => [headOf(blob, text.length), deflateSync(text)]);
  const repeated = Array.from({ length: Math.ceil((128 * mebibyte) / again.length) }, () => again);
  const bomb = [headOf(blob, 2 ** 40), start, ...repeated];
  writeFileSync(join(git.dir, 'objects', 'pack', 'tmp_pack_bomb'), Buffer.concat([head, ...whole, ...bomb]));
}

test('an abort is noticed while an endless object is inflated', async () => {
  const stop = new AbortController();
  await using bare = await buildBareGit(stop.signal);
  await writeBomb(bare.git, []);
  const salvaged = salvagePacks(bare.git);
  setTimeout(() => stop.abort(new Error('not wanted any more')), 500);
  await expect(salvaged).rejects.toThrow('not wanted any more');
});

test('an object that takes too long ends the salvage, and the objects before it are kept', async () => {
  await using bare = await buildBareGit(new AbortController().signal);
  const { git } = bare;
  await writeBomb(git, ['one', 'two', 'three']);
  expect(await salvagePacks(git, { lookMs: 5_000, graceMs: 600_000 })).toBe(3);
  const id = gitWith({ cwd: git.dir, input: 'one' }, 'hash-object', '--stdin');
  expect(gitIn(git.dir, 'cat-file', '-p', id)).toBe('one');
});

test('a thread that does not end is terminated, and its pack is removed', async () => {
  await using bare = await buildBareGit(new AbortController().signal);
  const { git } = bare;
  await writeBomb(git, ['one']);
  expect(await salvagePacks(git, { lookMs: 3_600_000, graceMs: -3_599_000 })).toBe(0);
  expect(readdirSync(join(git.dir, 'objects', 'pack'))).toEqual([]);
});
