import type { Role } from '../../../models/identity/tables.ts';
import type { operations } from '../../types.gen.ts';

export type OperationId = keyof operations;

/**
 * Who a caller must be.
 *
 * - `anyone`: no credential is asked for
 * - `operator`: loopback, or the operator's key; the route checks it
 * - `signed`: what comes proves itself by a signature; the route checks it
 * - `signedIn`: anybody with a credential, who sees and makes only what is theirs
 * - `self`: whose object it is; for everybody else it is not there (404)
 * - `threadOwner`: whose thread it is, for as long as they are a member; nobody else, an owner of the space neither
 *   (403)
 * - `editorsOwn`: the editor of the space whose object it is; for other editors it is not there (404)
 * - `viewer`, `editor`, `owner`: a member of the space with at least this role (403); for others the space is not there
 *   (404)
 * - `ownerOrSelf`: an owner of the space, or the member whom it is about
 */
export type Access =
  | 'anyone'
  | 'operator'
  | 'signed'
  | 'signedIn'
  | 'self'
  | 'threadOwner'
  | 'editorsOwn'
  | Role
  | 'ownerOrSelf';

/** The rows of one area. */
export type AccessRows = Readonly<Partial<Record<OperationId, Access>>>;

/** The areas' rows together. By any name, for an area that a test adds has operations of its own. */
export type AccessTable = Readonly<Record<string, Access>>;

/**
 * The row of an operation. Where `{spaceId}` is in the path, its role is asked for before the route runs
 * (middleware/authorization.ts); elsewhere the route asks, by `authorizeOperation` or `authorizeThread`. Throws when
 * there is no row: an operation that nobody thought about is open to nobody.
 */
export function accessOf(table: AccessTable, operationId: string): Access {
  const access = Object.hasOwn(table, operationId) ? table[operationId] : undefined;
  if (access === undefined) throw new Error(`No area's access.ts has a row for ${operationId}: add who may call it.`);
  return access;
}

/** The role that an access asks of a caller in a space; undefined where it is none of that kind. */
export function roleOf(access: Access, isAboutCaller = false): Role | undefined {
  if (access === 'ownerOrSelf') return isAboutCaller ? 'viewer' : 'owner';
  if (access === 'editorsOwn') return 'editor';
  // Whoever left the space has left their threads there.
  if (access === 'threadOwner') return 'viewer';
  return access === 'viewer' || access === 'editor' || access === 'owner' ? access : undefined;
}
