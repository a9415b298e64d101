import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { signWebhook } from '../../integrations/billing/webhookSignature.ts';

/** Controls the fake: actions of a person who pays, and Stripe's failures. */
export interface FakeStripe {
  url: string;
  /** The variables of config/ that make Atrium use it. */
  environment: Record<string, string>;
  requests: { method: string; path: string; body: Fields; idempotencyKey: string | undefined }[];
  sessions: Map<string, Fields>;
  /** Answers the next requests with these statuses, each once. */
  failNext(...statuses: number[]): void;
  /** The share of requests that are answered with 503. */
  failureShare: number;
  /** Whether customers have a card, and whether it is accepted. */
  card: 'none' | 'good' | 'declined';
  /** Pays an open session like a person, without sending a notification. */
  pay(sessionId: string): Fields;
  refund(paymentId: string, amount: number, status?: 'succeeded' | 'failed'): Fields;
  /** Sends a signed notification, and returns the response. */
  notify(apiUrl: string, type: string, object: Fields, id?: string): Promise<Response>;
  stop(): Promise<void>;
}

export type Fields = { [name: string]: string | number | boolean | null | Fields | undefined };

export const fakeSecret = 'whsec_fake';

/** A server on loopback with the part of Stripe's API that Atrium uses, including idempotency keys. */
export async function startFakeStripe(): Promise<FakeStripe> {
  const answered = new Map<string, { status: number; body: object }>();
  const failures: number[] = [];
  const payments = new Map<string, Fields>();
  const refunds: Fields[] = [];
  let number = 0;
  const make = (prefix: string, object: string, fields: Fields): Fields & { id: string } => ({
    ...{ id: `${prefix}_${process.pid}_${++number}`, object, created: Math.floor(Date.now() / 1_000), livemode: false },
    ...fields,
  });

  const server = createServer(async (req, res) => {
    const { status, body } = await answer(req);
    res.writeHead(status, { 'content-type': 'application/json', 'request-id': `req_${++number}` });
    res.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Does not keep the process alive.
  server.unref();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const stripe: FakeStripe = {
    url,
    environment: {
      ATRIUM_PAYMENTS: 'stripe',
      ATRIUM_STRIPE_SECRET_KEY: 'sk_test_fake',
      ATRIUM_STRIPE_WEBHOOK_SECRETS: fakeSecret,
      ATRIUM_STRIPE_ADDRESS: url,
    },
    requests: [],
    sessions: new Map(),
    card: 'good',
    failureShare: 0,
    failNext: (...statuses) => void failures.push(...statuses),
    pay(sessionId) {
      const session = stripe.sessions.get(sessionId) ?? {};
      const { amount_total: amount, currency, metadata } = session;
      const intent = make('pi', 'payment_intent', {
        status: 'succeeded',
        amount,
        amount_received: amount,
        currency,
        metadata,
      });
      payments.set(intent.id, intent);
      return Object.assign(session, { status: 'complete', payment_status: 'paid', payment_intent: intent.id });
    },
    refund(paymentId, amount, status = 'succeeded') {
      refunds.unshift(make('re', 'refund', { payment_intent: paymentId, amount, status, metadata: {} }));
      return refunds[0] as Fields;
    },
    async notify(apiUrl, type, object, id = `evt_${process.pid}_${++number}`) {
      const payload = JSON.stringify({ id, object: 'event', type, data: { object } });
      return fetch(`${apiUrl}/api/webhooks/stripe`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'stripe-signature': await signWebhook(payload, fakeSecret) },
        body: payload,
      });
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return stripe;

  async function answer(req: IncomingMessage): Promise<{ status: number; body: object }> {
    const { pathname, searchParams } = new URL(req.url ?? '/', url);
    const body = nested(new URLSearchParams(await text(req)));
    const idempotencyKey = req.headers['idempotency-key'] as string | undefined;
    stripe.requests.push({ method: req.method ?? '', path: pathname, body, idempotencyKey });
    const failure = failures.shift() ?? (Math.random() < stripe.failureShare ? 503 : undefined);
    if (failure !== undefined) return { status: failure, body: { error: { type: 'api_error', message: 'asked for' } } };
    const known = answered.get(idempotencyKey ?? '');
    if (known !== undefined) return known;
    const made = route(`${req.method} ${pathname}`, body, nested(searchParams));
    if (idempotencyKey !== undefined) answered.set(idempotencyKey, made);
    return made;
  }

  function route(name: string, body: Fields, query: Fields): { status: number; body: object } {
    const [, sessionId = ''] = /\/v1\/checkout\/sessions\/([^/]+)/.exec(name) ?? [];
    const session = stripe.sessions.get(sessionId);
    if (sessionId !== '') {
      if (session === undefined) return missing;
      if (name.endsWith('/expire')) session.status = 'expired';
      return { status: 200, body: session };
    }
    switch (name.replace(/customers\/[^/]+/, 'customers/ID')) {
      case 'POST /v1/customers':
        return { status: 200, body: make('cus', 'customer', body) };
      case 'GET /v1/customers/ID/payment_methods':
        return list(stripe.card === 'none' ? [] : [make('pm', 'payment_method', {})]);
      case 'POST /v1/checkout/sessions':
        return { status: 200, body: openSession(body) };
      case 'GET /v1/checkout/sessions':
        return list(
          [...stripe.sessions.values()].filter(
            ({ payment_intent: intent }) => query.payment_intent === undefined || intent === query.payment_intent,
          ),
        );
      case 'POST /v1/payment_intents':
        return charge(body);
      case 'GET /v1/payment_intents':
        return list([...payments.values()]);
      case 'GET /v1/refunds':
        return list(refunds.filter(({ payment_intent: intent }) => intent === query.payment_intent));
      default:
        return missing;
    }
  }

  function openSession(body: Fields): Fields {
    const item = (body.line_items as Fields)['0'] as Fields;
    const price = item.price_data as Fields;
    const session = make('cs_test', 'checkout.session', {
      ...{
        client_reference_id: body.client_reference_id,
        metadata: body.metadata,
        expires_at: Number(body.expires_at),
      },
      ...{ amount_total: Number(price.unit_amount) * Number(item.quantity), currency: price.currency },
      ...{ status: 'open', payment_status: 'unpaid', payment_intent: null },
    });
    session.url = `${url}/pay/${session.id}`;
    stripe.sessions.set(session.id, session);
    return session;
  }

  function charge(body: Fields): { status: number; body: object } {
    const amount = Number(body.amount);
    const status = stripe.card === 'good' ? 'succeeded' : 'requires_payment_method';
    const received = stripe.card === 'good' ? amount : 0;
    const intent = make('pi', 'payment_intent', { ...body, amount, amount_received: received, status });
    if (stripe.card === 'good') payments.set(intent.id, intent);
    else return { status: 402, body: { error: { type: 'card_error', code: 'card_declined', payment_intent: intent } } };
    return { status: 200, body: intent };
  }
}

const missing = { status: 404, body: { error: { type: 'invalid_request_error', code: 'resource_missing' } } };

function list(data: Fields[]): { status: number; body: object } {
  return { status: 200, body: { object: 'list', data, has_more: false } };
}

/** Parses `a[b][0]=c`, the format of Stripe's library. */
function nested(parameters: URLSearchParams): Fields {
  const result: Fields = {};
  for (const [name, value] of parameters) {
    const path = name.replaceAll(']', '').split('[');
    const last = path.pop() ?? '';
    let at = result;
    for (const part of path) {
      at[part] ??= {};
      at = at[part] as Fields;
    }
    at[last] = value;
  }
  return result;
}
