import type { Envelope } from '../../crypto/envelope.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import { formsWithin } from '../../telemetry/secretForms.ts';
import { inSlices, type Pause } from '../../telemetry/slices.ts';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { passwordsIn } from '../databases/accounts.ts';
import { dynamicSecretContext } from './dynamicSecrets.ts';
import { leavesOf } from './leaves.ts';
import { buildRedactor, createRedactor, mostForms, type Redactor } from './redactor.ts';
import { secretContext } from './secrets.ts';

const cachedSpaces = 500;
/** Limit of the forms in all cached spaces together. */
const cachedForms = 100_000;

interface Known {
  /** Names the secrets that the redactor knows, with their revisions. */
  entries: string;
  redactor: Promise<Redactor>;
  isBuilt: boolean;
  forms: number;
}

/**
 * Redactors that know a space's present secrets. Ask for one anew when work begins: one short query tells which secrets
 * there are, and a redactor is built only when they have changed. It is built in slices, once for all callers, and one
 * at a time for each space.
 */
export function createRedactors(database: Database, envelope: Envelope, pause?: Pause) {
  const spaces = new Map<string, Known>();

  async function present(spaceId: string): Promise<string> {
    const sql = `SELECT CONCAT('n ', revision, ' ', name) AS entry FROM secrets WHERE space_id = ?
       UNION ALL SELECT CONCAT('d 0 ', id) FROM dynamic_secrets WHERE space_id = ? AND expires_at > ?
       UNION ALL SELECT CONCAT('a ', password_version, ' ', id) FROM space_database_accounts WHERE space_id = ?`;
    const rows = await select(database.pool, sql, [spaceId, spaceId, new Date(), spaceId]);
    return rows
      .map((row) => String(row.entry))
      .toSorted()
      .join('\n');
  }

  /** The values of each secret. */
  async function valuesOf(spaceId: string): Promise<{ named: string[][]; typed: string[][] }> {
    const named = await select(database.pool, 'SELECT name, sealed FROM secrets WHERE space_id = ?', [spaceId]);
    const sql = 'SELECT id, sealed FROM dynamic_secrets WHERE space_id = ? AND expires_at > ?';
    const typed = await select(database.pool, sql, [spaceId, new Date()]);
    const texts = await Promise.all(named.map(({ name, sealed }) => open(spaceId, secretContext(name), sealed)));
    const values = await Promise.all(typed.map(({ id, sealed }) => open(spaceId, dynamicSecretContext(id), sealed)));
    const passwords = await passwordsIn(database, envelope, spaceId);
    return {
      named: [...texts.flat(), ...passwords].map((value) => [value]),
      typed: values.map(([text]) => (text === undefined ? [] : leavesOf(JSON.parse(text)))),
    };
  }

  /** Empty when a row was tampered with. The secret is then unusable, but must not stop all other work. */
  async function open(spaceId: string, context: string, sealed: Buffer): Promise<[string] | []> {
    try {
      return [(await envelope.open(spaceId, context, sealed)).toString('utf8')];
    } catch (error) {
      if (error instanceof DecryptionError) return [];
      throw error;
    }
  }

  async function build(spaceId: string, known: Known): Promise<Redactor> {
    try {
      const { named, typed } = await valuesOf(spaceId);
      await keepOutOfLogs([...named, ...typed].flat());
      const built = await inSlices(building(named, typed), pause);
      known.forms = built.forms;
      known.isBuilt = true;
      forget();
      return built.redactor;
    } catch (error) {
      if (spaces.get(spaceId) === known) spaces.delete(spaceId);
      throw error;
    }
  }

  /** Forgets the redactors that were built first while there are too many. The last one stays. */
  function forget(): void {
    let forms = [...spaces.values()].reduce((sum, known) => sum + known.forms, 0);
    for (const [oldest, known] of spaces) {
      const areFew = spaces.size <= cachedSpaces && forms <= cachedForms;
      if (areFew || spaces.size === 1) break;
      spaces.delete(oldest);
      forms -= known.forms;
    }
  }

  return {
    async forSpace(spaceId: string): Promise<Redactor> {
      for (;;) {
        const entries = await present(spaceId);
        const known = spaces.get(spaceId);
        if (known?.entries === entries) return known.redactor;
        if (known?.isBuilt === false) {
          // Secrets have changed during the build. Wait for it, then check again.
          await known.redactor.catch(() => {});
          continue;
        }
        if (entries === '') {
          spaces.delete(spaceId);
          return none;
        }
        const coming: Known = { entries, redactor: Promise.resolve(none), isBuilt: false, forms: 0 };
        spaces.delete(spaceId);
        spaces.set(spaceId, coming);
        coming.redactor = build(spaceId, coming);
        return coming.redactor;
      }
    },
  };
}

export type Redactors = ReturnType<typeof createRedactors>;

const none = createRedactor([]);

function* building(
  named: readonly string[][],
  typed: readonly string[][],
): Generator<number, { redactor: Redactor; forms: number }> {
  const forms = [...(yield* formsWithin(named, mostForms.named)), ...(yield* formsWithin(typed, mostForms.typed))];
  return { redactor: yield* buildRedactor(forms), forms: forms.length };
}
