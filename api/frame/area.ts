import type { Request, RequestHandler, Router } from 'express';
import type { AccessTable, OperationId } from './auth/access.ts';
import type { Connection } from './connection.ts';
import type { ConnectionLimits } from './connectionLimits.ts';
import type { ApiDeps, RouteDeps } from './deps.ts';
import type { Failure } from './failures.ts';
import type { OwnHosts } from './ownHosts.ts';

/** How an area handles a WebSocket that its caller may open. */
export interface Upgrade {
  /** The space whose members may stay connected, when the path does not name it. */
  spaceId?: string;
  /** Set when the holder of a link opens the socket. The area itself checks whether the link still holds. */
  link?: LinkedUpgrade;
  open(connection: Connection): void;
}

/** A WebSocket opened through a link, without a caller. */
export interface LinkedUpgrade {
  /** The link’s maker, whose connection limit this socket counts against. */
  userId: string;
  limits: ConnectionLimits;
}

/**
 * Handles a request for a WebSocket, after the same checks as a route's request. An error that it throws is answered as
 * problem+json. The frame opens the upgrade that it returns.
 */
export type UpgradeHandler = (deps: RouteDeps) => (req: Request) => Upgrade | Promise<Upgrade>;

/** What an area's folder contributes to the API: `api/<area>/index.ts`. */
export interface Area {
  /** Who may call each of its operations. */
  access: AccessTable;
  /** In matching order: literal paths come before those with parameters. */
  routes: readonly ((deps: RouteDeps) => Router)[];
  /** WebSockets, by the operation that the contract marks `x-upgrade: websocket`. */
  upgrades?: Readonly<Record<string, UpgradeHandler>>;
  /** Static files, which are not operations, by path. */
  files?: Readonly<Record<string, () => RequestHandler>>;
  /** Formats errors below a path as this JSON instead of problem+json, for an API that others have designed. */
  errors?: Readonly<Record<string, (failure: Failure, req: Pick<Request, 'operation'>) => object>>;
  /** Host names of the area's own, for which the API does not answer. */
  hosts?: readonly ((deps: ApiDeps) => OwnHosts)[];
}

type IdsOf<One> = One extends { access: infer Rows } ? keyof Rows : never;

type Named = Readonly<Record<string, Area>>;

/** Operations that have a row in more than one area. */
type Repeated<Areas extends Named> = {
  [Name in keyof Areas]: IdsOf<Areas[Name]> & IdsOf<Areas[Exclude<keyof Areas, Name>]>;
}[keyof Areas];

/** Ids that stand in several rows, and ids that the contract does not have. */
type WrongIds<Areas extends Named> = Repeated<Areas> | Exclude<IdsOf<Areas[keyof Areas]>, OperationId>;

type Sound<Areas extends Named> = [WrongIds<Areas>] extends [never]
  ? Areas
  : { 'has two rows, or is not an operation': WrongIds<Areas> };

type Merged<Areas extends Named> = {
  [Id in IdsOf<Areas[keyof Areas]>]: Extract<Areas[keyof Areas]['access'], Record<Id, unknown>>[Id];
};

/** The areas' access rows as one table. The compiler refuses a repeated row and a row that names no operation. */
export function tableOf<const Areas extends Named>(areas: Areas & Sound<Areas>): Merged<Areas> {
  return mergeAccess(Object.values<Area>(areas)) as Merged<Areas>;
}

/** The same for areas that the compiler does not know, such as a test's. Throws on a duplicate row. */
export function mergeAccess(areas: readonly Area[]): AccessTable {
  const rows = areas.flatMap(({ access }) => Object.entries(access));
  const table = Object.fromEntries(rows);
  const twice = rows.map(([id]) => id).filter((id, index, ids) => ids.indexOf(id) !== index);
  if (twice.length > 0) throw new Error(`More than one area has a row for ${twice.join(', ')}.`);
  return table;
}
