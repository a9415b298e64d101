import { pipeline } from 'node:stream/promises';
import { listCheckouts } from '../../models/billing/checkouts.ts';
import { readLedger } from '../../models/billing/report.ts';
import type { Database } from '../../models/database/database.ts';
import { decodeCursor, toTwoWayPage } from '../../models/database/pages.ts';
import { answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { csvHeader, csvLines, presentCheckout, presentLedgerRecord } from './presentBilling.ts';

const recordsPerRead = 500;

/** The history of a space's credits: its ledger, in pages and as a file, and its purchases. */
export function billingEntryRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.get('/api/billing/:spaceId/entries', async (req, res) => {
    const { spaceId } = pathOf<'listBillingEntries'>(req);
    const { limit, cursor } = pageOf(req);
    const { order } = queryOf<'listBillingEntries'>(req);
    const behind = decodeCursor(cursor);
    const records = await readLedger(deps.database, spaceId, { order, limit: limit + 1, behind });
    const page = toTwoWayPage(records, { limit, cursor }, ({ id }) => id);
    answer<'listBillingEntries'>(res, 200, { ...page, data: page.data.map(presentLedgerRecord) });
  });

  router.get('/api/billing/:spaceId/entries.csv', async (req, res) => {
    const { spaceId } = pathOf<'exportBillingEntries'>(req);
    res.type('text/csv').attachment('ledger.csv');
    // Reads page after page at the client's pace, so that a long ledger is never in memory as a whole.
    await pipeline(exportLines(deps.database, spaceId), res);
  });

  router.get('/api/billing/:spaceId/checkouts', async (req, res) => {
    const { spaceId } = pathOf<'listCheckouts'>(req);
    const page = await listCheckouts(deps.database, spaceId, pageOf(req));
    answer<'listCheckouts'>(res, 200, {
      data: page.data.map((row) => presentCheckout(row, deps.config)),
      nextCursor: page.nextCursor,
    });
  });

  return router;
}

async function* exportLines(database: Database, spaceId: string): AsyncGenerator<string> {
  yield csvHeader;
  for (let behind: string | undefined; ; ) {
    const records = await readLedger(database, spaceId, { limit: recordsPerRead, behind });
    yield records.map(csvLines).join('');
    if (records.length < recordsPerRead) return;
    behind = records.at(-1)?.id;
  }
}
