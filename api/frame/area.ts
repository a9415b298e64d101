import type { Request, RequestHandler, Router } from 'express';
import type { AccessTable, OperationId } from './auth/access.ts';
import type { Connection } from './connection.ts';
import type { RouteDeps } from './deps.ts';

/** What an area makes of a WebSocket that its caller may open. */
export interface Upgrade {
  /** Whose members alone may stay, where the path does not say of which space. */
  spaceId?: string;
  open(connection: Connection): void;
}

/**
 * Answers the request for a WebSocket: it has passed all that a route's request passes. What it throws is answered as
 * problem+json; what it gives is opened.
 */
export type UpgradeHandler = (deps: RouteDeps) => (req: Request) => Upgrade | Promise<Upgrade>;

/** What a folder of the API gives to the whole: `api/<area>/index.ts`. */
export interface Area {
  /** Who may call each of its operations. */
  access: AccessTable;
  /** In the order in which they are asked: literal paths come before those with parameters. */
  routes: readonly ((deps: RouteDeps) => Router)[];
  /** WebSockets, by the operation that the contract marks `x-upgrade: websocket`. */
  upgrades?: Readonly<Record<string, UpgradeHandler>>;
  /** Files that are served as they are and are no operations, by path. */
  files?: Readonly<Record<string, () => RequestHandler>>;
}

type IdsOf<One> = One extends { access: infer Rows } ? keyof Rows : never;

type Repeated<Areas extends readonly Area[]> = Areas extends readonly [
  infer First,
  ...infer Rest extends readonly Area[],
]
  ? (IdsOf<First> & IdsOf<Rest[number]>) | Repeated<Rest>
  : never;

/** Ids with more than one row, and ids of no operation. */
type WrongIds<Areas extends readonly Area[]> = Repeated<Areas> | Exclude<IdsOf<Areas[number]>, OperationId>;

type Sound<Areas extends readonly Area[]> = [WrongIds<Areas>] extends [never]
  ? Areas
  : { 'has two rows, or is no operation': WrongIds<Areas> };

type Merged<Areas extends readonly Area[]> = {
  [Id in IdsOf<Areas[number]>]: Extract<Areas[number]['access'], Record<Id, unknown>>[Id];
};

/** The areas' access rows as one table; the compiler refuses a row that stands twice or names no operation. */
export function tableOf<const Areas extends readonly Area[]>(areas: Areas & Sound<Areas>): Merged<Areas> {
  return mergeAccess(areas) as Merged<Areas>;
}

/** The same for areas of which the compiler knows nothing, as those of a test. Throws on a row that stands twice. */
export function mergeAccess(areas: readonly Area[]): AccessTable {
  const rows = areas.flatMap(({ access }) => Object.entries(access));
  const table = Object.fromEntries(rows);
  const twice = rows.map(([id]) => id).filter((id, index, ids) => ids.indexOf(id) !== index);
  if (twice.length > 0) throw new Error(`More than one access.ts has a row for ${twice.join(', ')}.`);
  return table;
}
