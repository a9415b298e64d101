import { randomBytes } from 'node:crypto';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { assertNotReserved } from '../secrets/names.ts';
import { secretContext } from '../secrets/secrets.ts';
import { getComputer } from './computer.ts';
import { lockComputer } from './computers.ts';
import { placeholdersOf } from './placeholders.ts';

/** A secret that a computer has as a placeholder. */
export interface ComputerSecret {
  /** The secret of the space. */
  name: string;
  /** The variable whose value is the placeholder. */
  variable: string;
  /** The hosts to which the value is sent in place of the placeholder. */
  hosts: string[];
  inUrl: boolean;
  /** Further headers in which the value is sent, in lower case. */
  headers: string[];
  updatedAt: Date;
  updatedBy: string;
}

/** A secret for the egress proxy, which opens the value only when it is about to send it. */
export interface PlacedSecret extends Pick<ComputerSecret, 'name' | 'hosts' | 'inUrl' | 'headers'> {
  placeholder: string;
  value(): Promise<string | undefined>;
}

const maxSecrets = 100;
const columns = 'name, variable, hosts, in_url, headers, updated_at, updated_by';

/**
 * Which secrets a computer may use without knowing them. The computer gets placeholders. The egress proxy reads the
 * values when a request leaves for a host that they are for.
 */
export function createComputerSecrets(database: Database, envelope: Envelope) {
  async function open(spaceId: string, name: string): Promise<string | undefined> {
    const sql = 'SELECT sealed FROM secrets WHERE space_id = ? AND name = ?';
    const rows = await select<{ sealed: Buffer }>(database.pool, sql, [spaceId, name]);
    const sealed = rows[0]?.sealed;
    if (sealed === undefined) return undefined;
    const value = (await envelope.open(spaceId, secretContext(name), sealed)).toString('utf8');
    await keepOutOfLogs([value]);
    return value;
  }

  return {
    /**
     * Gives a secret to a computer, or changes its settings; its placeholder stays. Throws 404, 409 `VARIABLE_TAKEN`,
     * 422 `RESERVED_SECRET_NAME` or `TOO_MANY_SECRETS`.
     */
    async put(
      { spaceId, computerId }: { spaceId: string; computerId: string },
      secret: Pick<ComputerSecret, 'name' | 'variable' | 'hosts' | 'inUrl' | 'headers'>,
      actor: Actor & { userId: string },
    ): Promise<{ isNew: boolean; secret: ComputerSecret }> {
      const { name, variable, hosts, inUrl } = secret;
      const headers = [...new Set(secret.headers.map((header) => header.toLowerCase()))];
      assertNotReserved(variable);
      const updatedAt = new Date();
      const isNew = await transaction(database, async (tx) => {
        await lockComputer(tx, spaceId, computerId);
        const known = await select(tx, 'SELECT name FROM secrets WHERE space_id = ? AND name = ?', [spaceId, name]);
        if (known.length === 0) throw notFound('secret');
        const others = await select<{ name: string; variable: string }>(
          tx,
          'SELECT name, variable FROM computer_secrets WHERE computer_id = ?',
          [computerId],
        );
        if (others.some((other) => other.variable === variable && other.name !== name)) {
          const detail = 'Another secret of this computer already uses this variable.';
          throw new DomainError('conflict', 'VARIABLE_TAKEN', detail);
        }
        const isThere = others.some((other) => other.name === name);
        if (!isThere && others.length >= maxSecrets) {
          throw new DomainError('unprocessable', 'TOO_MANY_SECRETS', `A computer has at most ${maxSecrets} secrets.`);
        }
        await execute(
          tx,
          `INSERT INTO computer_secrets
             (computer_id, space_id, name, variable, placeholder, hosts, in_url, headers, created_at, updated_at,
              updated_by)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
           ON DUPLICATE KEY UPDATE variable = VALUES(variable), hosts = VALUES(hosts), in_url = VALUES(in_url),
             headers = VALUES(headers), updated_at = VALUES(updated_at), updated_by = VALUES(updated_by)`,
          [
            ...[computerId, spaceId, name, variable, newPlaceholder(), JSON.stringify(hosts), inUrl],
            headers.length === 0 ? null : JSON.stringify(headers),
            ...[updatedAt, updatedAt, actor.userId],
          ],
        );
        await appendAudit(tx, spaceId, actor, 'computer-secret.set', `${computerId} ${name}`);
        return !isThere;
      });
      return { isNew, secret: { name, variable, hosts, inUrl, headers, updatedAt, updatedBy: actor.userId } };
    },

    /** Takes a secret away, effective from the next request that leaves the computer. Throws 404. */
    async remove(
      { spaceId, computerId }: { spaceId: string; computerId: string },
      name: string,
      actor: Actor,
    ): Promise<void> {
      await transaction(database, async (tx) => {
        await lockComputer(tx, spaceId, computerId);
        const { affectedRows } = await execute(tx, 'DELETE FROM computer_secrets WHERE computer_id = ? AND name = ?', [
          computerId,
          name,
        ]);
        if (affectedRows === 0) throw notFound('secret');
        await appendAudit(tx, spaceId, actor, 'computer-secret.deleted', `${computerId} ${name}`);
      });
    },

    /** All secrets of a computer, by name. Throws 404. */
    async list(spaceId: string, computerId: string): Promise<ComputerSecret[]> {
      await getComputer(database, spaceId, computerId);
      const sql = `SELECT ${columns} FROM computer_secrets WHERE computer_id = ? ORDER BY name`;
      const rows = await select<Row>(database.pool, sql, [computerId]);
      type Row = Omit<ComputerSecret, 'hosts' | 'inUrl' | 'headers'> & PlacementRow;
      return rows.map((row) => ({ ...row, ...placementOf(row) }));
    },

    /** What the proxy puts in for a computer at this moment; nothing for one that is deleted. */
    async placed(computerId: string): Promise<PlacedSecret[]> {
      const rows = await placeholdersOf(database, computerId);
      return rows.map((row) => ({
        ...placementOf(row),
        name: row.name,
        placeholder: row.placeholder,
        value: () => open(row.spaceId, row.name),
      }));
    },
  };
}

export type ComputerSecrets = ReturnType<typeof createComputerSecrets>;

interface PlacementRow {
  hosts: string;
  inUrl: number;
  headers: string | null;
}

function placementOf({ hosts, inUrl, headers }: PlacementRow): Pick<ComputerSecret, 'hosts' | 'inUrl' | 'headers'> {
  return {
    hosts: JSON.parse(hosts) as string[],
    inUrl: inUrl !== 0,
    headers: headers === null ? [] : (JSON.parse(headers) as string[]),
  };
}

/** It is valid anywhere in a header, a URL or a shell word, and too random to occur by accident. */
function newPlaceholder(): string {
  return `atrium_secret_${randomBytes(20).toString('hex')}`;
}
