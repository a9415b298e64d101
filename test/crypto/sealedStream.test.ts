import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { createEnvelope } from '../../crypto/envelope.ts';
import { localMasterKey } from '../../crypto/localMasterKey.ts';
import { keyRing } from '../../crypto/masterKey.ts';
import { openStream, sealStream } from '../../crypto/sealedStream.ts';
import { memoryStore } from '../support/memoryKeys.ts';

const place = { scope: 'spc_1', context: 'profiles/1' };
const envelope = createEnvelope(keyRing(localMasterKey(randomBytes(32))), memoryStore());
const mebibyte = 1_048_576;

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const seal = (bytes: Buffer) => buffer(sealStream(envelope, place, inChunks(bytes, 70_001)));
const open = (sealed: Buffer, at = place, size = 50_003) => buffer(openStream(envelope, at, inChunks(sealed, size)));

test.each([0, 1, mebibyte - 1, mebibyte, mebibyte + 1, 3 * mebibyte])(
  '%d bytes come back as they were',
  async (size) => {
    const bytes = randomBytes(size);
    expect((await open(await seal(bytes))).equals(bytes)).toBe(true);
  },
);

test('a sealed stream that is cut, reordered, changed or from another place does not open', async () => {
  const sealed = await seal(randomBytes(2 * mebibyte + 5));
  const first = 4 + sealed.readUInt32BE();
  const changed = Buffer.from(sealed);
  changed[first + 100] = (changed[first + 100] ?? 0) ^ 1;
  const wrong = [
    Buffer.alloc(0),
    sealed.subarray(0, first),
    sealed.subarray(0, sealed.length - 1),
    sealed.subarray(first),
    Buffer.concat([sealed.subarray(first, 2 * first), sealed.subarray(0, first), sealed.subarray(2 * first)]),
    Buffer.concat([sealed, sealed.subarray(0, first)]),
    Buffer.concat([Buffer.from([255, 255, 255, 255]), sealed]),
    changed,
  ];
  for (const one of wrong) await expect(open(one)).rejects.toThrow(/sealed/);
  await expect(open(sealed, { ...place, scope: 'spc_2' })).rejects.toThrow();
  await expect(open(sealed, { ...place, context: 'profiles/2' })).rejects.toThrow(/sealed/);
});
