import type { Migration } from './migrate.ts';

/** Threads, their turns and messages, the turn log, and the rows of every multi-step operation. */
export const chat: Migration = {
  name: '0002-chat',
  async up({ sequelize }) {
    const statements = [
      `CREATE TABLE IF NOT EXISTS threads (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        title VARCHAR(300) NULL,
        active_turn_id VARCHAR(40) NULL,
        next_turn_ordinal INT UNSIGNED NOT NULL DEFAULT 1,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        deleted_at DATETIME(3) NULL,
        KEY threads_space_user (space_id, user_id, updated_at, id)
      )`,
      // The chat ids that clients make for themselves (useChat does), so that both names find one thread.
      `CREATE TABLE IF NOT EXISTS thread_aliases (
        user_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        alias VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        thread_id VARCHAR(40) NOT NULL,
        PRIMARY KEY (user_id, space_id, alias),
        KEY thread_aliases_thread (thread_id)
      )`,
      // next_seq, writer_epoch and terminal are the fence of the turn log: each append compares and moves them.
      `CREATE TABLE IF NOT EXISTS turns (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        thread_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        ordinal INT UNSIGNED NOT NULL,
        status ENUM('queued','running','waiting','completed','stopped','failed') NOT NULL,
        terminal TINYINT UNSIGNED NOT NULL DEFAULT 0,
        next_seq INT UNSIGNED NOT NULL DEFAULT 1,
        writer_epoch INT UNSIGNED NOT NULL DEFAULT 0,
        outbox_item_id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
        user_message_id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        assistant_message_id VARCHAR(40) NOT NULL,
        mode ENUM('ask','work') NOT NULL,
        model_id VARCHAR(200) NOT NULL,
        effort VARCHAR(40) NULL,
        notification_priority ENUM('low','default','high') NOT NULL,
        stop_requested_at DATETIME(3) NULL,
        finish_reason VARCHAR(20) NULL,
        error_code VARCHAR(80) NULL,
        error_detail VARCHAR(500) NULL,
        created_at DATETIME(3) NOT NULL,
        started_at DATETIME(3) NULL,
        ended_at DATETIME(3) NULL,
        log_purged_at DATETIME(3) NULL,
        UNIQUE KEY turns_outbox (user_id, outbox_item_id),
        UNIQUE KEY turns_thread_ordinal (thread_id, ordinal),
        KEY turns_space (space_id, terminal),
        KEY turns_sweep (terminal, status, created_at),
        KEY turns_log_purge (log_purged_at, ended_at)
      )`,
      // What the client said of its device, beside the hot row, which is rewritten with every append.
      `CREATE TABLE IF NOT EXISTS turn_contexts (
        turn_id VARCHAR(40) NOT NULL PRIMARY KEY,
        context MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
      )`,
      // One row per commit and turn: the chunks first_seq..last_seq, one JSON text a line.
      `CREATE TABLE IF NOT EXISTS turn_segments (
        turn_id VARCHAR(40) NOT NULL,
        first_seq INT UNSIGNED NOT NULL,
        last_seq INT UNSIGNED NOT NULL,
        writer_epoch INT UNSIGNED NOT NULL,
        chunks MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        PRIMARY KEY (turn_id, first_seq)
      )`,
      // One row per step of a turn: its model call, counted once however often it was tried.
      `CREATE TABLE IF NOT EXISTS model_calls (
        turn_id VARCHAR(40) NOT NULL,
        step INT UNSIGNED NOT NULL,
        attempts INT UNSIGNED NOT NULL,
        first_seq INT UNSIGNED NOT NULL,
        model_id VARCHAR(200) NOT NULL,
        status ENUM('started','completed','stopped') NOT NULL,
        finish_reason VARCHAR(20) NULL,
        input_tokens INT UNSIGNED NOT NULL DEFAULT 0,
        cached_input_tokens INT UNSIGNED NOT NULL DEFAULT 0,
        output_tokens INT UNSIGNED NOT NULL DEFAULT 0,
        reasoning_tokens INT UNSIGNED NOT NULL DEFAULT 0,
        started_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        PRIMARY KEY (turn_id, step)
      )`,
      // One row per tool call that a model made: its id makes running it twice harmless.
      `CREATE TABLE IF NOT EXISTS tool_calls (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        turn_id VARCHAR(40) NOT NULL,
        step INT UNSIGNED NOT NULL,
        tool_name VARCHAR(200) NOT NULL,
        input MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        status ENUM('pending','succeeded','failed') NOT NULL,
        created_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        KEY tool_calls_turn (turn_id, step)
      )`,
      `CREATE TABLE IF NOT EXISTS messages (
        thread_id VARCHAR(40) NOT NULL,
        turn_ordinal INT UNSIGNED NOT NULL,
        position TINYINT UNSIGNED NOT NULL,
        id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        turn_id VARCHAR(40) NOT NULL,
        role ENUM('user','assistant') NOT NULL,
        parts MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        metadata TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
        created_at DATETIME(3) NOT NULL,
        replaced_at DATETIME(3) NULL,
        PRIMARY KEY (thread_id, turn_ordinal, position),
        UNIQUE KEY messages_thread_id (thread_id, id)
      )`,
      `CREATE TABLE IF NOT EXISTS operations (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        kind VARCHAR(60) NOT NULL,
        space_id VARCHAR(40) NULL,
        user_id VARCHAR(40) NOT NULL,
        subject_id VARCHAR(40) NOT NULL,
        status ENUM('running','succeeded','failed','cancelled') NOT NULL,
        result TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
        error_code VARCHAR(80) NULL,
        error_detail VARCHAR(500) NULL,
        cancel_requested_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        KEY operations_sweep (status, created_at),
        KEY operations_subject (subject_id)
      )`,
      `CREATE TABLE IF NOT EXISTS idempotency_keys (
        caller VARCHAR(40) NOT NULL,
        operation VARCHAR(80) NOT NULL,
        idempotency_key VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        request_hash BINARY(32) NOT NULL,
        object_id VARCHAR(40) NOT NULL,
        response_status SMALLINT UNSIGNED NULL,
        response_body MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
        claimed_at DATETIME(3) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (caller, operation, idempotency_key),
        KEY idempotency_keys_created (created_at)
      )`,
    ];
    for (const statement of statements) await sequelize.query(statement);
  },
};
