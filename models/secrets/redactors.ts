import type { RowDataPacket } from 'mysql2';
import type { Envelope } from '../../crypto/envelope.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import { secretForms } from '../../telemetry/secretForms.ts';
import type { Database } from '../database/database.ts';
import { passwordsOf } from '../databases/accounts.ts';
import { dynamicSecretContext } from './dynamicSecrets.ts';
import { leavesOf } from './leaves.ts';
import { createRedactor, type Redactor } from './redactor.ts';
import { secretContext } from './secrets.ts';

const cachedSpaces = 500;

interface Known {
  /** The forms of each secret's values, by its revision. */
  forms: Map<string, string[]>;
  redactor: Redactor;
}

const none: Known = { forms: new Map(), redactor: createRedactor([]) };

/**
 * Redactors that know the present secrets of a space. Each is asked for anew when work begins: one short query says
 * which secrets there are, and only those that are new or changed are opened.
 */
export function createRedactors(database: Database, envelope: Envelope) {
  const spaces = new Map<string, Known>();

  async function present(spaceId: string): Promise<string[]> {
    const [rows] = await database.pool.query<RowDataPacket[]>(
      `SELECT CONCAT('n ', revision, ' ', name) AS entry FROM secrets WHERE space_id = ?
       UNION ALL SELECT CONCAT('d 0 ', id) FROM dynamic_secrets WHERE space_id = ? AND expires_at > ?
       UNION ALL SELECT CONCAT('a ', password_version, ' ', id) FROM space_database_accounts WHERE space_id = ?`,
      [spaceId, spaceId, new Date(), spaceId],
    );
    return rows.map((row) => String(row.entry));
  }

  async function formsOf(spaceId: string, entry: string): Promise<string[]> {
    const [kind, , name = ''] = entry.split(' ');
    if (kind === 'a') return (await passwordsOf(database, envelope, name)).flatMap(secretForms);
    const isNamed = kind === 'n';
    const [rows] = await database.pool.query<RowDataPacket[]>(
      isNamed
        ? 'SELECT sealed FROM secrets WHERE space_id = ? AND name = ?'
        : 'SELECT sealed FROM dynamic_secrets WHERE space_id = ? AND id = ?',
      [spaceId, name],
    );
    const sealed = rows[0]?.sealed as Buffer | undefined;
    if (sealed === undefined) return [];
    try {
      const context = isNamed ? secretContext(name) : dynamicSecretContext(name);
      const text = (await envelope.open(spaceId, context, sealed)).toString('utf8');
      const values = isNamed ? [text] : leavesOf(JSON.parse(text));
      keepOutOfLogs(values);
      return values.flatMap(secretForms);
    } catch (error) {
      // A row that was tampered with is unusable, and must not stop all other work.
      if (error instanceof DecryptionError) return [];
      throw error;
    }
  }

  return {
    async forSpace(spaceId: string): Promise<Redactor> {
      const entries = await present(spaceId);
      const known = spaces.get(spaceId) ?? none;
      if (entries.length === known.forms.size && entries.every((entry) => known.forms.has(entry)))
        return known.redactor;
      const forms = new Map<string, string[]>();
      for (const entry of entries) forms.set(entry, known.forms.get(entry) ?? (await formsOf(spaceId, entry)));
      const redactor = createRedactor([...forms.values()].flat());
      spaces.delete(spaceId);
      spaces.set(spaceId, { forms, redactor });
      for (const oldest of spaces.keys()) {
        if (spaces.size <= cachedSpaces) break;
        spaces.delete(oldest);
      }
      return redactor;
    },
  };
}

export type Redactors = ReturnType<typeof createRedactors>;
