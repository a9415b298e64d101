import { DomainError } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { hashLinkToken, linkEnded, linkHolds, newLinkToken } from '../links/links.ts';
import { findLinks, type PortLink, portLinkKind } from './portLink.ts';

/**
 * The user who asked for the address that let a browser in, and their credential. The browser stays in only while both
 * may use the link.
 */
export interface VisitAsker {
  userId: string;
  apiKeyId: string | null;
  sessionId: string | null;
}

/** A link, and the users who asked for these cookies. Empty without a cookie of this link. */
export interface Visit {
  link: PortLink;
  askers: VisitAsker[];
}

const mostVisitors = 500;
/** An older release did not record the user. Then it is the link's maker. */
const askerColumns = `COALESCE(v.asked_by, l.created_by) AS userId,
  IF(v.asked_by IS NULL, l.api_key_id, v.api_key_id) AS apiKeyId, v.session_id`;

/** The browsers that links let in. Tokens and cookies are kept as hashes. */
export function portVisits(database: Database) {
  async function findAskers(sql: string, values: unknown[]): Promise<VisitAsker[]> {
    return select<VisitAsker>(
      database.pool,
      `SELECT ${askerColumns} FROM port_link_visits v JOIN port_links l ON l.id = v.link_id WHERE ${sql}`,
      values,
    );
  }

  return {
    /** A token that lets one browser in. Throws 410 `PORT_LINK_ENDED`, 422 `TOO_MANY_VISITORS`. */
    async newToken(link: PortLink, asker: VisitAsker): Promise<string> {
      if (!linkHolds(link)) throw linkEnded(portLinkKind);
      const token = newLinkToken();
      await transaction(database, async (tx) => {
        await select(tx, 'SELECT id FROM port_links WHERE id = ? FOR UPDATE', [link.id]);
        const [counted] = await select<{ n: number }>(
          tx,
          'SELECT COUNT(*) AS n FROM port_link_visits WHERE link_id = ?',
          [link.id],
        );
        if ((counted?.n ?? 0) >= mostVisitors) {
          const detail = `At most ${mostVisitors} browsers can use one link. Create another link.`;
          throw new DomainError('unprocessable', 'TOO_MANY_VISITORS', detail);
        }
        await insert(tx, 'port_link_visits', {
          tokenHash: hashLinkToken(token),
          linkId: link.id,
          spaceId: link.spaceId,
          askedBy: asker.userId,
          apiKeyId: asker.apiKeyId,
          sessionId: asker.sessionId,
          createdAt: new Date(),
        });
      });
      return token;
    },

    /** The user who asked for this token. Undefined if the token is unknown or another link's. */
    async askerOf(linkId: string, token: string): Promise<VisitAsker | undefined> {
      return (await findAskers('v.token_hash = ? AND v.link_id = ?', [hashLinkToken(token), linkId]))[0];
    },

    /** Exchanges a token for a cookie, once. Undefined if the token is unknown, another link's or used. */
    async admit(linkId: string, token: string): Promise<string | undefined> {
      const cookie = newLinkToken();
      const result = await execute(
        database.pool,
        'UPDATE port_link_visits SET cookie_hash = ? WHERE token_hash = ? AND link_id = ? AND cookie_hash IS NULL',
        [hashLinkToken(cookie), hashLinkToken(token), linkId],
      );
      return result.affectedRows === 1 ? cookie : undefined;
    },

    /** The link of a host name's label, and the users who asked for the cookies among these that open it. */
    async visit(label: string, cookies: readonly string[]): Promise<Visit | undefined> {
      const [link] = await findLinks(database, 'l.label = ?', [label]);
      if (link === undefined) return undefined;
      if (cookies.length === 0) return { link, askers: [] };
      return {
        link,
        askers: await findAskers('v.cookie_hash IN (?) AND v.link_id = ?', [cookies.map(hashLinkToken), link.id]),
      };
    },
  };
}
