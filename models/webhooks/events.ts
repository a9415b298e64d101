import type { Sequelize, Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { type On, sequelizeOf } from '../database/bound.ts';
import { execute, select } from '../database/sql.ts';

/** Events that endpoints can be notified of. */
export type EventType = 'turn.ended' | 'turn.needs_input' | 'run.ended' | 'credits.low' | 'ping';

export interface WebhookEvent {
  /** Identifies the event. An endpoint is notified of each once. */
  id: string;
  type: EventType;
  spaceId: string;
  /** Ids and facts that a receiver can act on. Never text of people or models. */
  data: Readonly<Record<string, string | number | null>>;
}

/** An endpoint whose workflow has work. */
export interface ToldEndpoint {
  id: string;
  spaceId: string;
}

type Listener = (endpoint: ToldEndpoint) => void;
const listeners = new WeakMap<Sequelize, Listener>();

/**
 * Calls `listener` for each endpoint with new work, after the commit. This is a hint: the sweeper finds missed
 * endpoints.
 */
export function onEndpointWork(on: On, listener: Listener): void {
  listeners.set(sequelizeOf(on), listener);
}

/** A condition in SQL: whether a space has an enabled endpoint. For statements that read about the space anyway. */
export function hasEndpoints(spaceId: string): string {
  return `EXISTS (SELECT 1 FROM webhook_endpoints WHERE space_id = ${spaceId} AND enabled = 1)`;
}

/** Adds deliveries to the space's endpoints, in the transaction of the event. */
export async function noteEvent(tx: Transaction, event: WebhookEvent): Promise<void> {
  const found = await select<{ id: string; events: string }>(
    tx,
    'SELECT id, events FROM webhook_endpoints WHERE space_id = ? AND enabled = 1',
    [event.spaceId],
  );
  for (const { id, events } of found) {
    if (events === '' || events.split(',').includes(event.type)) await addDelivery(tx, id, event);
  }
}

/** Adds a delivery, unless the endpoint already has one for this event. */
export async function addDelivery(
  tx: Transaction,
  endpointId: string,
  { id: eventId, type, spaceId, data }: WebhookEvent,
  id = newId('webhookDelivery'),
): Promise<void> {
  const now = new Date();
  const body = JSON.stringify({ type, timestamp: now.toISOString(), data });
  const about = { id, endpointId, spaceId, eventId, type, body };
  const state = { status: 'pending', pending: 1, attempts: 0, nextAttemptAt: now, createdAt: now };
  await execute(tx, 'INSERT INTO webhook_deliveries SET ? ON DUPLICATE KEY UPDATE id = id', [{ ...about, ...state }]);
  afterCommit(tx, { id: endpointId, spaceId });
}

/** Calls the listener for an endpoint once this transaction is committed. */
export function afterCommit(tx: Transaction, endpoint: ToldEndpoint): void {
  tx.afterCommit(() => listeners.get(sequelizeOf(tx))?.(endpoint));
}
