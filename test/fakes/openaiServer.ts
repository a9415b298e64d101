import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { setImmediate as nextTurnOfEventLoop, setTimeout as sleep } from 'node:timers/promises';
import { anthropicWire } from './anthropicWire.ts';
import { chatCompletionsWire } from './chatCompletionsWire.ts';
import { type Played, play } from './player.ts';
import { responsesWire } from './responsesWire.ts';
import { type FakeRequest, type FakeRequestBody, type FakeScript, scriptOf } from './script.ts';
import type { Wire } from './wire.ts';

const wires: Record<string, (id: string, model: string) => Wire> = {
  '/v1/chat/completions': chatCompletionsWire,
  '/v1/responses': responsesWire,
  '/v1/messages': anthropicWire,
};

interface EmbeddingsBody {
  input: string | number[] | (string | number[])[];
  dimensions?: number;
}

/**
 * Vectors that begin with the length of the text or of its token ids. The text `fail 400` fails with that status, and
 * `count 5` counts as 5 tokens, or whatever else stands there.
 */
function embed({ input, dimensions = 4 }: EmbeddingsBody, response: ServerResponse): void {
  const inputs = typeof input === 'string' || typeof input[0] === 'number' ? [input] : input;
  const failure = /^fail (\d{3})$/.exec(String(inputs[0]))?.[1];
  response.writeHead(Number(failure ?? 200), { 'content-type': 'application/json' });
  if (failure !== undefined) return void response.end(JSON.stringify({ error: { message: 'As asked.' } }));
  const lengths = inputs.map((one) => (one as string | number[]).length);
  const data = lengths.map((length, index) => {
    return { object: 'embedding', index, embedding: [length, 0, ...Array(dimensions - 2).fill(0.25)] };
  });
  const counted = /^count (\S+)/.exec(String(inputs[0]))?.[1];
  const tokens = counted ?? lengths.reduce((sum, length) => sum + length, 0);
  response.end(`{"object":"list","data":${JSON.stringify(data)},"usage":{"prompt_tokens":${tokens}}}`);
}

export interface RecordedRequest extends FakeRequest, Played {
  receivedMs: number;
  /** When the exchange ended, and whether the client ended it early. */
  closedMs?: number;
  closedByClient: boolean;
}

export interface FakeProvider {
  /** The base URL of all three APIs. */
  url: string;
  requests: RecordedRequest[];
  openConnections(): number;
  /** Scripts for the next requests. They come before `respond` and the script in the request itself. */
  enqueue(...scripts: FakeScript[]): void;
  /** Resolves once the server has seen the end of the exchange. */
  closed(request: RecordedRequest): Promise<RecordedRequest>;
  /** Resolves with the n-th request (from 0), once it has arrived. */
  request(index: number): Promise<RecordedRequest>;
  /** Closes idle connections, as servers do after a while, and waits until they are closed. */
  dropIdleConnections(): Promise<void>;
  /** What embeddings wait for before they are answered. Replace it to hold them up. */
  beforeEmbedding(): Promise<void>;
  /** Forgets recorded requests and queued scripts. */
  reset(): void;
  stop(): Promise<void>;
}

/**
 * A provider on a loopback port with the streaming APIs of OpenAI (chat completions and responses) and Anthropic. Its
 * scripts decide how well or badly it behaves.
 */
export async function startFakeProvider(
  options: { port?: number; respond?: (request: FakeRequest) => FakeScript | undefined } = {},
): Promise<FakeProvider> {
  const requests: RecordedRequest[] = [];
  const queue: FakeScript[] = [];
  const sockets = new Set<Socket>();
  const changes = new EventTarget();
  const changed = () => changes.dispatchEvent(new Event('change'));

  async function answer(incoming: IncomingMessage, response: ServerResponse) {
    const path = incoming.url ?? '/';
    if (path === '/v1/embeddings') {
      const body = (await json(incoming)) as EmbeddingsBody;
      await provider.beforeEmbedding();
      return embed(body, response);
    }
    const makeWire = wires[path];
    if (makeWire === undefined || incoming.method !== 'POST') return control(path, incoming, response);
    const body = (await json(incoming)) as FakeRequestBody;
    const request: RecordedRequest = {
      path,
      headers: incoming.headers,
      body,
      receivedMs: performance.now(),
      closedByClient: false,
      deltasSent: 0,
      bytesSent: 0,
    };
    requests.push(request);
    const gone = new AbortController();
    response.once('close', () => {
      gone.abort();
      request.closedMs = performance.now();
      request.closedByClient = !response.writableFinished;
      changed();
    });
    changed();
    const script = queue.shift() ?? options.respond?.(request) ?? scriptOf(body);
    if (script.headersDelayMs) await sleep(script.headersDelayMs, undefined, { signal: gone.signal }).catch(() => {});
    if (response.destroyed) return;
    const wire = makeWire(script.id ?? `fake_${requests.length}`, body.model);
    if (script.status !== undefined) {
      response.writeHead(script.status, { 'content-type': 'application/json', ...script.headers });
      response.end(script.body ?? wire.errorBody(script.status));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', ...script.headers });
    response.flushHeaders();
    await play(script, wire, response, request);
  }

  /** Lets another process inspect and control the fake over HTTP. */
  async function control(path: string, incoming: IncomingMessage, response: ServerResponse) {
    if (path === '/fake/enqueue') queue.push(...((await json(incoming)) as FakeScript[]));
    else if (path !== '/fake/stats') response.statusCode = 404;
    const open = requests.filter((request) => request.closedMs === undefined).length;
    response.end(
      JSON.stringify({
        requests: requests.length,
        open,
        closedByClient: requests.filter((r) => r.closedByClient).length,
      }),
    );
  }

  const until = async <T>(look: () => T | undefined): Promise<T> => {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await once(changes, 'change');
    }
  };

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.on('connection', (socket) => {
    socket.setNoDelay(true);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');

  const provider: FakeProvider = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    openConnections: () => sockets.size,
    enqueue: (...scripts) => void queue.push(...scripts),
    closed: (request) => until(() => (request.closedMs === undefined ? undefined : request)),
    request: (index) => until(() => requests[index]),
    async dropIdleConnections() {
      server.closeIdleConnections();
      while (sockets.size > 0) await nextTurnOfEventLoop();
    },
    beforeEmbedding: () => Promise.resolve(),
    reset() {
      requests.length = 0;
      queue.length = 0;
    },
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
  return provider;
}
