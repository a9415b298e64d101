import type { WantedDatabase } from '../../integrations/databases/types.ts';
import type { AlignedAccount, Alignment } from '../../models/databases/alignment.ts';
import type { DatabaseState } from '../../models/databases/spaceDatabase.ts';

const onServer = { living: 'open', deleted: 'locked', purged: 'gone' } as const satisfies Record<DatabaseState, string>;

/** A row's database as its server should have it. */
export function asWanted({ serverName, state, compacts, accounts, ...full }: Alignment): WantedDatabase {
  const asAccount = ({ serverUser: user, ...rest }: AlignedAccount) => ({ user, ...rest });
  const { isFull, isFullOfDefinitions } = full;
  const wanted = { name: serverName, state: onServer[state], isFull, isFullOfDefinitions };
  return { ...wanted, compacts: compacts > 0, accounts: accounts.map(asAccount) };
}
