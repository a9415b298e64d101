import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { DomainError } from '../../../base/errors.ts';
import { jsonOf, notFoundHere, send, sendProblem } from '../holder/http/answers.ts';
import { problemFrom } from '../protocol/holderHttp.ts';
import type { DriveBackend, DriveWrite } from './backend.ts';
import { smallFilesOf } from './smallFiles.ts';
import { Successions } from './successions.ts';

type Failed = (error: unknown) => void;

interface Asked {
  backend: DriveBackend;
  failed: Failed;
  computerId: string;
  query: URLSearchParams;
  req: IncomingMessage;
  res: ServerResponse;
}

const maxJsonBytes = 64 * 1_024;
/** The longest that a request for changes may wait. */
const mostWaitMs = 60_000;
const headersMs = 10_000;
const pattern = /^\/computers\/([\w-]{1,64})\/(\w+)$/;

/** The HTTP server that the drives' daemon asks. Only root, or Atrium's own user, reaches its socket. */
export function createBackendServer(backend: DriveBackend, failed: Failed): Server {
  const successions = new Successions();
  // A transfer may take long.
  return createServer({ requestTimeout: 0, headersTimeout: headersMs }, (req, res) => {
    const process = req.headers['atrium-process']?.toString();
    successions
      .run(process, () => answer({ backend, failed, req, res }))
      .catch((error: unknown) => {
        // What the daemon breaks off, it asks again.
        sendProblem(res, refusalOf(error, res.destroyed ? () => undefined : failed));
      });
  });
}

function refusalOf(error: unknown, failed: Failed): DomainError {
  if (error instanceof DomainError) return error;
  failed(error);
  return new DomainError('unavailable', 'DRIVE_FAILED', 'The drive cannot be used now.', { retryAfterSeconds: 1 });
}

async function answer(asked: Omit<Asked, 'computerId' | 'query'>): Promise<void> {
  const { req } = asked;
  const { pathname, searchParams: query } = new URL(req.url ?? '', 'http://backend');
  const [, computerId, name] = pattern.exec(pathname) ?? [];
  const route = routes[`${req.method} ${name}`];
  if (computerId === undefined || route === undefined) throw notFoundHere();
  await route({ ...asked, computerId, query });
}

const routes: Record<string, (asked: Asked) => Promise<void>> = {
  'GET root': async ({ backend, computerId, res }) => send(res, 200, await backend.root(computerId)),

  async 'GET children'({ backend, computerId, query, res }) {
    const after = query.get('after') || undefined;
    send(res, 200, await backend.children(computerId, textIn(query, 'folderId'), after));
  },

  async 'GET content'({ backend, computerId, query, req, res }) {
    const version = query.has('version') ? numberIn(query, 'version') : undefined;
    const { size, open } = await backend.content(computerId, textIn(query, 'itemId'), version);
    const range = rangeOf(req, size);
    const bytes = await open(range);
    const length = range === undefined ? size : range.end - range.start + 1;
    const part = range && { 'content-range': `bytes ${range.start}-${range.end}/${size}` };
    res.writeHead(range === undefined ? 200 : 206, { 'content-length': length, ...part });
    await bytes.sendTo(res);
  },

  async 'PUT files'({ backend, computerId, query, req, res }) {
    send(res, 200, await backend.write(computerId, writeIn(query, req), req));
  },

  async 'POST files'({ backend, computerId, req, res, failed }) {
    const done = await backend.writeSmall(computerId, await smallFilesOf(req));
    const files = done.map((each) => (each instanceof Error ? problemFrom(refusalOf(each, failed)) : each));
    send(res, 200, { files });
  },

  async 'POST folders'({ backend, computerId, req, res }) {
    const { id, parentId, name } = await bodyOf(req);
    send(res, 200, await backend.make(computerId, { id: text(id), parentId: text(parentId), name: text(name) }));
  },

  async 'POST symlinks'({ backend, computerId, req, res }) {
    const { id, parentId, name, target } = await bodyOf(req);
    const made = { id: text(id), parentId: text(parentId), name: text(name), target: text(target) };
    send(res, 200, await backend.make(computerId, made));
  },

  async 'POST move'({ backend, computerId, req, res }) {
    const { itemId, parentId, name, replace } = await bodyOf(req);
    const change = { itemId: text(itemId), parentId: text(parentId), name: text(name), replace: replace === true };
    send(res, 200, await backend.move(computerId, change));
  },

  async 'POST trash'({ backend, computerId, req, res }) {
    const { itemId, onlyIfEmpty, removedSinceMs } = await bodyOf(req);
    const since = typeof removedSinceMs === 'number' ? removedSinceMs : undefined;
    const change = { itemId: text(itemId), onlyIfEmpty: onlyIfEmpty === true, removedSinceMs: since };
    send(res, 200, await backend.trash(computerId, change));
  },

  async 'POST attributes'({ backend, computerId, req, res }) {
    const { itemId, modifiedAtMs, executable } = await bodyOf(req);
    const change = {
      itemId: text(itemId),
      ...(typeof modifiedAtMs === 'number' && { modifiedAtMs }),
      ...(typeof executable === 'boolean' && { executable }),
    };
    send(res, 200, await backend.attributes(computerId, change));
  },

  async 'GET changes'({ backend, computerId, query, res }) {
    const gone = new AbortController();
    res.once('close', () => gone.abort());
    const waitMs = Math.min(numberIn(query, 'waitMs'), mostWaitMs);
    const since = { after: numberIn(query, 'after'), epoch: query.get('epoch') || undefined };
    const news = await backend.changes(computerId, since, waitMs, gone.signal);
    send(res, 200, news);
  },
};

function writeIn(query: URLSearchParams, req: IncomingMessage): DriveWrite {
  const itemId = query.get('itemId');
  const session = query.get('session');
  const length = req.headers['content-length'];
  return {
    parentId: textIn(query, 'parentId'),
    name: textIn(query, 'name'),
    ...(itemId && { known: { itemId, version: numberIn(query, 'baseVersion') } }),
    modifiedAtMs: numberIn(query, 'modifiedAtMs'),
    executable: query.get('executable') === 'true',
    ...(session && { session }),
    sizeBytes: length === undefined ? Number.POSITIVE_INFINITY : Number(length),
  };
}

const bodyOf = (req: IncomingMessage) => jsonOf(req, maxJsonBytes);

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new DomainError('invalid', 'BODY_INVALID', 'The body lacks a text.');
}

function textIn(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (value !== null && value !== '') return value;
  throw new DomainError('invalid', 'QUERY_INVALID', `The parameter ${name} is missing.`);
}

function numberIn(query: URLSearchParams, name: string): number {
  const value = Number(query.get(name) ?? '');
  if (query.has(name) && Number.isSafeInteger(value)) return value;
  throw new DomainError('invalid', 'QUERY_INVALID', `The parameter ${name} is not a whole number.`);
}

/** The range that the daemon asks for, clipped to the end of the file. */
function rangeOf({ headers }: IncomingMessage, size: number): { start: number; end: number } | undefined {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
  if (first === undefined) return undefined;
  const start = Number(first);
  const end = Math.min(last ? Number(last) : Number.POSITIVE_INFINITY, size - 1);
  if (start <= end) return { start, end };
  throw new DomainError('rangeNotSatisfiable', 'RANGE_NOT_SATISFIABLE', `The file has ${size} bytes.`);
}
