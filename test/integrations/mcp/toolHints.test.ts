import { hintsOf } from '../../../integrations/mcp/toolHints.ts';

test.each([
  ['nothing', undefined, { isReadOnly: false, isIdempotent: false, mayDestroy: true }],
  ['an empty object', {}, { isReadOnly: false, isIdempotent: false, mayDestroy: true }],
  ['that it reads', { readOnlyHint: true }, { isReadOnly: true, isIdempotent: false, mayDestroy: false }],
  ['that it adds', { destructiveHint: false }, { isReadOnly: false, isIdempotent: false, mayDestroy: false }],
  ['that it may be repeated', { idempotentHint: true }, { isReadOnly: false, isIdempotent: true, mayDestroy: true }],
  [
    'that it reads and destroys, which is only reading',
    { readOnlyHint: true, destructiveHint: true },
    { isReadOnly: true, isIdempotent: false, mayDestroy: false },
  ],
])('the hints of a tool that says %s are read', (_what, annotations, expected) => {
  expect(hintsOf(annotations)).toEqual(expected);
});

test.each([null, 'true', 1, 0, '', 'false', [], {}])('%j is not read as a hint', (value) => {
  const silent = { isReadOnly: false, isIdempotent: false, mayDestroy: true };
  expect(hintsOf({ readOnlyHint: value, idempotentHint: value, destructiveHint: value })).toEqual(silent);
  expect(hintsOf(value)).toEqual(silent);
});
