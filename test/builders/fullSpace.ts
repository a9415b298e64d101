import { randomBytes, randomUUID } from 'node:crypto';
import { newId } from '../../base/ids.ts';
import { indexDueTexts } from '../../models/chat/indexTexts.ts';
import type { Database } from '../../models/database/database.ts';
import { newName } from '../../models/databases/names.ts';
import { browserRow, profileRow } from './browserRows.ts';
import type { ChatUser } from './chat.ts';
import { backupRow, databaseRow } from './database.ts';
import { desktopRow } from './desktop.ts';
import { draftRow } from './draft.ts';
import { driveOf } from './drive.ts';
import { environmentRows } from './environmentRows.ts';
import type { TestProduct } from './product.ts';
import { recordingRow } from './recording.ts';
import { insertRows } from './rows.ts';
import { saveRow } from './save.ts';
import { toolLines } from './tools.ts';
import { deliveryRow, endpointRow } from './webhookRows.ts';

/**
 * Makes a chat of two turns, one with a tool call, and a row in every table that belongs to threads or turns. Returns
 * the thread.
 */
export async function fillThread(product: TestProduct, user: ChatUser): Promise<string> {
  const asked = await user.ask({
    id: `chat-${randomUUID()}`,
    content: toolLines([['drive_list', { path: '/' }]]),
    modelId: 'demo',
    openTabs: [{ paneId: 'p', isActive: true, tabs: [{ tabId: 't', type: 'app', title: 'T', isActive: true }] }],
  });
  const { threadId, turnId } = asked;
  await user.ended(turnId);
  await user.ended((await user.ask({ threadId, content: '/say more', modelId: 'demo' })).turnId);
  await insertRows(product.environment.database, {
    thread_summaries: {
      thread_id: threadId,
      up_to_ordinal: 1,
      turn_id: turnId,
      model_id: 'demo',
      summary: 'Something was said.',
      created_at: new Date(),
    },
    answer_pieces: { turn_id: turnId, piece: 1, parts: '[]' },
    turn_receipts: { turn_id: turnId, seq: 3 },
    completion_requests: {
      turn_id: turnId,
      user_id: user.id,
      space_id: user.spaceId,
      request_hash: randomBytes(32),
      conversation_hash: randomBytes(32),
      created_at: new Date(),
    },
  });
  await user.fetch(`/api/threads/${threadId}/shares`, { method: 'POST', body: {} });
  await indexTexts(product.environment.database);
  return threadId;
}

/** Makes an answer by OpenAI's API, retries it, and continues it. */
async function fillCompletions(user: ChatUser): Promise<void> {
  const ask = async (messages: { role: string; content: string }[]) => {
    const headers = { 'x-stainless-retry-count': '1' };
    const response = await user.fetch('/v1/chat/completions', {
      method: 'POST',
      body: { model: 'demo', messages },
      headers,
    });
    const { choices } = (await response.json()) as { choices: { message: { role: string; content: string } }[] };
    return choices.map(({ message }) => message);
  };
  const question = { role: 'user', content: '/say One' };
  const answers = await ask([question]);
  await ask([question, ...answers, { role: 'user', content: '/say Two' }]);
}

/** Updates the index of words, as the sweeper does. */
export async function indexTexts(database: Database): Promise<void> {
  const fail = (_threadId: string, error: unknown) => {
    throw error;
  };
  await indexDueTexts(database, { most: 100_000, onBatch: () => undefined, onFailure: fail });
}

/** Fills a space so that every table about spaces has a row. */
export async function fillSpace(product: TestProduct, user: ChatUser): Promise<void> {
  const space = `/api/spaces/${user.spaceId}`;
  const send = async (method: string, path: string, body: unknown) => {
    const response = await user.fetch(path, { method, body });
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
  };
  await fillThread(product, user);
  await fillCompletions(user);
  const drive = driveOf(product, user);
  await drive.put('/a/file.txt', 'the first words');
  await drive.put('/a/file.txt', 'other words', 'replace');
  // Its folder is known now. Uploads one file alone, then several at once.
  await drive.put('/a/small.txt', 'few words');
  await Promise.all([1, 2, 3].map((n) => drive.put(`/a/small-${n}.txt`, 'few words')));
  await drive.send('POST', '/uploads', { path: '/large', size: 7 });
  await send('PUT', `${space}/secrets/TOKEN`, { value: 'a value' });
  const { computerId } = (await (await user.fetch(`${space}/computers/status`)).json()) as { computerId: string };
  await send('PUT', `${space}/computers/${computerId}/secrets/TOKEN`, { hosts: ['api.example.com'] });
  await send('PUT', `${space}/egress`, { deny: ['example.net'] });
  await send('PUT', `${space}/chat-settings`, { systemPrompt: 'Be brief.' });
  await send('POST', `${space}/invitations`, { email: `${user.id}@example.com`, role: 'viewer' });
  const form = { name: 'signIn', field: 'password', value: 'hunter2', spaceId: user.spaceId };
  await send('POST', '/api/dynamic-ui/secrets', form);
  await send('POST', `${space}/mcp-servers`, { name: 'tools', url: 'http://127.0.0.1:9/mcp' });
  await send('POST', `${space}/computers`, {});
  await send('POST', `${space}/git/credentials`, { name: 'Git server', host: 'git.example.com', secret: 'a token' });
  const automation = { name: 'Report', prompt: '/say hello', schedule: { cron: '0 8 * * *', timeZone: 'UTC' } };
  await send('POST', `${space}/automations`, automation);
  const itemId = newId('driveItem');
  const ofRepository = { item_id: itemId, space_id: user.spaceId, created_at: new Date() };
  const ofInstallation = { space_id: user.spaceId, provider: 'github', installation_id: '1' };
  await insertRows(product.environment.database, {
    git_repositories: {
      ...ofRepository,
      computer_id: computerId,
      tree_path: `repositories/${itemId}`,
      url: 'https://git.example.com/tool.git',
      operation_id: 'op_1',
      status: 'ready',
      status_at: new Date(),
      version: 1,
      created_by: user.id,
    },
    app_runs: {
      id: newId('run'),
      app_id: 'app_1',
      item_id: itemId,
      space_id: user.spaceId,
      component: 'run',
      spec: '{}',
      trigger_kind: 'request',
      user_id: user.id,
      status: 'succeeded',
      attempt: 1,
      is_started: 1,
      created_at: new Date(),
    },
    app_deliveries: {
      id: newId('delivery'),
      app_id: 'app_1',
      item_id: itemId,
      space_id: user.spaceId,
      component: 'receive',
      auth: 'signature',
      delivery_id: randomUUID(),
      run_id: 'run_1',
      method: 'POST',
      body_bytes: 0,
      created_at: new Date(),
    },
    app_usage: { space_id: user.spaceId },
    app_webhook_secrets: { app_id: newId('app'), space_id: user.spaceId, secret: randomBytes(8) },
    app_schedules: {
      id: newId('appSchedule'),
      app_id: newId('app'),
      item_id: itemId,
      space_id: user.spaceId,
      component: 'nightly',
      cron: '0 3 * * *',
      time_zone: 'UTC',
      jitter_seconds: 0,
      enabled: 0,
      failures: 0,
      version: 1,
      created_at: new Date(),
    },
    app_run_attempts: { run_id: newId('run'), attempt: 1, space_id: user.spaceId, began_at: new Date() },
    apps: {
      id: newId('app'),
      item_id: itemId,
      live: 1,
      space_id: user.spaceId,
      manifest: '{}',
      manifest_tag: '',
      created_by: user.id,
      created_at: new Date(),
    },
    app_versions: {
      id: newId('appVersion'),
      app_id: newId('app'),
      space_id: user.spaceId,
      state: 'in_use',
      content_hash: 'a'.repeat(64),
      manifest: '{}',
      manifest_tag: '',
      authors: '[]',
      reasons: '[]',
      created_at: new Date(),
    },
    app_changes: { id: newId('app'), app_id: newId('app'), space_id: user.spaceId, number: 1, changed_at: new Date() },
    git_bundles: { ...ofRepository, version: 1, object_key: null, bytes: 0, manifest: '{}' },
    git_drafts: draftRow({ itemId, spaceId: user.spaceId, computerId, createdBy: user.id }),
    git_orders: {
      ...ofRepository,
      id: newId('operation'),
      kind: 'retryClone',
      input: '{}',
      step: 0,
      deadline_at: new Date(),
    },
    git_installations: {
      ...ofInstallation,
      account: 'acme',
      account_id: '1',
      proof: 'person',
      proven_by: 'somebody',
      repositories: 'listed',
      status: 'active',
      created_at: new Date(),
      due_at: new Date(),
    },
    git_installation_repositories: { ...ofInstallation, path: 'acme/tool', repository_id: '1', may_write: 1 },
    git_connections: {
      hash: randomBytes(32),
      space_id: user.spaceId,
      user_id: user.id,
      provider: 'github',
      expires_at: new Date(Date.now() + 600_000),
    },
    webhook_endpoints: endpointRow({ spaceId: user.spaceId, createdBy: user.id }),
    webhook_deliveries: deliveryRow({ spaceId: user.spaceId, endpointId: 'whe_1' }),
    automation_runs: {
      id: newId('automationRun'),
      automation_id: newId('automation'),
      space_id: user.spaceId,
      kind: 'webhook',
      trigger_key: 'delivery:1',
      status: 'skipped',
      created_at: new Date(),
    },
    space_databases: databaseRow({ spaceId: user.spaceId, createdBy: user.id }),
    space_database_backups: backupRow({ spaceId: user.spaceId, databaseId: 'dbs_1' }),
    space_database_accounts: {
      id: newId('databaseAccount'),
      database_id: 'dbs_1',
      space_id: user.spaceId,
      server_user: newName('u'),
      sealed: randomBytes(64),
    },
    port_links: {
      id: `prt_${randomUUID()}`,
      space_id: user.spaceId,
      computer_id: 'cmp_1',
      port: 8080,
      label: randomUUID(),
      created_by: user.id,
      created_at: new Date(),
      expires_at: new Date(),
    },
    home_saves: saveRow({ spaceId: user.spaceId, computerId }),
    home_save_pieces: {
      save_id: newId('homeSave'),
      number: 0,
      space_id: user.spaceId,
      object_key: 'none',
      stored_bytes: 0,
    },
    computer_snapshots: {
      id: newId('computerSnapshot'),
      space_id: user.spaceId,
      computer_id: computerId,
      name: 'Before the change',
      save_id: 'hsv_1',
      created_at: new Date(),
    },
    ...environmentRows({ spaceId: user.spaceId, createdBy: user.id }),
    desktop_sessions: desktopRow({ spaceId: user.spaceId, computerId, createdBy: user.id }),
    browser_profiles: profileRow({ spaceId: user.spaceId, computerId, createdBy: user.id }),
    browser_sessions: browserRow({ spaceId: user.spaceId, computerId, createdBy: user.id }),
    browser_folders: {
      id: newId('browserFolder'),
      space_id: user.spaceId,
      owner_id: newId('browserProfile'),
      computer_id: computerId,
      remove_at: new Date(Date.now() + 3_600_000),
    },
    browser_links: {
      id: newId('browserLink'),
      space_id: user.spaceId,
      session_id: newId('browserSession'),
      created_by: user.id,
      created_at: new Date(),
      expires_at: new Date(),
    },
    browser_downloads: { session_id: newId('browserSession'), file_key: randomBytes(32), space_id: user.spaceId },
    desktop_recordings: recordingRow({
      spaceId: user.spaceId,
      computerId,
      sessionId: 'dsk_1',
      createdBy: user.id,
    }),
    desktop_links: {
      id: newId('desktopLink'),
      space_id: user.spaceId,
      session_id: 'dsk_1',
      control: 1,
      ttl_seconds: 600,
      created_by: user.id,
      created_at: new Date(),
      expires_at: new Date(),
    },
    port_link_visits: {
      token_hash: randomBytes(32),
      link_id: 'prt_1',
      space_id: user.spaceId,
      created_at: new Date(),
    },
    billing_call_sizes: { space_id: user.spaceId, model_id: 'paid', kind: 'ask', base_tokens: 700 },
    egress_log: {
      space_id: user.spaceId,
      purpose: 'tool',
      host: 'example.com',
      port: 443,
      refusal: null,
      at: new Date(),
    },
  });
  // The automation has a thread of its own, which must be indexed too.
  await indexTexts(product.environment.database);
}

/** The rows of these tables as sorted texts. */
export async function contentsOf(database: Database, tables: readonly string[]): Promise<Record<string, string[]>> {
  const contents = tables.map(async (table) => {
    const [rows] = await database.pool.query(`SELECT * FROM ${table}`);
    return [table, (rows as unknown[]).map((row) => JSON.stringify(row)).sort()] as const;
  });
  return Object.fromEntries(await Promise.all(contents));
}
