import { type Area, mergeAccess, tableOf } from '../../../api/frame/area.ts';
import type { Access, AccessRows, OperationId } from '../../../api/frame/auth/access.ts';

// The compiler checks most of this: an expected error that it no longer finds makes `npm run typecheck` fail.

const areaOf = <const Rows extends Area['access']>(access: Rows) => ({ access, routes: [] });
const users = areaOf({ getMe: 'signedIn' });
const spaces = areaOf({ getSpace: 'viewer', listSpaces: 'signedIn' });

test('The rows of all areas become one table', () => {
  const table = tableOf({ users, spaces });
  table satisfies Pick<Record<OperationId, Access>, 'getMe' | 'getSpace' | 'listSpaces'>;
  // @ts-expect-error no area has a row for most operations
  table satisfies Record<OperationId, Access>;
  expect(table).toEqual({ getMe: 'signedIn', getSpace: 'viewer', listSpaces: 'signedIn' });
});

test('An operation with two rows is refused', () => {
  // @ts-expect-error getMe has two
  expect(() => tableOf({ users, spaces, others: areaOf({ getMe: 'anyone' }) })).toThrow('has a row for getMe');
  expect(() => mergeAccess([users, users])).toThrow('has a row for getMe');
});

test('A row for an unknown operation, or with an unknown access, does not compile', () => {
  // @ts-expect-error there is no such operation
  const unknown = { getMee: 'signedIn' } as const satisfies AccessRows;
  // @ts-expect-error nor is it let in where the rows are merged
  expect(tableOf({ users, others: areaOf(unknown) })).toEqual({ getMe: 'signedIn', getMee: 'signedIn' });
  // @ts-expect-error nor is there such an access
  const misspelt = { getMe: 'signedin' } as const satisfies AccessRows;
  expect(misspelt).toBeDefined();
});
