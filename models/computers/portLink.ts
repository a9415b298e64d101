import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';
import type { LinkKind } from '../links/links.ts';

/** A link to a port of a computer. */
export interface PortLink {
  id: string;
  spaceId: string;
  computerId: string;
  port: number;
  /** The first part of its host name. */
  label: string;
  createdBy: string;
  /** The API key that it was made with. The link is not valid for longer than the key. */
  apiKeyId: string | null;
  createdAt: Date;
  expiresAt: Date;
  revokedAt: Date | null;
  /** The run that serves the port, which lasts no longer than its links. Null if none does. */
  runId: string | null;
}

export const labelPattern = /^[a-z2-7]{26}$/;

const columns = `l.id, l.space_id, l.computer_id, l.port, l.label, l.created_by, l.api_key_id, l.created_at,
  l.expires_at, l.revoked_at, l.run_id`;

/** Finds links by a condition on the table `l`. */
export async function findLinks({ pool }: Pick<Database, 'pool'>, sql: string, values: unknown[]): Promise<PortLink[]> {
  return select<PortLink>(pool, `SELECT ${columns} FROM port_links l WHERE ${sql}`, values);
}

export const mostLinks = 100;

export const portLinkKind: LinkKind = {
  table: 'port_links',
  opens: 'computer_id',
  most: mostLinks,
  tooMany: {
    code: 'TOO_MANY_PORT_LINKS',
    detail: `A computer has at most ${mostLinks} links to its ports. Revoke some.`,
  },
  endedCode: 'PORT_LINK_ENDED',
  audit: 'port-link',
  isRemembered: true,
};
