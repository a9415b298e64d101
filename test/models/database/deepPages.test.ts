import { endedCheckouts, listCheckouts } from '../../../models/billing/checkouts.ts';
import { readLedger } from '../../../models/billing/report.ts';
import { chatModels } from '../../../models/chat/models.ts';
import type { Database } from '../../../models/database/database.ts';
import { encodeCursor } from '../../../models/database/pages.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { oldestFirst } from '../../../models/sweeping/oldestFirst.ts';
import { createTestEnvironment, runStatement, type TestEnvironment } from '../../support/environment.ts';
import { rowsTouched } from '../../support/rowsTouched.ts';

const count = 4_000;
const limit = 20;
/** Enough for a page's rows, their keys, and what is looked up for each. Far fewer than the rows before the page. */
const fewRows = 15 * limit;

let environment: TestEnvironment;
const time = (number: number) => new Date(Date.UTC(2026, 0, 1) + number * 1_000);
const idOf = (prefix: string, number: number) => `${prefix}_${String(number).padStart(8, '0')}`;
const all = Array.from({ length: count }, (_, number) => number);
const spaceId = 'spc_deep';
const userId = 'usr_deep';

async function fill(table: string, rows: Record<string, unknown>[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {});
  for (let from = 0; from < rows.length; from += 1_000) {
    const values = rows.slice(from, from + 1_000).map((row) => columns.map((column) => row[column]));
    await environment.database.pool.query(`INSERT INTO ${table} (${columns.join(', ')}) VALUES ?`, [values]);
  }
  await runStatement(environment.environment.ATRIUM_DATABASE_MIGRATION_URL, `ANALYZE TABLE ${table}`);
}

/** Returns the answer of `work`, and expects that it reads about a page of rows, not the list before the page. */
async function readsOnlyItsPage<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const answer = await work(environment.database);
  expect(await rowsTouched(environment.config, work)).toBeLessThan(fewRows);
  return answer;
}

beforeAll(async () => {
  environment = await createTestEnvironment();
});

afterAll(() => environment.close());

test('Deep pages of threads, also of threads that wait for their user, read only their own rows', async () => {
  const made = { space_id: spaceId, user_id: userId, created_at: time(0) };
  const waiting = new Set([7, 2_000, 3_999]);
  await fill(
    'threads',
    all.map((number) => ({
      ...made,
      id: idOf('thr', number),
      updated_at: time(number >> 1),
      active_turn_id: waiting.has(number) ? idOf('trn', number) : null,
    })),
  );
  await fill(
    'turns',
    all.map((number) => ({
      ...made,
      id: idOf('trn', number),
      thread_id: idOf('thr', number),
      ordinal: 1,
      status: waiting.has(number) ? 'waiting' : 'completed',
      terminal: waiting.has(number) ? 0 : 1,
      user_message_id: 'u',
      assistant_message_id: 'a',
      mode: 'ask',
      model_id: 'demo',
      notification_priority: 'default',
    })),
  );
  const options = { spaceId, userId, limit };
  for (const turn of [1_950, 1_000, 100]) {
    const cursor = { updatedAt: time(turn), id: idOf('thr', 2 * turn + 1) };
    const expected = Array.from({ length: limit }, (_, index) => idOf('thr', 2 * turn - index));
    const page = await readsOnlyItsPage((database) => chatModels(database).Thread.page({ ...options, cursor }));
    expect(page.map(({ id }) => id)).toEqual(expected);
    if (turn !== 100) continue;
    const quiet = await readsOnlyItsPage((database) =>
      chatModels(database).Thread.page({ ...options, cursor, needsInput: false }),
    );
    expect(quiet.map(({ id }) => id)).toEqual(expected);
  }
  const asking = (behind?: { updatedAt: Date; id: string }) =>
    readsOnlyItsPage(async (database) => {
      const rows = await chatModels(database).Thread.page({
        ...options,
        needsInput: true,
        ...(behind && { cursor: behind }),
      });
      return rows.map(({ id }) => id);
    });
  expect(await asking()).toEqual([idOf('thr', 3_999), idOf('thr', 2_000), idOf('thr', 7)]);
  expect(await asking({ updatedAt: time(1_000), id: idOf('thr', 2_000) })).toEqual([idOf('thr', 7)]);
});

// Messages are stored in this order by their primary key. This fails for pages by OFFSET, or in another order.
test('Deep pages of messages read only their own rows, in both directions', async () => {
  const threadId = 'thr_long';
  await fill(
    'messages',
    all.map((number) => ({
      thread_id: threadId,
      turn_ordinal: number >> 1,
      position: number & 1,
      id: idOf('msg', number),
      turn_id: idOf('trn', number >> 1),
      role: 'user',
      parts: '[]',
      created_at: time(number),
    })),
  );
  for (const turnOrdinal of [1_900, 1_000, 100]) {
    const place = { turnOrdinal, position: 0 };
    const at = 2 * turnOrdinal;
    const { messages: after } = await readsOnlyItsPage((database) =>
      chatModels(database).Message.page({ threadId, after: place, limit }),
    );
    expect(after.map(({ id }) => id)).toEqual(Array.from({ length: limit }, (_, index) => idOf('msg', at + 1 + index)));
    const options = { threadId, afterOrdinal: -1, before: place, limit };
    const { messages: before } = await readsOnlyItsPage((database) =>
      chatModels(database).Message.latest(database, options),
    );
    expect(before.map(({ id }) => id)).toEqual(
      Array.from({ length: limit }, (_, index) => idOf('msg', at - 1 - index)),
    );
  }
});

test('Deep pages of the ledger read only their own rows, for transactions of one entry and of many', async () => {
  const head = { space_id: spaceId, kind: 'call', created_at: time(0) };
  await fill(
    'ledger_transactions',
    all.map((number) => ({ ...head, id: idOf('ltx', number), source_id: idOf('source', number) })),
  );
  const entriesOf = (number: number) => [1, 2, 7][number % 3] ?? 1;
  await fill(
    'ledger_entries',
    all.flatMap((number) =>
      Array.from({ length: entriesOf(number) }, (_, position) => ({
        transaction_id: idOf('ltx', number),
        position,
        space_id: spaceId,
        account: 'available',
        amount: 0,
        balance_after: 0,
      })),
    ),
  );
  const read = (behind?: string) => (database: Database) => readLedger(database, spaceId, { limit, behind });
  const page = await readsOnlyItsPage(read(idOf('ltx', 300)));
  expect(page.map(({ id }) => id)).toEqual(Array.from({ length: limit }, (_, index) => idOf('ltx', 299 - index)));
  expect(page.map(({ lines }) => lines.length)).toEqual(page.map((_, index) => entriesOf(299 - index)));
  // A page with many older transactions after it.
  await readsOnlyItsPage(read(idOf('ltx', 3_900)));
  expect(await readsOnlyItsPage(read(idOf('ltx', 3)))).toHaveLength(3);
  const later = await readsOnlyItsPage((database) =>
    readLedger(database, spaceId, { order: 'asc', limit, behind: idOf('ltx', 3_900) }),
  );
  expect(later.map(({ id }) => id)).toEqual(Array.from({ length: limit }, (_, index) => idOf('ltx', 3_901 + index)));
  expect(await readsOnlyItsPage(read())).toHaveLength(limit);
});

test('A deep page of purchases reads only its own rows, and so does the list of ended ones with a running operation', async () => {
  await fill(
    'billing_checkouts',
    all.map((number) => ({
      id: idOf('chk', number),
      kind: 'topUp',
      space_id: spaceId,
      user_id: userId,
      status: 'paid',
      amount_minor: 1,
      currency: 'eur',
      micro_credits: 1,
      provider: 'stripe',
      operation_id: idOf('op', number),
      created_at: time(number),
      expires_at: time(number),
      ended_at: time(number),
    })),
  );
  await fill(
    'operations',
    all.map((number) => ({
      id: idOf('op', number),
      kind: number % 100 === 0 ? 'topUp' : 'deleteThread',
      user_id: userId,
      subject_id: idOf('chk', number),
      status: 'running',
      created_at: time(number),
    })),
  );
  const page = await readsOnlyItsPage((database) =>
    listCheckouts(database, spaceId, { limit, cursor: encodeCursor(idOf('chk', 300)) }),
  );
  expect(page.data.map(({ id }) => id)).toEqual(Array.from({ length: limit }, (_, index) => idOf('chk', 299 - index)));
  const ended = await readsOnlyItsPage((database) => endedCheckouts(database, { before: time(count) }));
  expect(ended).toHaveLength(40);
});

test('Deep pages of the trash and of mails read only their own rows', async () => {
  await fill(
    'drive_items',
    all.map((number) => ({
      id: idOf('itm', number),
      space_id: spaceId,
      parent_id: idOf('trash', number),
      kind: 'file',
      is_file: 1,
      name: 'a',
      name_key: 'a',
      created_by: userId,
      created_at: time(0),
      updated_by: userId,
      updated_at: time(0),
      trashed_at: time(number),
      trashed_from: 'drive',
    })),
  );
  for (const at of [3_900, 2_000, 300]) {
    const after = { trashedAt: time(at), number: 0 };
    const rows = await readsOnlyItsPage((database) =>
      driveModels(database).DriveItem.trash({ spaceId, containerId: 'drive' }, limit, after),
    );
    expect(rows.map(({ id }) => id)).toEqual(Array.from({ length: limit }, (_, index) => idOf('itm', at - 1 - index)));
  }
  await fill(
    'mails',
    all.map((number) => ({
      id: idOf('mai', number),
      sealed: Buffer.alloc(50),
      created_at: time(number),
      expires_at: time(count),
    })),
  );
  const mails = await readsOnlyItsPage((database) =>
    oldestFirst(
      database,
      { table: 'mails', where: 'TRUE', time: 'created_at' },
      {
        before: time(count),
        after: { id: idOf('mai', 3_900), since: time(3_900) },
      },
    ),
  );
  expect(mails).toHaveLength(99);
});
