import { pipeline } from 'node:stream/promises';
import { readLedger } from '../../models/billing/report.ts';
import type { Database } from '../../models/database.ts';
import { decodeCursor, toPage } from '../../models/pages.ts';
import type { RouteDeps } from '../deps.ts';
import { csvHeader, csvLines, presentLedgerRecord } from '../presenters/billing.ts';
import { pageOf, pathOf } from '../request.ts';
import { createRouter } from '../router.ts';

const recordsPerRead = 500;

/** A space's ledger, as pages and as a file. */
export function billingEntryRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.get('/api/billing/:spaceId/entries', async (req, res) => {
    const { spaceId } = pathOf<'listBillingEntries'>(req);
    const { limit, cursor } = pageOf(req);
    const records = await readLedger(deps.database, spaceId, { limit: limit + 1, before: decodeCursor(cursor) });
    const page = toPage(records, limit, ({ id }) => id);
    res.json({ data: page.data.map(presentLedgerRecord), nextCursor: page.nextCursor });
  });

  router.get('/api/billing/:spaceId/entries.csv', async (req, res) => {
    const { spaceId } = pathOf<'exportBillingEntries'>(req);
    res.type('text/csv').attachment('ledger.csv');
    // Page after page, at its reader's pace: a ledger of years does not pass through memory at once.
    await pipeline(exportLines(deps.database, spaceId), res);
  });

  return router;
}

async function* exportLines(database: Database, spaceId: string): AsyncGenerator<string> {
  yield csvHeader;
  for (let before: string | undefined; ; ) {
    const records = await readLedger(database, spaceId, { limit: recordsPerRead, before });
    yield records.map(csvLines).join('');
    if (records.length < recordsPerRead) return;
    before = records.at(-1)?.id;
  }
}
