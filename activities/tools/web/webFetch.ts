import { bytesUpTo } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import { firstOf } from '../../../base/text.ts';
import { guardedFetch } from '../../../integrations/egress/fetch.ts';
import type { DocumentReaders, ReadRequest } from '../../../integrations/readers/documentReaders.ts';
import type { PageText } from '../../../integrations/readers/kinds/page.ts';
import { type EgressDeps, objectSchema, type ServerTool, serverTool } from '../tool.ts';

const maxBodyBytes = 5 * 1_048_576;
const maxCharacters = 40_000;
const textTypes = /^(text\/|application\/(json|xml|xhtml\+xml|javascript|yaml|x-ndjson|[\w.-]+\+(json|xml)))/;

interface Input {
  url: string;
  offset: number;
  raw: boolean;
}

export interface WebFetchDeps extends EgressDeps {
  documents: Pick<DocumentReaders, 'read'>;
}

/** Fetches a page of the public web through the egress guard. */
export function webFetchTool(deps: WebFetchDeps): ServerTool {
  return serverTool<Input>({
    name: 'web_fetch',
    description:
      'Fetches a page or a text from the web by its URL. A page is returned as Markdown without its menus. A long text is cut; pass `nextOffset` as `offset` to read on.',
    access: 'read',
    role: 'viewer',
    scope: 'web',
    timeoutMs: 60_000,
    afterCrash: 'again',
    inputSchema: objectSchema(
      {
        url: { type: 'string', minLength: 1, maxLength: 4_000, description: 'http:// or https://' },
        offset: {
          type: 'integer',
          minimum: 0,
          default: 0,
          description: 'The position of the first character to return.',
        },
        raw: { type: 'boolean', default: false, description: 'Whether to return the page’s HTML instead of its text.' },
      },
      ['url'],
    ),
    async run({ url, offset, raw }, { turn, signal }) {
      const target = parseUrl(url);
      const owner = await deps.egressRules.owner(turn.spaceId, 'web_fetch');
      await using guarded = guardedFetch(deps.egressGuard, owner, { idleTimeoutMs: 30_000 });
      const response = await ask(guarded.fetch, target, signal);
      const type = (response.headers.get('content-type') ?? 'text/plain').toLowerCase();
      const about = { url: response.url || target.href, status: response.status, contentType: type };
      if (!textTypes.test(type)) {
        await response.body?.cancel();
        throw new DomainError('unprocessable', 'NOT_TEXT', `${about.url} is not text (${type}).`);
      }
      const body = await bytesUpTo((response.body ?? []) as AsyncIterable<Uint8Array>, maxBodyBytes);
      const isCut = body.length >= maxBodyBytes;
      const whole = decode(body.subarray(0, maxBodyBytes), type, isCut);
      const isPage = /html/.test(type) && !raw;
      const request = { spaceId: turn.spaceId, signal };
      const page = isPage ? await readPage(deps.documents, whole, request) : { title: null, text: whole, isCut: false };
      const text = firstOf(page.text.slice(offset), maxCharacters);
      const nextOffset = page.text.length > offset + text.length ? offset + text.length : null;
      return { ...about, title: page.title, text, nextOffset, isCut: isCut || page.isCut };
    },
  });
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new DomainError('invalid', 'INVALID_URL', 'The URL must begin with http:// or https://.');
  }
  if (url.username !== '' || url.password !== '') {
    throw new DomainError('invalid', 'INVALID_URL', 'The URL must not contain a user name or a password.');
  }
  return url;
}

/** Network failures get our own words, since the original ones may reveal internal hosts. */
async function ask(fetch: typeof globalThis.fetch, url: URL, signal: AbortSignal): Promise<Response> {
  const headers = {
    accept: 'text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.5',
    'user-agent': 'Atrium (web_fetch)',
  };
  try {
    return await fetch(url, { headers, redirect: 'follow', signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof DomainError) throw error;
    throw new DomainError('upstream', 'FETCH_FAILED', `${url.host} did not answer with valid HTTP.`);
  }
}

async function readPage(documents: WebFetchDeps['documents'], html: string, request: ReadRequest): Promise<PageText> {
  const reading = await documents.read('page', Buffer.from(html), request);
  if (reading.kind === 'read') return reading.value;
  const detail = 'Reading this page takes too much time or memory. Set `raw` to get its HTML instead.';
  throw new DomainError('unprocessable', 'PAGE_TOO_COSTLY', detail);
}

/** A character that was cut at the end is left out. */
function decode(bytes: Buffer, contentType: string, isCut: boolean): string {
  const named = /charset\s*=\s*"?([\w-]+)/.exec(contentType)?.[1];
  const inPage = /<meta[^>]+charset\s*=\s*["']?([\w-]+)/i.exec(bytes.subarray(0, 2_048).toString('latin1'))?.[1];
  try {
    return new TextDecoder(named ?? inPage ?? 'utf-8').decode(bytes, { stream: isCut });
  } catch {
    return new TextDecoder().decode(bytes, { stream: isCut });
  }
}
