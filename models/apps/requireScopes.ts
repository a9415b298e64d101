import type { Database } from '../database/database.ts';
import { hasDatabase } from '../databases/connections.ts';
import { type Authority, insufficientScope, may } from '../identity/authority.ts';
import type { App } from './app.ts';
import type { AppComponent } from './manifest.ts';

/** Throws 403 `INSUFFICIENT_SCOPE` if the component gets secrets, or a database, that its caller may not have. */
export async function requireScopes(
  database: Pick<Database, 'pool'>,
  { id }: Pick<App, 'id'>,
  { secrets }: Pick<AppComponent, 'secrets'>,
  by: Pick<Authority, 'scopes'>,
): Promise<void> {
  if (secrets.length > 0 && !may(by, 'secrets:read')) {
    throw insufficientScope('secrets:read', ', because this component is given secrets');
  }
  if (!may(by, 'databases:write') && (await hasDatabase(database, id))) {
    throw insufficientScope('databases:write', ', because this app is connected to a database');
  }
}
