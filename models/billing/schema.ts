import type { AreaSchema } from '../database/areaSchema.ts';
import { execute } from '../database/sql.ts';
import { initialTables } from '../migrations/migration.ts';

const books = 'Books are kept, whatever becomes of a space: what was paid, spent and given back must stay explainable.';

/**
 * The ledger, holds and payments. Books are kept when their space is deleted. Amounts are in micro-credits, those of
 * payments in minor units of the currency.
 */
const initial = initialTables(
  'billing',
  [
    // The balance of each account, derived from the ledger. Every posting locks this row. `atrium billing check` compares
    // both.
    `CREATE TABLE IF NOT EXISTS billing_balances (
      space_id VARCHAR(40) NOT NULL PRIMARY KEY,
      available BIGINT NOT NULL DEFAULT 0, -- uses: where the credits of the space are or went
      reserved BIGINT NOT NULL DEFAULT 0,
      spent BIGINT NOT NULL DEFAULT 0,
      expired BIGINT NOT NULL DEFAULT 0,
      sent BIGINT NOT NULL DEFAULT 0,
      granted BIGINT NOT NULL DEFAULT 0, -- sources: where its credits came from
      paid BIGINT NOT NULL DEFAULT 0,
      received BIGINT NOT NULL DEFAULT 0,
      debt BIGINT NOT NULL DEFAULT 0, -- taken back after it was spent
      unbilled BIGINT NOT NULL DEFAULT 0, -- used while credits were not enforced
      opened_at DATETIME(3) NOT NULL,
      low_since DATETIME(3) NULL, -- set while the balance is low
      KEY billing_balances_low (low_since),
      CONSTRAINT billing_balances_positive CHECK (available >= 0 AND reserved >= 0 AND spent >= 0 AND expired >= 0 AND
        sent >= 0 AND granted >= 0 AND paid >= 0 AND received >= 0 AND debt >= 0 AND unbilled >= 0),
      CONSTRAINT billing_balances_equal CHECK (available + reserved + spent + expired + sent = granted + paid +
        received + debt + unbilled)
    )`,
    // The ledger. Triggers refuse changes and deletions (ledgerTriggers.ts).
    `CREATE TABLE IF NOT EXISTS ledger_transactions (
      id VARCHAR(40) NOT NULL PRIMARY KEY,
      source_id VARCHAR(255) NOT NULL, -- the event that it records, unique for ever
      kind VARCHAR(20) NOT NULL,
      space_id VARCHAR(40) NOT NULL,
      user_id VARCHAR(40) NULL,
      turn_id VARCHAR(40) NULL,
      detail VARCHAR(200) NULL, -- a few words for people
      created_at DATETIME(3) NOT NULL,
      UNIQUE KEY ledger_transactions_source (source_id)
    )`,
    `CREATE TABLE IF NOT EXISTS ledger_entries (
      transaction_id VARCHAR(40) NOT NULL,
      position TINYINT UNSIGNED NOT NULL,
      space_id VARCHAR(40) NOT NULL,
      account VARCHAR(20) NOT NULL,
      amount BIGINT NOT NULL, -- in micro-credits
      balance_after BIGINT NOT NULL, -- in micro-credits
      PRIMARY KEY (transaction_id, position),
      KEY ledger_entries_space (space_id, transaction_id)
    )`,
    // Credits that came in, and how much of each is left.
    `CREATE TABLE IF NOT EXISTS billing_grants (
      id VARCHAR(40) NOT NULL PRIMARY KEY,
      space_id VARCHAR(40) NOT NULL,
      source_id VARCHAR(255) NOT NULL, -- the ledger transaction that brought them
      priority SMALLINT UNSIGNED NOT NULL, -- the lowest is used up first
      amount BIGINT NOT NULL,
      remaining BIGINT NOT NULL,
      expires_at DATETIME(3) NULL,
      created_at DATETIME(3) NOT NULL,
      UNIQUE KEY billing_grants_source (source_id),
      KEY billing_grants_burn (space_id, remaining),
      KEY billing_grants_expiry (expires_at, remaining),
      CONSTRAINT billing_grants_bounds CHECK (remaining >= 0 AND remaining <= amount)
    )`,
    // Money that went back to the payer or is in dispute: together never more than the payment.
    `CREATE TABLE IF NOT EXISTS billing_reversals (
      source_id VARCHAR(255) NOT NULL PRIMARY KEY,
      payment_source_id VARCHAR(255) NOT NULL,
      kind ENUM('refund','dispute') NOT NULL,
      amount BIGINT NOT NULL,
      returned TINYINT UNSIGNED NOT NULL, -- 1 if the refund failed or the dispute was won
      created_at DATETIME(3) NOT NULL,
      KEY billing_reversals_payment (payment_source_id)
    )`,
    // Credits set aside for one model call.
    `CREATE TABLE IF NOT EXISTS billing_holds (
      id VARCHAR(80) NOT NULL PRIMARY KEY, -- <turn>:<step>
      space_id VARCHAR(40) NOT NULL,
      user_id VARCHAR(40) NOT NULL,
      turn_id VARCHAR(40) NULL,
      model_id VARCHAR(200) NOT NULL,
      amount BIGINT NOT NULL, -- the amount set aside; it grows with the answer
      held BIGINT NOT NULL, -- the part of it that is reserved in the ledger
      cost BIGINT NOT NULL DEFAULT 0, -- what the call cost in the end
      parts TEXT NOT NULL, -- JSON: the grants that it takes from
      input_tokens INT UNSIGNED NOT NULL,
      revision INT UNSIGNED NOT NULL, -- counts its changes
      status ENUM('open','settled','released') NOT NULL,
      day DATE NOT NULL, -- the day (UTC) whose caps it counts to
      created_at DATETIME(3) NOT NULL,
      ended_at DATETIME(3) NULL,
      KEY billing_holds_turn (turn_id),
      KEY billing_holds_sweep (status, created_at),
      KEY billing_holds_day (space_id, day, user_id, status, amount, cost)
    )`,
    // Typical sizes of calls, for the hold of the next one.
    `CREATE TABLE IF NOT EXISTS billing_call_sizes (
      space_id VARCHAR(40) NOT NULL,
      model_id VARCHAR(200) NOT NULL,
      kind ENUM('ask','work','aside') NOT NULL, -- aside: calls beside the steps of a turn
      base_tokens INT UNSIGNED NOT NULL, -- the prompt without its messages
      output_micro BIGINT NULL, -- what an answer costs on average
      PRIMARY KEY (space_id, model_id, kind)
    )`,
    // What the calls of a day cost; running calls count with the most that they may cost.
    `CREATE TABLE IF NOT EXISTS billing_day_use (
      space_id VARCHAR(40) NOT NULL,
      day DATE NOT NULL,
      user_id VARCHAR(40) NOT NULL, -- empty for the sum of all members
      micro BIGINT NOT NULL,
      PRIMARY KEY (space_id, day, user_id),
      KEY billing_day_use_purge (day)
    )`,
    // The payment customer of a space, its caps and its automatic top-up.
    `CREATE TABLE IF NOT EXISTS billing_settings (
      space_id VARCHAR(40) NOT NULL PRIMARY KEY,
      status ENUM('none','settingUp','ready') NOT NULL DEFAULT 'none',
      customer_id VARCHAR(255) NULL,
      initial_credits BIGINT NOT NULL DEFAULT 0, -- what the space got when it was set up
      set_up_by VARCHAR(40) NULL,
      operation_id VARCHAR(40) NULL,
      cap_per_turn BIGINT NULL,
      cap_per_day BIGINT NULL,
      cap_per_member_per_day BIGINT NULL,
      auto_enabled TINYINT UNSIGNED NOT NULL DEFAULT 0,
      auto_threshold BIGINT NULL,
      auto_amount_minor BIGINT NULL,
      auto_monthly_limit_minor BIGINT NULL,
      auto_user_id VARCHAR(40) NULL,
      auto_failed_at DATETIME(3) NULL,
      created_at DATETIME(3) NOT NULL,
      KEY billing_settings_user (set_up_by),
      KEY billing_settings_auto (auto_enabled)
    )`,
    // Payments of spaces, from their beginning.
    `CREATE TABLE IF NOT EXISTS billing_checkouts (
      id VARCHAR(40) NOT NULL PRIMARY KEY,
      kind ENUM('topUp','autoTopUp') NOT NULL,
      space_id VARCHAR(40) NOT NULL,
      user_id VARCHAR(40) NOT NULL,
      -- mispaid: another amount was paid than asked
      status ENUM('creating','open','processing','paid','failed','expired','cancelled','mispaid') NOT NULL,
      amount_minor BIGINT NOT NULL,
      currency CHAR(3) NOT NULL,
      micro_credits BIGINT NOT NULL,
      provider VARCHAR(20) NOT NULL,
      session_id VARCHAR(255) NULL, -- the provider's checkout
      payment_id VARCHAR(255) NULL,
      url TEXT NULL,
      return_url TEXT NULL, -- where the browser goes after paying
      operation_id VARCHAR(40) NOT NULL,
      created_at DATETIME(3) NOT NULL,
      expires_at DATETIME(3) NOT NULL,
      ended_at DATETIME(3) NULL,
      UNIQUE KEY billing_checkouts_session (session_id),
      UNIQUE KEY billing_checkouts_payment (payment_id),
      KEY billing_checkouts_space (space_id, created_at),
      KEY billing_checkouts_list (space_id, id)
    )`,
    // Every notification of the payment provider, by the provider's id. So repeats are recognized for ever.
    `CREATE TABLE IF NOT EXISTS payment_events (
      id VARCHAR(190) NOT NULL PRIMARY KEY,
      provider VARCHAR(20) NOT NULL,
      type VARCHAR(100) NOT NULL,
      payload MEDIUMTEXT NOT NULL,
      status ENUM('received','settled') NOT NULL,
      outcome VARCHAR(40) NULL, -- what it led to
      received_at DATETIME(3) NOT NULL,
      settled_at DATETIME(3) NULL,
      KEY payment_events_sweep (status, received_at)
    )`,
    // Differences that reconciliation cannot explain, for the operator.
    `CREATE TABLE IF NOT EXISTS payment_findings (
      subject_id VARCHAR(190) NOT NULL PRIMARY KEY,
      finding VARCHAR(40) NOT NULL,
      found_at DATETIME(3) NOT NULL
    )`,
    // Payments of the built-in development provider.
    `CREATE TABLE IF NOT EXISTS development_payments (
      session_id VARCHAR(80) NOT NULL PRIMARY KEY,
      payment_id VARCHAR(80) NOT NULL,
      checkout_id VARCHAR(40) NOT NULL,
      space_id VARCHAR(40) NOT NULL,
      amount_minor BIGINT NOT NULL,
      currency CHAR(3) NOT NULL,
      status ENUM('open','complete','expired') NOT NULL,
      payment_status ENUM('unpaid','paid') NOT NULL,
      success_url TEXT NOT NULL,
      cancel_url TEXT NOT NULL,
      created_at DATETIME(3) NOT NULL,
      expires_at DATETIME(3) NOT NULL,
      UNIQUE KEY development_payments_payment (payment_id),
      UNIQUE KEY development_payments_checkout (checkout_id),
      KEY development_payments_created (created_at)
    )`,
    // Rows to lock, and values that all processes share.
    `CREATE TABLE IF NOT EXISTS billing_state (
      name VARCHAR(60) NOT NULL PRIMARY KEY,
      value VARCHAR(255) NOT NULL
    )`,
  ],
  [
    "INSERT IGNORE INTO billing_state (name, value) VALUES ('initialCredits', ''), ('developmentSecret', HEX(RANDOM_BYTES(32)))",
  ],
);

export const billingSchema: AreaSchema = {
  initial,
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
    await execute(database.pool, 'UPDATE billing_settings SET auto_enabled = 0 WHERE space_id = ?', [spaceId]);
  },
};
