import { randomBytes } from 'node:crypto';
import { createEnvelope } from '../../crypto/envelope.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { localMasterKey } from '../../crypto/localMasterKey.ts';
import { keyRing, type MasterKey } from '../../crypto/masterKey.ts';
import { rotateDataKeys } from '../../crypto/rotateKeys.ts';
import { memoryStore } from '../support/memoryKeys.ts';

const master = () => localMasterKey(randomBytes(32));
const text = (value: string) => Buffer.from(value, 'utf8');

test('a sealed value opens only with its own scope and context', async () => {
  const envelope = createEnvelope(keyRing(master()), memoryStore());
  const sealed = await envelope.seal('spc_a', 'secrets/1', text('hunter2'));
  await expect(envelope.open('spc_a', 'secrets/1', sealed)).resolves.toEqual(text('hunter2'));
  await expect(envelope.open('spc_a', 'secrets/2', sealed)).rejects.toThrow(DecryptionError);
  await expect(envelope.open('spc_b', 'secrets/1', sealed)).rejects.toThrow(DecryptionError);
});

test('the boundary between scope and context counts', async () => {
  const envelope = createEnvelope(keyRing(master()), memoryStore());
  const sealed = await envelope.seal('ab', 'c', text('x'));
  await expect(envelope.open('a', 'bc', sealed)).rejects.toThrow(DecryptionError);
});

test('a sealed value with one changed bit, or cut short, does not open', async () => {
  const envelope = createEnvelope(keyRing(master()), memoryStore());
  const sealed = await envelope.seal('spc_a', 'row', text('hunter2'));
  for (let i = 0; i < sealed.length; i++) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(i) ^ 1, i);
    await expect(envelope.open('spc_a', 'row', changed)).rejects.toThrow(DecryptionError);
  }
  for (const length of [0, 1, 5, 20, sealed.length - 1]) {
    await expect(envelope.open('spc_a', 'row', sealed.subarray(0, length))).rejects.toThrow(DecryptionError);
  }
});

test('sealing the same text twice gives different bytes', async () => {
  const envelope = createEnvelope(keyRing(master()), memoryStore());
  expect(await envelope.seal('s', 'c', text('x'))).not.toEqual(await envelope.seal('s', 'c', text('x')));
});

test('an empty value and a large one open as they were', async () => {
  const envelope = createEnvelope(keyRing(master()), memoryStore());
  for (const value of [Buffer.alloc(0), randomBytes(1_000_000)]) {
    await expect(envelope.open('s', 'c', await envelope.seal('s', 'c', value))).resolves.toEqual(value);
  }
});

test('after a rotation the new data key seals, and the earlier one still opens', async () => {
  const store = memoryStore();
  const masterKey = master();
  const envelope = createEnvelope(keyRing(masterKey), store);
  const before = await envelope.seal('s', 'c', text('before'));
  await rotateDataKeys(store, masterKey);
  const later = createEnvelope(keyRing(masterKey), store);
  const after = await later.seal('s', 'c', text('after'));
  expect([before.readUInt32BE(1), after.readUInt32BE(1)]).toEqual([1, 2]);
  for (const one of [envelope, later]) {
    await expect(one.open('s', 'c', before)).resolves.toEqual(text('before'));
    await expect(one.open('s', 'c', after)).resolves.toEqual(text('after'));
  }
});

test('two processes that create the first key of a scope at the same time use the same one', async () => {
  const store = memoryStore();
  const masterKey = master();
  const [one, two] = [createEnvelope(keyRing(masterKey), store), createEnvelope(keyRing(masterKey), store)];
  const [a, b] = await Promise.all([one.seal('s', 'c', text('a')), two.seal('s', 'c', text('b'))]);
  expect(store.rows).toHaveLength(1);
  await expect(one.open('s', 'c', b)).resolves.toEqual(text('b'));
  await expect(two.open('s', 'c', a)).resolves.toEqual(text('a'));
});

test('a data key moved to another scope does not unwrap', async () => {
  const store = memoryStore();
  const masterKey = master();
  const sealed = await createEnvelope(keyRing(masterKey), store).seal('a', 'c', text('x'));
  const moved = memoryStore(store.rows.map((row) => ({ ...row, scope: 'b' })));
  await expect(createEnvelope(keyRing(masterKey), moved).open('b', 'c', sealed)).rejects.toThrow(DecryptionError);
});

test('the error for a wrong master key says what to do', async () => {
  const store = memoryStore();
  const sealed = await createEnvelope(keyRing(master()), store).seal('s', 'c', text('x'));
  await expect(createEnvelope(keyRing(master()), store).open('s', 'c', sealed)).rejects.toThrow(/Restore master\.key/);
});

test('after a rotation the earlier master key still unwraps its data keys', async () => {
  const store = memoryStore();
  const old = master();
  const sealed = await createEnvelope(keyRing(old), store).seal('s', 'c', text('x'));
  const rotated = createEnvelope(keyRing(master(), [old]), store);
  await expect(rotated.open('s', 'c', sealed)).resolves.toEqual(text('x'));
  await rotated.seal('other', 'c', text('y'));
  expect(new Set(store.rows.map((row) => row.masterKeyId)).size).toBe(2);
});

test('a failed call to the master key is not remembered: the next open calls it again', async () => {
  const local = master();
  let failures = 1;
  const flaky: MasterKey = {
    ...local,
    unwrap: async (wrapped, context) => {
      if (failures-- > 0) throw new Error('throttled');
      return local.unwrap(wrapped, context);
    },
  };
  const store = memoryStore();
  const sealed = await createEnvelope(keyRing(local), store).seal('s', 'c', text('x'));
  const envelope = createEnvelope(keyRing(flaky), store);
  await expect(envelope.open('s', 'c', sealed)).rejects.toThrow('throttled');
  await expect(envelope.open('s', 'c', sealed)).resolves.toEqual(text('x'));
});
