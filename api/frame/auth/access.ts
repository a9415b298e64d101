import type { Role } from '../../../models/identity/tables.ts';
import type { operations } from '../../generated/types.gen.ts';

export type OperationId = keyof operations;

/**
 * Who a caller must be.
 *
 * - `anyone`: no credential needed
 * - `operator`: loopback, or the operator's key; the route checks it
 * - `signed`: the request proves itself by a signature; the route checks it
 * - `signedOrEditor`: the same, or an editor of the space; the route checks both
 * - `signedIn`: any caller with a credential, who sees and makes only their own objects
 * - `self`: the object's owner; for all others the object does not exist (404)
 * - `threadOwner`: the thread's owner while they are a member; all others get 403, even an owner of the space
 * - `editorsOwn`: the object's owner, who must be an editor of the space; for other editors it does not exist (404)
 * - `viewer`, `editor`, `owner`: a member of the space with at least this role (403); for others the space does not
 *   exist (404)
 * - `ownerOrSelf`: an owner of the space, or the member that the request is about
 */
export type Access =
  | 'anyone'
  | 'operator'
  | 'signed'
  | 'signedOrEditor'
  | 'signedIn'
  | 'self'
  | 'threadOwner'
  | 'editorsOwn'
  | Role
  | 'ownerOrSelf';

/** The rows of one area. */
export type AccessRows = Readonly<Partial<Record<OperationId, Access>>>;

/** The areas' rows together. Keys are any strings, since an area that a test adds has operations of its own. */
export type AccessTable = Readonly<Record<string, Access>>;

/**
 * The row of an operation. If `{spaceId}` is in the path, middleware/authorization.ts checks the role before the route
 * runs. Otherwise the route checks it with `authorizeOperation` or `authorizeThread`. Throws when there is no row: an
 * operation without a decision is open to no caller.
 */
export function accessOf(table: AccessTable, operationId: string): Access {
  const access = Object.hasOwn(table, operationId) ? table[operationId] : undefined;
  if (access === undefined) throw new Error(`No area's access.ts has a row for ${operationId}: add who may call it.`);
  return access;
}

/** The role that an access requires in a space. Undefined when it requires none. */
export function roleOf(access: Access, isAboutCaller = false): Role | undefined {
  if (access === 'ownerOrSelf') return isAboutCaller ? 'viewer' : 'owner';
  if (access === 'editorsOwn') return 'editor';
  // A former member's threads stay in the space.
  if (access === 'threadOwner') return 'viewer';
  return access === 'viewer' || access === 'editor' || access === 'owner' ? access : undefined;
}
