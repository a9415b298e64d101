import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { DomainError } from '../../../../base/errors.ts';
import type { FileRequest } from '../../protocol/agentRequests.ts';
import type { ChannelStream } from '../../protocol/channelStream.ts';
import type { Agent } from '../agent.ts';
import { flagOf, notFoundHere, numberOf, type Route, send } from './answers.ts';
import { entryOf, fileHeadOf, pageOf, writtenOf } from './fileAnswers.ts';

const deadlineMs = 55_000;
const silenceMs = 60_000;
/** The deadline of a whole write, one day. Before it, only silence ends a write. */
const longestWriteMs = 86_400_000;

export async function fileRoute(agent: Agent, req: IncomingMessage, res: ServerResponse, route: Route): Promise<void> {
  const [, what, more] = route.path;
  if (more !== undefined) throw notFoundHere();
  const path = pathOf(route, 'path');
  const ask = (request: FileRequest) => agent.ask<unknown>(request, { deadlineMs });
  switch (`${req.method} ${what ?? ''}`) {
    case 'GET ':
      return sendFile(agent, req, res, path);
    case 'PUT ':
      return takeFile(agent, req, res, route, path);
    case 'DELETE ':
      await ask({ kind: 'file.delete', path, recursive: flagOf(route, 'recursive') });
      return send(res, 200, {});
    case 'GET stat':
      return send(res, 200, entryOf(await ask({ kind: 'file.stat', path })));
    case 'GET list': {
      const after = route.query.get('after')?.toString();
      const limit = numberOf(route, 'limit') ?? 1_000;
      return send(
        res,
        200,
        pageOf(await ask({ kind: 'file.list', path, limit, ...(after !== undefined && { after }) })),
      );
    }
    case 'POST move':
      await ask({ kind: 'file.move', path, to: pathOf(route, 'to'), replace: flagOf(route, 'replace') });
      return send(res, 200, {});
    case 'POST folder':
      await ask({ kind: 'file.folder', path, parents: flagOf(route, 'parents') });
      return send(res, 201, {});
    default:
      throw notFoundHere();
  }
}

async function sendFile(agent: Agent, req: IncomingMessage, res: ServerResponse, path: string): Promise<void> {
  const part = partOf(req.headers.range);
  const { stream, answer } = await agent.open({ kind: 'file.read', path, ...part }, { deadlineMs });
  res.once('close', () => stream.destroy());
  const { size, mode, modifiedAt, etag, start, end } = fileHeadOf(answer);
  // An empty file has no parts.
  const isPart = part !== undefined && end > start;
  res.writeHead(isPart ? 206 : 200, {
    'content-type': 'application/octet-stream',
    'content-length': end - start,
    'last-modified': new Date(modifiedAt).toUTCString(),
    'x-file-modified': modifiedAt,
    'x-file-mode': mode.toString(8),
    etag,
    ...(isPart && { 'content-range': `bytes ${start}-${end - 1}/${size}` }),
  });
  await pipeline(exactly(stream, end - start), res);
}

/** Passes the agent's bytes on. Throws if the agent sends more or fewer bytes than it announced. */
async function* exactly(stream: ChannelStream, length: number): AsyncGenerator<Buffer> {
  let sent = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    sent += chunk.length;
    if (sent > length) break;
    yield chunk;
  }
  if (sent !== length) throw new Error('The agent sent another number of bytes than it announced.');
}

async function takeFile(
  agent: Agent,
  req: IncomingMessage,
  res: ServerResponse,
  route: Route,
  path: string,
): Promise<void> {
  const mode = route.query.get('mode')?.toString();
  if (mode !== undefined && !/^[0-7]{1,4}$/.test(mode)) {
    throw new DomainError('invalid', 'QUERY_INVALID', 'The mode is not an octal number.');
  }
  const request: FileRequest = {
    kind: 'file.write',
    path,
    parents: flagOf(route, 'parents'),
    ifNew: req.headers['if-none-match'] === '*',
    ...(req.headers['if-match'] !== undefined && { ifMatch: req.headers['if-match'] }),
    ...(mode !== undefined && { mode: Number.parseInt(mode, 8) }),
  };
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), silenceMs);
  const watched = async function* (body: AsyncIterable<Buffer>) {
    for await (const chunk of body) {
      timer.refresh();
      yield chunk;
    }
  };
  try {
    const { stream, answer } = await agent.open(request, {
      deadlineMs: longestWriteMs,
      signal: silence.signal,
      send: (opened) => void pipeline(req, watched, opened).catch(() => opened.destroy()),
    });
    stream.resume();
    const written = writtenOf(answer);
    send(res, written.isNew ? 201 : 200, written);
  } finally {
    clearTimeout(timer);
    // After a refusal the rest of the body is discarded, so that the client reads the refusal.
    req.resume();
  }
}

/** The requested range. Ranges that are not supported are ignored. */
function partOf(header: string | undefined) {
  const range = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '');
  if (range === null) return undefined;
  const [, first = '', last = ''] = range;
  if (first === '') return last === '' ? undefined : { suffix: Number(last) };
  if (last !== '' && Number(last) < Number(first)) return undefined;
  return { start: Number(first), ...(last !== '' && { end: Number(last) }) };
}

function pathOf({ query }: Route, name: string): string {
  const bytes = query.get(name);
  if (bytes !== undefined && bytes.length > 0 && bytes.length < 4_096 && !bytes.includes(0))
    return bytes.toString('base64');
  throw new DomainError('unprocessable', 'PATH_INVALID', 'The path is invalid.');
}
