import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Threads, their turns and messages, the turn log, and the search index. */
const initial = initialTables('chat', [
  `CREATE TABLE IF NOT EXISTS threads (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    user_id VARCHAR(40) NOT NULL,
    title VARCHAR(300) NULL, -- NULL until it has one
    forked_from VARCHAR(40) NULL, -- the thread that this one is a copy of
    active_turn_id VARCHAR(40) NULL, -- the turn that runs or waits; one at a time
    next_turn_ordinal INT UNSIGNED NOT NULL DEFAULT 1,
    words_due TINYINT UNSIGNED NOT NULL DEFAULT 1, -- 1 until the search index has the title
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NULL, -- NULL for threads that are kept
    deleted_at DATETIME(3) NULL,
    KEY threads_space_user (space_id, user_id, updated_at, id),
    KEY threads_words (words_due, id),
    KEY threads_expires (expires_at, id)
  )`,
  // Ids that clients made for their chats (useChat does). Both names find one thread.
  `CREATE TABLE IF NOT EXISTS thread_aliases (
    user_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    alias VARCHAR(200) NOT NULL,
    thread_id VARCHAR(40) NOT NULL,
    PRIMARY KEY (user_id, space_id, alias),
    KEY thread_aliases_thread (thread_id)
  )`,
  // Links by which anybody may read a thread.
  `CREATE TABLE IF NOT EXISTS thread_shares (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    thread_id VARCHAR(40) NOT NULL,
    api_key_id VARCHAR(40) NULL,
    token_hash BINARY(32) NULL, -- SHA-256 of the token in the link
    up_to_ordinal INT UNSIGNED NULL, -- the last turn that it shows; NULL for all, also later ones
    tool_calls TINYINT UNSIGNED NOT NULL, -- 1 if it shows them
    file_names TINYINT UNSIGNED NOT NULL, -- 1 if it shows them
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NULL, -- NULL for a link without an end
    UNIQUE KEY thread_shares_token (token_hash),
    KEY thread_shares_thread (thread_id, id)
  )`,
  // A summary stands for its thread up to a turn, in prompts only. The messages stay as they are.
  `CREATE TABLE IF NOT EXISTS thread_summaries (
    thread_id VARCHAR(40) NOT NULL,
    up_to_ordinal INT UNSIGNED NOT NULL,
    turn_id VARCHAR(40) NOT NULL, -- the turn that wrote it
    model_id VARCHAR(200) NOT NULL,
    summary MEDIUMTEXT NOT NULL,
    created_at DATETIME(3) NOT NULL,
    PRIMARY KEY (thread_id, up_to_ordinal),
    KEY thread_summaries_turn (turn_id)
  )`,
  `CREATE TABLE IF NOT EXISTS messages (
    thread_id VARCHAR(40) NOT NULL,
    turn_ordinal INT UNSIGNED NOT NULL,
    position TINYINT UNSIGNED NOT NULL, -- 0 is the user message, 1 the answer
    id VARCHAR(200) NOT NULL,
    turn_id VARCHAR(40) NOT NULL,
    role ENUM('user','assistant') NOT NULL,
    parts MEDIUMTEXT NOT NULL, -- JSON
    pieces INT UNSIGNED NOT NULL DEFAULT 0, -- how many answer_pieces hold the parts; 0 if they are in this row
    metadata TEXT NULL, -- JSON
    words_due TINYINT UNSIGNED NOT NULL DEFAULT 1, -- 1 until the search index has the text
    created_at DATETIME(3) NOT NULL,
    replaced_at DATETIME(3) NULL, -- set when a later turn replaced the message
    PRIMARY KEY (thread_id, turn_ordinal, position),
    UNIQUE KEY messages_thread_id (thread_id, id),
    KEY messages_words (words_due, thread_id, turn_ordinal, position)
  )`,
  // The parts of an answer that is too long for one row or one packet.
  `CREATE TABLE IF NOT EXISTS answer_pieces (
    turn_id VARCHAR(40) NOT NULL,
    piece INT UNSIGNED NOT NULL,
    parts MEDIUMTEXT NOT NULL, -- JSON
    PRIMARY KEY (turn_id, piece)
  )`,
  // next_seq, writer_epoch and terminal are the fence of the turn log: each append compares and changes them.
  `CREATE TABLE IF NOT EXISTS turns (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    thread_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    user_id VARCHAR(40) NOT NULL,
    api_key_id VARCHAR(40) NULL, -- NULL for a person who is signed in
    scopes TEXT NULL, -- JSON list of what that key may do; NULL for a person
    ordinal INT UNSIGNED NOT NULL, -- position in the thread, from 1
    status ENUM('queued','running','waiting','completed','stopped','failed') NOT NULL,
    terminal TINYINT UNSIGNED NOT NULL DEFAULT 0, -- 1 once the turn has ended
    next_seq INT UNSIGNED NOT NULL DEFAULT 1, -- number of the next chunk of its log
    writer_epoch INT UNSIGNED NOT NULL DEFAULT 0, -- which writer may append to the log
    outbox_item_id VARCHAR(200) NULL, -- the client's id for the message, against duplicates
    outbox_hash BINARY(32) NULL, -- SHA-256 of what that message said
    user_message_id VARCHAR(200) NOT NULL,
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
    log_purged_at DATETIME(3) NULL, -- when its turn_segments were deleted
    UNIQUE KEY turns_outbox (user_id, outbox_item_id),
    UNIQUE KEY turns_thread_ordinal (thread_id, ordinal),
    KEY turns_space (space_id, terminal),
    KEY turns_sweep (terminal, status, created_at),
    KEY turns_log_purge (log_purged_at, ended_at)
  )`,
  // What the client said about its device. It is not in turns, whose rows each append rewrites.
  `CREATE TABLE IF NOT EXISTS turn_contexts (
    turn_id VARCHAR(40) NOT NULL PRIMARY KEY,
    context MEDIUMTEXT NOT NULL -- JSON
  )`,
  // The turn log. One row per commit: the chunks first_seq to last_seq.
  `CREATE TABLE IF NOT EXISTS turn_segments (
    turn_id VARCHAR(40) NOT NULL,
    first_seq INT UNSIGNED NOT NULL,
    last_seq INT UNSIGNED NOT NULL,
    writer_epoch INT UNSIGNED NOT NULL,
    chunks MEDIUMTEXT NOT NULL, -- one JSON text per line
    PRIMARY KEY (turn_id, first_seq)
  )`,
  // One row per step of a turn: its model call, counted once however often it was tried.
  `CREATE TABLE IF NOT EXISTS model_calls (
    turn_id VARCHAR(40) NOT NULL,
    step INT UNSIGNED NOT NULL,
    attempts INT UNSIGNED NOT NULL,
    cuts INT UNSIGNED NOT NULL DEFAULT 0, -- attempts whose process or connection ended while they were answering
    failed_attempt INT UNSIGNED NOT NULL DEFAULT 0, -- the last attempt that ended by itself with a failure
    first_seq INT UNSIGNED NOT NULL, -- where in the turn log the step begins
    model_id VARCHAR(200) NOT NULL,
    status ENUM('started','completed','stopped') NOT NULL,
    finish_reason VARCHAR(20) NULL,
    held_until DATETIME(3) NULL, -- until then the process that accepted the message makes the call
    left_as JSON NULL, -- how the first attempt ended, for the worker that takes the step over
    input_tokens INT UNSIGNED NOT NULL DEFAULT 0,
    cached_input_tokens INT UNSIGNED NOT NULL DEFAULT 0,
    output_tokens INT UNSIGNED NOT NULL DEFAULT 0,
    reasoning_tokens INT UNSIGNED NOT NULL DEFAULT 0,
    started_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    PRIMARY KEY (turn_id, step)
  )`,
  // One row per tool call of a model. Its id makes running it twice harmless.
  `CREATE TABLE IF NOT EXISTS tool_calls (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    turn_id VARCHAR(40) NOT NULL,
    step INT UNSIGNED NOT NULL,
    tool_name VARCHAR(200) NOT NULL,
    input MEDIUMTEXT NOT NULL, -- JSON
    scopes TEXT NULL, -- JSON list of the scopes that an API key needs to approve it
    target TEXT NULL, -- JSON: what it reached when it was recorded; it runs only while it still does
    status ENUM('pending','succeeded','failed') NOT NULL,
    waits_for VARCHAR(20) NOT NULL DEFAULT 'nothing', -- who must answer it
    deadline_at DATETIME(3) NULL, -- until when they may answer
    asked_seq INT UNSIGNED NULL, -- last chunk of the answer that asked; the reply continues after it
    decision VARCHAR(10) NULL, -- approved or denied
    answered_at DATETIME(3) NULL,
    begun_at DATETIME(3) NULL, -- since then its effects may have happened
    effect MEDIUMTEXT NULL, -- JSON: its recorded result
    control TEXT NULL, -- JSON: when it controlled the desktop that it typed on
    created_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    KEY tool_calls_turn (turn_id, step)
  )`,
  // Requests by OpenAI's API. A repeated request, or one that continues an answer, finds its turn here.
  `CREATE TABLE IF NOT EXISTS completion_requests (
    turn_id VARCHAR(40) NOT NULL PRIMARY KEY,
    user_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    request_hash BINARY(32) NOT NULL, -- SHA-256 of everything that it asks
    conversation_hash BINARY(32) NOT NULL, -- SHA-256 of the conversation up to and including it
    created_at DATETIME(3) NOT NULL,
    delivered_at DATETIME(3) NULL, -- when the client had the whole answer
    KEY completion_requests_request (user_id, request_hash, turn_id),
    KEY completion_requests_conversation (user_id, space_id, conversation_hash, turn_id)
  )`,
  // A number for each text in the search index. The title of a thread has an empty message_id.
  `CREATE TABLE IF NOT EXISTS thread_texts (
    number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    thread_id VARCHAR(40) NOT NULL,
    message_id VARCHAR(200) NOT NULL,
    UNIQUE KEY thread_texts_message (thread_id, message_id)
  )`,
  // The words of titles and messages.
  `CREATE TABLE IF NOT EXISTS thread_words (
    owner BINARY(8) NOT NULL, -- hash of the space and the thread's owner
    word VARBINARY(64) NOT NULL,
    text_number BIGINT UNSIGNED NOT NULL,
    fields TINYINT UNSIGNED NOT NULL, -- 1 title, 2 message, 3 both
    PRIMARY KEY (owner, word, text_number DESC),
    KEY thread_words_text (text_number, word)
  )`,
  // Settings of a space. A limit of NULL is that of the installation or the model.
  `CREATE TABLE IF NOT EXISTS chat_settings (
    space_id VARCHAR(40) NOT NULL PRIMARY KEY,
    system_prompt MEDIUMTEXT NULL,
    default_model_id VARCHAR(200) NULL,
    max_steps_per_turn INT UNSIGNED NULL,
    max_output_tokens INT UNSIGNED NULL,
    max_context_tokens INT UNSIGNED NULL,
    updated_by VARCHAR(40) NOT NULL,
    updated_at DATETIME(3) NOT NULL
  )`,
]);

export const chatSchema: AreaSchema = {
  initial,
  ofTurn: ['turn_segments', 'answer_pieces', 'turn_contexts', 'model_calls', 'tool_calls', 'completion_requests'],
  ofThread: ['messages', 'thread_summaries', 'thread_aliases', 'thread_shares'],
  ofSpace: ['chat_settings'],
  own: ['threads', 'turns', 'thread_texts', 'thread_words'],
};
