import type { Sequelize, Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { type On, sequelizeOf } from '../database/bound.ts';
import { execute, select } from '../database/sql.ts';

/** What endpoints are told of. */
export type EventType = 'turn.ended' | 'turn.needs_input' | 'run.ended' | 'credits.low' | 'ping';

export interface WebhookEvent {
  /** What the event is known by: an endpoint is told of each once. */
  id: string;
  type: EventType;
  spaceId: string;
  /** Ids, and what a receiver decides by: never what people or models have written. */
  data: Readonly<Record<string, string | number | null>>;
}

/** An endpoint whose workflow has something to do. */
export interface ToldEndpoint {
  id: string;
  spaceId: string;
}

type Listener = (endpoint: ToldEndpoint) => void;
const listeners = new WeakMap<Sequelize, Listener>();

/**
 * Has `listener` told of each endpoint with something to do, once that is committed. It is a hint: the sweeper finds
 * the rest.
 */
export function onEndpointWork(on: On, listener: Listener): void {
  listeners.set(sequelizeOf(on), listener);
}

/** A condition in SQL: whether anybody would be told of an event, for statements that read about its space anyway. */
export function hasEndpoints(spaceId: string): string {
  return `EXISTS (SELECT 1 FROM webhook_endpoints WHERE space_id = ${spaceId} AND enabled = 1)`;
}

/** Writes what endpoints of the space are to be told, in the transaction of what has happened. */
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

/** Adds one delivery, which is the same one where it is there already. */
export async function addDelivery(
  tx: Transaction,
  endpointId: string,
  { id: eventId, type, spaceId, data }: WebhookEvent,
  id = newId('webhookDelivery'),
): Promise<void> {
  const now = new Date();
  const body = JSON.stringify({ type, timestamp: now.toISOString(), data });
  const about = { id, endpoint_id: endpointId, space_id: spaceId, event_id: eventId, type, body };
  const state = { status: 'pending', pending: 1, attempts: 0, next_attempt_at: now, created_at: now };
  await execute(tx, 'INSERT INTO webhook_deliveries SET ? ON DUPLICATE KEY UPDATE id = id', [{ ...about, ...state }]);
  afterCommit(tx, { id: endpointId, spaceId });
}

/** Tells of an endpoint with something to do as soon as this transaction is committed. */
export function afterCommit(tx: Transaction, endpoint: ToldEndpoint): void {
  tx.afterCommit(() => listeners.get(sequelizeOf(tx))?.(endpoint));
}
