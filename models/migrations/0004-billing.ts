import type { QueryInterface } from 'sequelize';
import type { Migration } from './migrate.ts';

const table = 'DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const micro = 'BIGINT NOT NULL DEFAULT 0';

/**
 * The ledger, what is set aside and for what, and what was bought. Nothing here goes with its space: books are kept.
 */
export const billing: Migration = {
  name: '0004-billing',
  async up(queryInterface) {
    const { sequelize } = queryInterface;
    const statements = [
      // The derived balances, in the row that everybody who posts holds locked. `atrium billing check` compares them.
      `CREATE TABLE IF NOT EXISTS billing_balances (
        space_id VARCHAR(40) NOT NULL PRIMARY KEY,
        available ${micro}, reserved ${micro}, spent ${micro}, expired ${micro}, sent ${micro},
        granted ${micro}, paid ${micro}, received ${micro}, debt ${micro}, unbilled ${micro},
        opened_at DATETIME(3) NOT NULL,
        low_since DATETIME(3) NULL,
        CONSTRAINT billing_balances_positive CHECK (available >= 0 AND reserved >= 0 AND spent >= 0 AND expired >= 0
          AND sent >= 0 AND granted >= 0 AND paid >= 0 AND received >= 0 AND debt >= 0 AND unbilled >= 0),
        CONSTRAINT billing_balances_equal
          CHECK (available + reserved + spent + expired + sent = granted + paid + received + debt + unbilled)
      ) ${table}`,
      `CREATE TABLE IF NOT EXISTS ledger_transactions (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        source_id VARCHAR(255) NOT NULL,
        kind VARCHAR(20) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NULL,
        turn_id VARCHAR(40) NULL,
        detail VARCHAR(200) NULL,
        created_at DATETIME(3) NOT NULL,
        UNIQUE KEY ledger_transactions_source (source_id)
      ) ${table}`,
      `CREATE TABLE IF NOT EXISTS ledger_entries (
        transaction_id VARCHAR(40) NOT NULL,
        position TINYINT UNSIGNED NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        account VARCHAR(20) NOT NULL,
        amount BIGINT NOT NULL,
        balance_after BIGINT NOT NULL,
        PRIMARY KEY (transaction_id, position),
        KEY ledger_entries_space (space_id, transaction_id)
      ) ${table}`,
      `CREATE TABLE IF NOT EXISTS billing_grants (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        source_id VARCHAR(255) NOT NULL,
        priority SMALLINT UNSIGNED NOT NULL,
        amount BIGINT NOT NULL,
        remaining BIGINT NOT NULL,
        expires_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        UNIQUE KEY billing_grants_source (source_id),
        KEY billing_grants_burn (space_id, remaining),
        KEY billing_grants_expiry (expires_at, remaining),
        CONSTRAINT billing_grants_bounds CHECK (remaining >= 0 AND remaining <= amount)
      ) ${table}`,
      // What the payer got back, or has in dispute: together never more of a payment than it brought.
      `CREATE TABLE IF NOT EXISTS billing_reversals (
        source_id VARCHAR(255) NOT NULL PRIMARY KEY,
        payment_source_id VARCHAR(255) NOT NULL,
        kind ENUM('refund','dispute') NOT NULL,
        amount BIGINT NOT NULL,
        returned TINYINT UNSIGNED NOT NULL,
        created_at DATETIME(3) NOT NULL,
        KEY billing_reversals_payment (payment_source_id)
      ) ${table}`,
      `CREATE TABLE IF NOT EXISTS billing_holds (
        id VARCHAR(80) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        turn_id VARCHAR(40) NULL,
        model_id VARCHAR(200) NOT NULL,
        amount BIGINT NOT NULL,
        held BIGINT NOT NULL,
        cost ${micro},
        parts TEXT NOT NULL,
        input_tokens INT UNSIGNED NOT NULL,
        revision INT UNSIGNED NOT NULL,
        status ENUM('open','settled','released') NOT NULL,
        day DATE NOT NULL,
        created_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        KEY billing_holds_turn (turn_id),
        KEY billing_holds_sweep (status, created_at),
        KEY billing_holds_day (space_id, day, user_id, status, amount, cost)
      ) ${table}`,
      `CREATE TABLE IF NOT EXISTS billing_settings (
        space_id VARCHAR(40) NOT NULL PRIMARY KEY,
        status ENUM('none','settingUp','ready') NOT NULL DEFAULT 'none',
        customer_id VARCHAR(255) NULL,
        initial_credits ${micro},
        set_up_by VARCHAR(40) NULL,
        operation_id VARCHAR(40) NULL,
        cap_per_turn BIGINT NULL, cap_per_day BIGINT NULL, cap_per_member_per_day BIGINT NULL,
        auto_enabled TINYINT UNSIGNED NOT NULL DEFAULT 0,
        auto_threshold BIGINT NULL,
        auto_amount_minor BIGINT NULL,
        auto_monthly_limit_minor BIGINT NULL,
        auto_user_id VARCHAR(40) NULL,
        auto_failed_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        KEY billing_settings_user (set_up_by),
        KEY billing_settings_auto (auto_enabled)
      ) ${table}`,
      `CREATE TABLE IF NOT EXISTS billing_checkouts (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        kind ENUM('topUp','autoTopUp') NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        status ENUM('creating','open','processing','paid','failed','expired','cancelled') NOT NULL,
        amount_minor BIGINT NOT NULL,
        currency CHAR(3) NOT NULL,
        micro_credits BIGINT NOT NULL,
        provider VARCHAR(20) NOT NULL,
        session_id VARCHAR(255) NULL,
        payment_id VARCHAR(255) NULL,
        url TEXT NULL,
        operation_id VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        UNIQUE KEY billing_checkouts_session (session_id),
        UNIQUE KEY billing_checkouts_payment (payment_id),
        KEY billing_checkouts_space (space_id, created_at)
      ) ${table}`,
      // Every notification that the provider has ever sent, by its own id: that is what makes a repeat known for ever.
      `CREATE TABLE IF NOT EXISTS payment_events (
        id VARCHAR(190) NOT NULL PRIMARY KEY,
        provider VARCHAR(20) NOT NULL,
        type VARCHAR(100) NOT NULL,
        payload MEDIUMTEXT NOT NULL,
        status ENUM('received','settled') NOT NULL,
        outcome VARCHAR(40) NULL,
        received_at DATETIME(3) NOT NULL,
        settled_at DATETIME(3) NULL,
        KEY payment_events_sweep (status, received_at)
      ) ${table}`,
      // What reconciliation cannot explain, for the operator.
      `CREATE TABLE IF NOT EXISTS payment_findings (
        subject_id VARCHAR(190) NOT NULL PRIMARY KEY,
        finding VARCHAR(40) NOT NULL,
        found_at DATETIME(3) NOT NULL
      ) ${table}`,
      `CREATE TABLE IF NOT EXISTS development_payments (
        session_id VARCHAR(80) NOT NULL PRIMARY KEY,
        payment_id VARCHAR(80) NOT NULL,
        checkout_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        amount_minor BIGINT NOT NULL,
        currency CHAR(3) NOT NULL,
        status ENUM('open','complete','expired') NOT NULL,
        payment_status ENUM('unpaid','paid') NOT NULL,
        refunds TEXT NOT NULL,
        success_url TEXT NOT NULL,
        cancel_url TEXT NOT NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        UNIQUE KEY development_payments_payment (payment_id),
        UNIQUE KEY development_payments_checkout (checkout_id),
        KEY development_payments_created (created_at)
      ) ${table}`,
      // Rows to lock, and values that all processes share.
      `CREATE TABLE IF NOT EXISTS billing_state (
        name VARCHAR(60) NOT NULL PRIMARY KEY,
        value VARCHAR(255) NOT NULL
      ) ${table}`,
      "INSERT IGNORE INTO billing_state (name, value) VALUES ('initialCredits', ''), ('developmentSecret', HEX(RANDOM_BYTES(32)))",
    ];
    for (const statement of statements) await sequelize.query(statement);
    for (const name of ['ledger_transactions', 'ledger_entries']) await keepAppendOnly(queryInterface, name);
  },
};

const triggersNotAllowed = 1419; // binary logging is on, and the user may not make triggers

/**
 * Refuses changes to what is written. Where the database does not let us, no statement of ours does it, and the check
 * would see it.
 */
async function keepAppendOnly({ sequelize }: QueryInterface, name: string): Promise<void> {
  for (const change of ['UPDATE', 'DELETE']) {
    const trigger = `${name}_no_${change.toLowerCase()}`;
    await sequelize.query(`DROP TRIGGER IF EXISTS ${trigger}`);
    try {
      await sequelize.query(
        `CREATE TRIGGER ${trigger} BEFORE ${change} ON ${name} FOR EACH ROW
           SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'The ledger is append-only'`,
      );
    } catch (error) {
      if ((error as { parent?: { errno?: number } }).parent?.errno !== triggersNotAllowed) throw error;
    }
  }
}
