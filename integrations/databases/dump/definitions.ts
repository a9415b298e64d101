import type { AccountConnection } from '../accountConnection.ts';
import type { TenantConnection } from '../connection.ts';
import { TenantServerError } from '../errors.ts';
import { databaseName } from '../names.ts';
import type { Entry } from './entries.ts';
import type { LeftOut } from './leftOut.ts';
import { quote } from './values.ts';

type Shown = Record<string, string | null>;

/** The definition of something with a definer, as the server shows it. Undefined if it is gone or broken. */
function definitionOf(
  shown: Shown | undefined,
  { name, last }: { name?: string; last?: 'view' | 'trigger' } = {},
): Entry | undefined {
  const [, text] = Object.entries(shown ?? {}).find(([key]) => /^(create |sql original)/i.test(key)) ?? [];
  if (text === undefined || text === null) return undefined;
  const { sql_mode: mode, collation_connection: collation } = shown ?? {};
  return { define: withoutDefiner(text), mode: mode ?? '', collation: collation ?? undefined, last, name };
}

/** The account that restores it becomes its definer. Atrium made the definer's name, so nothing else matches. */
function withoutDefiner(text: string): string {
  return text.replace(/^(CREATE (?:OR REPLACE )?(?:ALGORITHM ?= ?\w+ )?)DEFINER ?= ?([`"])[^`"]*\2@\2[^`"]*\2 /i, '$1');
}

/**
 * Functions, procedures and triggers. Only Atrium's own account sees what others have defined. It reads the texts and
 * runs none of them.
 */
export async function* routinesOf(admin: TenantConnection, name: string, leftOut: LeftOut): AsyncGenerator<Entry> {
  const place = databaseName(name);
  const routines = await admin.rows<{ name: string; type: string }>(
    `SELECT ROUTINE_NAME AS name, ROUTINE_TYPE AS type FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ?
      ORDER BY ROUTINE_TYPE, ROUTINE_NAME`,
    [name],
  );
  for (const routine of routines) {
    const [shown] = await shownBy(() =>
      admin.rows<Shown>(`SHOW CREATE ${routine.type} ${place}.${quote(routine.name)}`),
    );
    const entry = definitionOf(shown);
    if (entry !== undefined) yield entry;
    else leftOut.add({ kind: /^function$/i.test(routine.type) ? 'function' : 'procedure', name: routine.name });
  }
  const triggers = await admin.rows<{ name: string }>(
    `SELECT TRIGGER_NAME AS name FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ?
      ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER`,
    [name],
  );
  for (const trigger of triggers) {
    const [shown] = await shownBy(() => admin.rows<Shown>(`SHOW CREATE TRIGGER ${place}.${quote(trigger.name)}`));
    const entry = definitionOf(shown, { name: trigger.name, last: 'trigger' });
    if (entry !== undefined) yield entry;
    else leftOut.add({ kind: 'trigger', name: trigger.name });
  }
}

/** Asks within the database, so that the texts do not name it. */
export async function* viewsOf(
  connection: AccountConnection,
  names: readonly string[],
  leftOut: LeftOut,
): AsyncGenerator<Entry> {
  for (const name of names) {
    const [shown] = await shownBy(() => connection.rows<Shown>(`SHOW CREATE VIEW ${quote(name)}`));
    const entry = definitionOf(shown, { name, last: 'view' });
    if (entry !== undefined) yield entry;
    else leftOut.add({ kind: 'view', name });
  }
}

const gone: ReadonlySet<number | undefined> = new Set([1146, 1305, 1347, 1356, 1360]);

/** Leaves out what is gone by now, and views of something that does not exist. */
async function shownBy(ask: () => Promise<Shown[]>): Promise<Shown[]> {
  return ask().catch((error: unknown) => {
    if (error instanceof TenantServerError && gone.has(error.errno)) return [];
    throw error;
  });
}
