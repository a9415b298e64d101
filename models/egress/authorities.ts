import { type Envelope, systemScope } from '../../crypto/envelope.ts';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

/** A certificate authority, as PEM. */
export interface EgressAuthority {
  certificate: string;
  key: string;
}

interface Row {
  number: number;
  certificate: string;
  sealed: Buffer;
  signsFrom: Date;
  notAfter: Date;
}

const dayMs = 86_400_000;
/** The next one is made this long before the last one ends. */
const renewMs = 365 * dayMs;
/** It is trusted for a while before it signs: computers that run know those that there were at their start. */
const overlapMs = 30 * dayMs;

/**
 * The installation's own authorities, which its computers trust and nobody else does. Their keys are sealed like all
 * others, and every process makes the same choice from the same rows.
 */
export function createEgressAuthorities(
  database: Database,
  envelope: Envelope,
  make: (now: Date) => Promise<EgressAuthority & { notAfter: Date }>,
) {
  async function stored(now: Date): Promise<Row[]> {
    const sql = `SELECT number, certificate, sealed, signs_from, not_after
         FROM egress_authorities WHERE withdrawn_at IS NULL AND not_after > ? ORDER BY number`;
    return select<Row>(database.pool, sql, [now]);
  }

  /** Those that are trusted now; the first one, and one for the time after the last, are made when they are missing. */
  async function trusted(now: Date): Promise<[Row, ...Row[]]> {
    const before = await stored(now);
    const last = before.at(-1);
    if (last === undefined) await add(now, now);
    else if (last.notAfter.getTime() - now.getTime() < renewMs) {
      await add(now, new Date(now.getTime() + overlapMs));
    } else return before as [Row, ...Row[]];
    const [first, ...others] = await stored(now);
    if (first === undefined) throw new Error('An authority that was just stored is not there.');
    return [first, ...others];
  }

  async function add(now: Date, signsFrom: Date): Promise<void> {
    const { certificate, key, notAfter } = await make(now);
    const sql = 'SELECT MAX(number) AS number FROM egress_authorities';
    const rows = await select<{ number: number | null }>(database.pool, sql);
    const number = (rows[0]?.number ?? 0) + 1;
    const sealed = await envelope.seal(systemScope, contextOf(number), Buffer.from(key, 'utf8'));
    // Where another process was faster, its authority is as good.
    await execute(
      database.pool,
      `INSERT IGNORE INTO egress_authorities (number, certificate, sealed, created_at, signs_from, not_after)
       VALUES (?, ?, ?, ?, ?, ?)`,
      [number, certificate, sealed, now, signsFrom, notAfter],
    );
  }

  return {
    /** The one that signs now. */
    async signing(now = new Date()): Promise<EgressAuthority> {
      const all = await trusted(now);
      const { number, certificate, sealed } = all.findLast(({ signsFrom }) => signsFrom <= now) ?? all[0];
      const key = await envelope.open(systemScope, contextOf(number), sealed);
      return { certificate, key: key.toString('utf8') };
    },

    /** The certificates that computers are to trust. */
    async trusted(now = new Date()): Promise<string[]> {
      return (await trusted(now)).map(({ certificate }) => certificate);
    },

    /** Trusts none of the present ones any more, and makes one that signs at once: for a key that may be known. */
    async replace(now = new Date()): Promise<void> {
      await execute(database.pool, 'UPDATE egress_authorities SET withdrawn_at = ? WHERE withdrawn_at IS NULL', [now]);
      await trusted(now);
    },
  };
}

function contextOf(number: number): string {
  return `egress_authorities/${number}`;
}
