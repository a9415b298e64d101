import { counted, firstBytesOf, firstOf, lastOf, wellFormed } from '../../base/text.ts';
import { failedResult, succeededResult } from '../../models/chat/toolResult.ts';
import { MessageFold } from '../../models/chat/turnLog/foldChunks.ts';

const smile = '😀';
const [high = '', low = ''] = smile.split('');

test('One thing is counted in the singular', () => {
  expect([0, 1, 2].map((count) => counted(count, 'space'))).toEqual(['0 spaces', '1 space', '2 spaces']);
});

test('firstOf does not cut a character in half', () => {
  expect(firstOf('abc', 3)).toBe('abc');
  expect(firstOf('abc', 2)).toBe('ab');
  expect(firstOf('abc', 0)).toBe('');
  expect(firstOf(`a${smile}b`, 2)).toBe('a');
  expect(firstOf(`a${smile}b`, 3)).toBe(`a${smile}`);
  expect(firstOf(smile, 1)).toBe('');
  expect(firstOf(`${smile}${smile}`, 3.5)).toBe(smile);
});

test('lastOf does not cut a character in half', () => {
  expect(lastOf('abc', 3)).toBe('abc');
  expect(lastOf('abc', 2)).toBe('bc');
  expect(lastOf('abc', 0)).toBe('');
  expect(lastOf(`a${smile}b`, 2)).toBe('b');
  expect(lastOf(`a${smile}b`, 3)).toBe(`${smile}b`);
  expect(lastOf(smile, 1)).toBe('');
});

test('firstBytesOf does not cut a character in half', () => {
  expect(firstBytesOf('né', 3)).toBe('né');
  expect(firstBytesOf('né', 2)).toBe('n');
  expect([1, 2, 3, 4, 5, 6].map((max) => firstBytesOf(`a${smile}b`, max))).toEqual([
    ...['a', 'a', 'a', 'a'],
    `a${smile}`,
    `a${smile}b`,
  ]);
});

test('wellFormed replaces only half characters, in texts and keys at any depth', () => {
  expect(wellFormed(`a${high}`)).toBe('a\ufffd');
  expect(wellFormed({ [`k${low}`]: [{ text: `${high}!`, whole: smile, escaped: '\\ud83d', none: null }] })).toEqual({
    'k\ufffd': [{ text: '\ufffd!', whole: smile, escaped: '\\ud83d', none: null }],
  });
  const fine = { text: smile, escaped: '\\\\ud83d' };
  expect(wellFormed(fine)).toBe(fine);
  expect(wellFormed(undefined)).toBeUndefined();
});

test('results and errors of a tool are well-formed', () => {
  expect(succeededResult('tcl_1', { text: `cut ${high}` })).toMatchObject({ output: { text: 'cut \ufffd' } });
  expect(failedResult('tcl_1', `cut ${high}`)).toMatchObject({ errorText: 'cut \ufffd' });
});

test('a character split over two deltas stays whole, and a single half is replaced', () => {
  const fold = new MessageFold();
  for (const [id, deltas] of [
    ['whole', [high, low]],
    ['half', ['a', high]],
  ] as const) {
    fold.add({ type: 'text-start', id });
    for (const delta of deltas) fold.add({ type: 'text-delta', id, delta });
    fold.add({ type: 'text-end', id });
  }
  expect(fold.parts()).toMatchObject([{ text: smile }, { text: 'a\ufffd' }]);
});
