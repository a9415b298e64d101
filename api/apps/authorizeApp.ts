import type { Request } from 'express';
import { asNotFound } from '../../base/errors.ts';
import { type App, getAppOf } from '../../models/apps/app.ts';
import { hasDatabase } from '../../models/databases/connections.ts';
import type { Placed } from '../../models/drive/changes.ts';
import { may } from '../../models/identity/authority.ts';
import { authorizeItem } from '../drive/authorizeDrive.ts';
import { authorizeOperation } from '../frame/auth/authorizeSpace.ts';
import { callerOf, requireScope } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';

export interface PlacedApp {
  app: App;
  placed: Placed;
}

/** The app of an item, for a caller whose role allows the operation. 404 also while the item is in the trash. */
export async function authorizeApp(deps: RouteDeps, req: Request, itemId: string): Promise<PlacedApp> {
  const app = await getAppOf(deps.database, itemId);
  try {
    await authorizeOperation(deps, req, app.spaceId);
    return { app, placed: await authorizeItem(deps, callerOf(req), { spaceId: app.spaceId, itemId }) };
  } catch (error) {
    // Hides whether another tenant's space or item exists.
    throw asNotFound(error, 'app');
  }
}

/** For operations that let an app run by itself, with its maker's rights: a key must not grant more than it has. */
export async function requireScopesOfMaker(
  { database }: Pick<RouteDeps, 'database'>,
  req: Request,
  { id, authority }: App,
): Promise<void> {
  const caller = callerOf(req);
  const why = ', which the scheduled runs of this app have';
  if (may(authority, 'secrets:read')) requireScope(caller, 'secrets:read', why);
  if (may(authority, 'databases:write') && (await hasDatabase(database, id))) {
    requireScope(caller, 'databases:write', why);
  }
}
