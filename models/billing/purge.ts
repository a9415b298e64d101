import type { AreaPurge } from '../database/areaPurge.ts';

const books = 'Books are kept, whatever becomes of a space: what was paid, spent and given back must stay explainable.';

export const billingPurge: AreaPurge = {
  ofSpace: ['billing_call_sizes'],
  kept: {
    billing_balances: books,
    billing_checkouts: books,
    billing_day_use: 'Sums of its last calls, by which its caps were kept. They go after two weeks.',
    billing_grants: books,
    billing_holds: books,
    billing_reversals: books,
    billing_settings: 'It says which customer of the payment provider the space was, for refunds and disputes.',
    development_payments: books,
    ledger_entries: books,
    ledger_transactions: books,
    payment_events: books,
    payment_findings: books,
    billing_state: 'It is the installation’s.',
  },
  async finish(database, spaceId) {
    await database.pool.query('UPDATE billing_settings SET auto_enabled = 0 WHERE space_id = ?', [spaceId]);
  },
};
