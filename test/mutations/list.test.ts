import { existsSync, readFileSync } from 'node:fs';
import { mutated, mutations } from './list.ts';

/** Names the tests that `npm test` leaves out. */
const longTests = readFileSync('test/support/longTests.mjs', 'utf8');

test.each(mutations)('"$name" can still be made, and its test is there', (mutation) => {
  const source = readFileSync(mutation.file, 'utf8');
  expect(mutated(source, mutation)).toEqual(expect.any(String));
  expect(mutated(source, mutation)).not.toBe(source);
  expect(existsSync(mutation.caughtBy)).toBe(true);
  expect(longTests).not.toContain(mutation.caughtBy);
});

test('no two mutations have the same name', () => {
  expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length);
});

test('a piece that is missing or not unique is not replaced', () => {
  const mutation = { name: '', file: '', piece: 'a', replacement: '$&', caughtBy: '' };
  expect(['bab', 'b', 'aba'].map((source) => mutated(source, mutation))).toEqual(['b$&b', undefined, undefined]);
});
