import { randomUUID } from 'node:crypto';
import type { operations } from '../../api/generated/types.gen.ts';
import { signWebhook } from '../../integrations/webhooks/standardWebhooks.ts';
import { waitFor } from '../support/waitFor.ts';
import type { ChatUser } from './chat.ts';

type Body<Id extends 'getAutomation' | 'listAutomationRuns'> =
  operations[Id]['responses'][200]['content']['application/json'];
export type AutomationBody = Body<'getAutomation'>;
export type RunBody = Body<'listAutomationRuns'>['data'][number];

/** A person's automations, as a client of the HTTP API. */
export function automationsOf(user: ChatUser) {
  const root = `/api/spaces/${user.spaceId}/automations`;
  async function send<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
    const response = await user.fetch(`${root}${path}`, { method, body, ...(headers && { headers }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
  const one = {
    root,
    send,
    make: (fields: object = {}) =>
      send<AutomationBody>('POST', '', { name: 'Report', prompt: '/say done', modelId: 'demo', ...fields }),
    get: (id: string) => send<AutomationBody>('GET', `/${id}`),
    change: (id: string, fields: object) => send<AutomationBody>('PATCH', `/${id}`, fields),
    run: (id: string, key?: string) =>
      send<RunBody>('POST', `/${id}/run`, undefined, key === undefined ? undefined : { 'idempotency-key': key }),
    runs: async (id: string) => (await send<{ data: RunBody[] }>('GET', `/${id}/runs?limit=200`)).data,
    /** The runs, once there are at least this many and all have ended. */
    ended: (id: string, count = 1) =>
      waitFor(`the end of ${count} runs of ${id}`, async () => {
        const runs = await one.runs(id);
        return runs.length >= count && runs.every(({ endedAt }) => endedAt !== null) && runs;
      }),
    async secret(id: string) {
      return (await send<{ secret: string }>('POST', `/${id}/webhook/secret`)).secret;
    },
  };
  return one;
}

/** Sends a delivery as a real sender would. */
export function deliver(
  url: string,
  automationId: string,
  secret: string,
  { id = `msg_${randomUUID()}`, body = {}, timestamp = Math.floor(Date.now() / 1_000) }: Delivery = {},
): Promise<Response> {
  const raw = JSON.stringify(body);
  const headers = { 'webhook-id': id, 'webhook-timestamp': `${timestamp}` };
  return fetch(`${url}/api/webhooks/automations/${automationId}`, {
    method: 'POST',
    body: raw,
    headers: {
      'content-type': 'application/json',
      ...headers,
      'webhook-signature': signWebhook(raw, { id, timestamp: `${timestamp}` }, secret),
    },
  });
}

export interface Delivery {
  id?: string;
  body?: unknown;
  /** In seconds since 1970. */
  timestamp?: number;
}
