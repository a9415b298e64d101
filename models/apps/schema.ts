import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Apps, their versions, runs, webhooks and schedules. */
const initial = initialTables('apps', [
  // Folders and repositories of the drive that are apps.
  `CREATE TABLE IF NOT EXISTS apps (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    item_id VARCHAR(40) NOT NULL,
    live TINYINT UNSIGNED NULL, -- 1, or NULL for a removed app whose rows are still to go
    space_id VARCHAR(40) NOT NULL,
    computer_id VARCHAR(40) NULL, -- where its components run; NULL for the default computer
    manifest MEDIUMTEXT NOT NULL, -- JSON: of the version in use
    manifest_tag VARCHAR(100) NOT NULL, -- names the bytes that manifest or problem was read from
    problem MEDIUMTEXT NULL, -- JSON: why the present manifest cannot be used
    version_id VARCHAR(40) NULL, -- the version in use
    waiting_id VARCHAR(40) NULL, -- the version that waits for approval
    -- the last version in use that had no change of an author without all rights; reviewers compare with it
    base_id VARCHAR(40) NULL,
    -- 1 while the waiting version is in a working tree, where nothing else can run
    tree_waits TINYINT UNSIGNED NOT NULL DEFAULT 0,
    runs_as VARCHAR(40) NULL, -- the user who took the version into use; its runs have their rights
    api_key_id VARCHAR(40) NULL,
    scopes TEXT NULL, -- JSON list
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    removed_at DATETIME(3) NULL,
    UNIQUE KEY apps_item (item_id, live),
    KEY apps_space (space_id, live, id),
    KEY apps_removed (removed_at, id)
  )`,
  // Versions of an app, in use or waiting for approval.
  `CREATE TABLE IF NOT EXISTS app_versions (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    app_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    state VARCHAR(20) NOT NULL,
    content_hash CHAR(64) NOT NULL,
    manifest MEDIUMTEXT NOT NULL, -- JSON
    manifest_tag VARCHAR(100) NOT NULL,
    files LONGTEXT NULL, -- JSON: files of a folder by path; NULL for a repository
    authors MEDIUMTEXT NOT NULL, -- JSON: whose changes it contains
    reasons MEDIUMTEXT NOT NULL, -- JSON: why it waits
    user_id VARCHAR(40) NULL, -- who took it into use, with api_key_id and scopes
    api_key_id VARCHAR(40) NULL,
    scopes TEXT NULL, -- JSON list
    created_at DATETIME(3) NOT NULL,
    decided_by VARCHAR(40) NULL,
    decided_at DATETIME(3) NULL,
    KEY app_versions_app (app_id, id),
    KEY app_versions_space (space_id)
  )`,
  // Authors who have changed an app since its version in use, and limited authors of that version.
  `CREATE TABLE IF NOT EXISTS app_changes (
    id VARCHAR(130) NOT NULL PRIMARY KEY,
    app_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    user_id VARCHAR(40) NULL,
    api_key_id VARCHAR(40) NULL,
    scopes TEXT NULL, -- JSON list
    turn_id VARCHAR(40) NULL,
    number INT UNSIGNED NOT NULL, -- counts their changes
    unseen TINYINT UNSIGNED NULL, -- 1 until the app was checked after the last change, then NULL
    -- 1 if the version in use has changes of this author, who may not do all that an app can need
    taken TINYINT UNSIGNED NULL,
    changed_at DATETIME(3) NOT NULL,
    KEY app_changes_app (app_id, changed_at, id),
    KEY app_changes_unseen (unseen, changed_at, id),
    KEY app_changes_space (space_id)
  )`,
  // Runs of components of apps: ended, running and waiting.
  `CREATE TABLE IF NOT EXISTS app_runs (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    app_id VARCHAR(40) NOT NULL,
    item_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    component VARCHAR(63) NOT NULL,
    spec MEDIUMTEXT NOT NULL, -- JSON: its component as it was when the run was asked for
    trigger_kind VARCHAR(20) NOT NULL,
    trigger_key VARCHAR(200) NULL, -- what caused it; nothing causes two runs
    delivery_id VARCHAR(40) NULL,
    user_id VARCHAR(40) NOT NULL,
    api_key_id VARCHAR(40) NULL,
    scopes TEXT NULL, -- JSON list
    status VARCHAR(20) NOT NULL,
    active TINYINT UNSIGNED NULL, -- 1 until it has ended, then NULL
    waits_for_space TINYINT UNSIGNED NULL, -- 1 if it waits for other runs of its space to end
    attempt INT UNSIGNED NOT NULL, -- counts the starts
    is_started TINYINT UNSIGNED NOT NULL, -- 1 once the process of this attempt is known to run
    retry_at DATETIME(3) NULL, -- when the next attempt begins
    exit_code INT NULL,
    end_signal VARCHAR(40) NULL,
    error_code VARCHAR(80) NULL,
    error_detail VARCHAR(500) NULL,
    output MEDIUMTEXT NULL, -- the beginning and the end of what it printed
    cancel_requested_at DATETIME(3) NULL,
    created_at DATETIME(3) NOT NULL,
    started_at DATETIME(3) NULL,
    ended_at DATETIME(3) NULL,
    UNIQUE KEY app_runs_trigger (app_id, trigger_key),
    KEY app_runs_app (app_id, id),
    KEY app_runs_component (app_id, component, status, id),
    KEY app_runs_active (active, created_at, id),
    KEY app_runs_ended (ended_at, id),
    KEY app_runs_space (space_id, status, id),
    KEY app_runs_waiting (space_id, waits_for_space, id),
    KEY app_runs_delivery (delivery_id, active)
  )`,
  // Attempts of runs: how each went, and where its log is.
  `CREATE TABLE IF NOT EXISTS app_run_attempts (
    run_id VARCHAR(40) NOT NULL,
    attempt INT UNSIGNED NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    began_at DATETIME(3) NOT NULL, -- when its turn came
    taken_at DATETIME(3) NULL, -- when a worker took it; its time counts from here
    awake_at DATETIME(3) NULL, -- when its computer ran
    woke TINYINT UNSIGNED NULL, -- 1 if the computer had to be woken
    started_at DATETIME(3) NULL, -- when its process was known to run
    ended_at DATETIME(3) NULL,
    status VARCHAR(20) NULL,
    exit_code INT NULL,
    end_signal VARCHAR(40) NULL,
    error_code VARCHAR(80) NULL,
    error_detail VARCHAR(500) NULL,
    log_key VARCHAR(64) NULL, -- object with the whole log
    log_bytes BIGINT UNSIGNED NULL, -- what it printed, kept or not; NULL if it is not known
    PRIMARY KEY (run_id, attempt),
    KEY app_run_attempts_space (space_id)
  )`,
  // One row per space. A transaction that counts what its apps keep or run holds it locked.
  `CREATE TABLE IF NOT EXISTS app_usage (
    space_id VARCHAR(40) NOT NULL PRIMARY KEY,
    delivered_bytes BIGINT UNSIGNED NOT NULL DEFAULT 0
  )`,
  // Requests to webhooks of apps. One row for each delivery id, kind of proof and component, as long as the app exists.
  `CREATE TABLE IF NOT EXISTS app_deliveries (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    app_id VARCHAR(40) NOT NULL,
    item_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    component VARCHAR(63) NOT NULL,
    auth VARCHAR(20) NOT NULL, -- kind of proof
    delivery_id VARCHAR(200) NULL,
    -- tells two deliveries of one id apart where anybody may send them; else empty
    content_hash VARCHAR(64) NOT NULL DEFAULT '',
    run_id VARCHAR(40) NOT NULL,
    method VARCHAR(10) NOT NULL,
    query TEXT NULL,
    headers MEDIUMTEXT NULL, -- JSON
    body MEDIUMBLOB NULL,
    body_bytes INT UNSIGNED NOT NULL,
    has_content TINYINT UNSIGNED NULL, -- 1 until query, headers and body are forgotten, then NULL
    kept_bytes INT UNSIGNED NOT NULL DEFAULT 0, -- what it counts in app_usage; 0 once its content is forgotten
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY app_deliveries_once (app_id, component, auth, delivery_id, content_hash),
    KEY app_deliveries_app (app_id, id),
    KEY app_deliveries_old (has_content, created_at, id),
    KEY app_deliveries_space (space_id, has_content, created_at, id)
  )`,
  // Secrets with which senders sign deliveries, sealed.
  `CREATE TABLE IF NOT EXISTS app_webhook_secrets (
    app_id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    secret_id VARCHAR(40) NULL, -- names the present secret, for repeated requests with one Idempotency-Key
    secret MEDIUMBLOB NOT NULL,
    old_secret MEDIUMBLOB NULL, -- holds until old_secret_until
    old_secret_until DATETIME(3) NULL,
    KEY app_webhook_secrets_space (space_id)
  )`,
  // Schedules of the manifests of apps.
  `CREATE TABLE IF NOT EXISTS app_schedules (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    app_id VARCHAR(40) NOT NULL,
    item_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    component VARCHAR(63) NOT NULL,
    cron VARCHAR(200) NOT NULL,
    time_zone VARCHAR(100) NOT NULL,
    jitter_seconds INT UNSIGNED NOT NULL,
    enabled TINYINT UNSIGNED NOT NULL,
    pause_code VARCHAR(80) NULL,
    pause_detail VARCHAR(500) NULL,
    paused_at DATETIME(3) NULL,
    failures INT UNSIGNED NOT NULL, -- failed runs in a row
    next_at DATETIME(3) NULL, -- next tick; NULL while it is paused
    due_at DATETIME(3) NULL, -- when the run of that tick begins: with its jitter
    last_at DATETIME(3) NULL,
    last_code VARCHAR(80) NULL,
    last_run_id VARCHAR(40) NULL,
    version INT UNSIGNED NOT NULL, -- tells whether the schedule in Temporal is up to date
    created_at DATETIME(3) NOT NULL,
    gone_at DATETIME(3) NULL, -- when the manifest lost it; its pause is kept for its return
    UNIQUE KEY app_schedules_component (app_id, component),
    KEY app_schedules_due (due_at, id),
    KEY app_schedules_space (space_id)
  )`,
]);

export const appsSchema: AreaSchema = {
  initial,
  ofSpace: [
    'app_schedules',
    'app_deliveries',
    'app_webhook_secrets',
    'app_run_attempts',
    'app_runs',
    'app_changes',
    'app_versions',
    'apps',
    // Last: whoever makes it holds an app.
    'app_usage',
  ],
};
