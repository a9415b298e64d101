import { createHash } from 'node:crypto';
import type { RowDataPacket } from 'mysql2';
import { DomainError, notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import type { ServingDeps } from '../computers/servingComputer.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { insert, select } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import { type App, lockApp } from './app.ts';
import { addRun } from './askToRun.ts';
import { makeRoom } from './forgetDeliveries.ts';
import type { WebhookComponent } from './manifest.ts';
import { placeOfComponent } from './placeOfRuns.ts';
import type { RunStatus } from './run.ts';
import { countDelivered, lockUsage } from './usage.ts';

/** How a delivery proved that it is allowed. */
export type DeliveryAuth = 'signature' | 'bearer' | 'none';

/** The request, in the form that its run gets. */
export interface DeliveryContent {
  method: string;
  /** Raw, without the question mark. */
  query: string;
  headers: Record<string, string>;
  body: Buffer;
}

export interface NewDelivery extends DeliveryContent {
  app: App;
  component: WebhookComponent;
  auth: DeliveryAuth;
  /** The sender's id of the delivery. Null if repeats cannot be recognized. */
  deliveryId: string | null;
  /** The rights of its run. */
  authority: Authority & { userId: string };
  /** The sender, if known. */
  actor: Actor | null;
}

export interface Delivery {
  id: string;
  appId: string;
  itemId: string;
  spaceId: string;
  component: string;
  auth: DeliveryAuth;
  deliveryId: string | null;
  runId: string;
  method: string;
  bodyBytes: number;
  hasContent: boolean;
  /** The status of its run. Null once the run is forgotten. */
  runStatus: RunStatus | null;
  createdAt: Date;
}

interface Limits {
  deliveredBytesPerSpace: number;
}

interface KeptDelivery {
  runId: string;
  /** False if the delivery was known already. */
  isNew: boolean;
}

/** The size that a delivery counts besides its content. */
const rowBytes = 500;

const columns = `d.id, d.app_id, d.item_id, d.space_id, d.component, d.auth, d.delivery_id, d.run_id, d.method,
  d.body_bytes, d.has_content, r.status AS runStatus, d.created_at`;

function deliveryOf(row: RowDataPacket): Delivery {
  return { ...(row as unknown as Delivery), hasContent: row.hasContent === 1 };
}

/**
 * Stores a delivery and adds its run, in one commit. While a delivery id is known, a repeat returns the same run.
 * Throws 404 if the app was removed, 429 `APP_TOO_MANY_RUNS`, and 429 `APP_DELIVERIES_FULL` if all stored deliveries of
 * the space still have to run. Throws as `placeOfComponent`.
 */
export async function keepDelivery(deps: ServingDeps, delivery: NewDelivery, limits: Limits): Promise<KeptDelivery> {
  try {
    return (await tryToKeep(deps, delivery, limits)) ?? (await keepInRoomOfOthers(deps, delivery, limits));
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'APP_TOO_MANY_RUNS') throw error;
    // The sender should retry, as after any rate limit.
    throw new DomainError('rateLimited', error.code, error.message, {
      retryAfterSeconds: error.retryAfterSeconds ?? 30,
    });
  }
}

/** Makes room by forgetting the oldest deliveries. They have run, so only their replay is lost. */
async function keepInRoomOfOthers(deps: ServingDeps, delivery: NewDelivery, limits: Limits): Promise<KeptDelivery> {
  await makeRoom(deps.database, delivery.app.spaceId, limits.deliveredBytesPerSpace - sizeOf(delivery));
  const kept = await tryToKeep(deps, delivery, limits);
  if (kept !== undefined) return kept;
  const detail = 'Too many deliveries of the space are waiting to run. Try again when some have run.';
  throw new DomainError('rateLimited', 'APP_DELIVERIES_FULL', detail, { retryAfterSeconds: 30 });
}

/** A repeated delivery is found even if its component cannot run now. */
function asRefusal(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  throw error;
}

/** Undefined if the space has no room for it. */
async function tryToKeep(
  deps: ServingDeps,
  delivery: NewDelivery,
  { deliveredBytesPerSpace }: Limits,
): Promise<KeptDelivery | undefined> {
  const { app, component, auth, deliveryId, authority, actor, method, query, headers, body } = delivery;
  const runner = actor ?? { userId: authority.userId, credentialId: null, address: null };
  const place = await placeOfComponent(deps, app, component, runner).catch(asRefusal);
  const contentHash = auth === 'none' ? hashOf(delivery) : '';
  return transaction(deps.database, async (tx) => {
    await lockApp(tx, app);
    await requireLivingSpace(tx, app.spaceId);
    const known = await select<{ runId: string }>(
      tx,
      `SELECT run_id FROM app_deliveries
        WHERE app_id = ? AND component = ? AND auth = ? AND delivery_id = ? AND content_hash = ?`,
      [app.id, component.name, auth, deliveryId, contentHash],
    );
    if (known[0] !== undefined) return { runId: known[0].runId, isNew: false };
    if (place instanceof DomainError) throw place;
    const keptBytes = sizeOf(delivery);
    const { deliveredBytes } = await lockUsage(tx, app.spaceId);
    if (deliveredBytes + keptBytes > deliveredBytesPerSpace) return undefined;
    await countDelivered(tx, app.spaceId, keptBytes);
    const id = newId('delivery');
    const runId = newId('run');
    const { userId, apiKeyId, scopes } = authority;
    const run = { app, id: runId, component, place, trigger: 'webhook', userId, apiKeyId, scopes } as const;
    await addRun(tx, { ...run, triggerKey: `delivery:${id}`, deliveryId: id });
    await insert(tx, 'app_deliveries', {
      ...{ id, appId: app.id, itemId: app.itemId, spaceId: app.spaceId, component: component.name },
      ...{ auth, deliveryId, runId, method, query, headers, body },
      ...{ bodyBytes: body.length, keptBytes, contentHash },
      ...{ hasContent: 1, createdAt: new Date() },
    });
    if (actor !== null) await appendAudit(tx, app.spaceId, actor, 'app.run', runId);
    return { runId, isNew: true };
  });
}

/** The size that a delivery counts against its space's limit. */
function sizeOf({ query, headers, body }: DeliveryContent): number {
  return body.length + Buffer.byteLength(query) + Buffer.byteLength(JSON.stringify(headers)) + rowBytes;
}

/** If anyone may send deliveries, a stranger must not use up an id. So other content is another delivery. */
function hashOf({ method, query, body }: DeliveryContent): string {
  return createHash('sha256').update(`${method}\0${query}\0`).update(body).digest('hex');
}

/** Lists an app's deliveries, newest first. */
export async function listDeliveries(
  database: Pick<Database, 'pool'>,
  appId: string,
  page: PageRequest,
): Promise<Page<Delivery>> {
  const sql = `SELECT ${columns} FROM app_deliveries d FORCE INDEX (app_deliveries_app)
    LEFT JOIN app_runs r ON r.id = d.run_id WHERE d.app_id = ?`;
  return readPage(database, page, { sql, values: [appId], by: 'd.id', order: 'desc', read: deliveryOf });
}

/** Throws 404. */
export async function getDelivery({ pool }: Pick<Database, 'pool'>, id: string): Promise<Delivery> {
  const sql = `SELECT ${columns} FROM app_deliveries d LEFT JOIN app_runs r ON r.id = d.run_id WHERE d.id = ?`;
  const rows = await select(pool, sql, [id]);
  if (rows[0] === undefined) throw notFound('delivery');
  return deliveryOf(rows[0]);
}

/** The content of a delivery, for a run. Throws 410 `DELIVERY_GONE`. */
export async function contentOf(
  { pool }: Pick<Database, 'pool'>,
  id: string,
): Promise<DeliveryContent & { deliveryId: string | null; auth: DeliveryAuth }> {
  const sql = `SELECT auth, delivery_id, method, query, headers, body FROM app_deliveries
    WHERE id = ? AND has_content = 1`;
  const [row] = await select(pool, sql, [id]);
  if (row === undefined) throw deliveryGone();
  return {
    ...(row as Omit<DeliveryContent, 'headers'> & { deliveryId: string | null; auth: DeliveryAuth }),
    headers: JSON.parse(row.headers as string),
  };
}

export function deliveryGone(): DomainError {
  return new DomainError('gone', 'DELIVERY_GONE', 'The content of this delivery is no longer stored.');
}
