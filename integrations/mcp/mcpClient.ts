import { ReadableStream } from 'node:stream/web';
import { DomainError } from '../../base/errors.ts';
import { limited } from '../http/limitedFetch.ts';
import { onFirstUse } from '../onFirstUse.ts';
import { hintsOf, type ToolHints } from './toolHints.ts';

export interface McpEndpoint {
  url: string;
  headers: Record<string, string>;
  /** Goes through the egress guard. */
  fetch: typeof globalThis.fetch;
  signal: AbortSignal;
  /** Awaited before more than 4 MB of a response are read. */
  admitLarge?(): Promise<void>;
}

/** A tool as the server describes it; its hints are only hints, with the defaults of MCP's ToolAnnotations. */
export interface DescribedTool extends ToolHints {
  name: string;
  description?: string;
  inputSchema: Record<string, unknown>;
}

/** A call's result: parts of text, images, resources, or one structure. */
export interface McpResult {
  isError: boolean;
  output: unknown;
}

const loadLibrary = onFirstUse(() => import('@ai-sdk/mcp'));

const maxPages = 50;
const maxTools = 500;
const largeBytes = 4 * 1_000_000;
/** A result of 100 MB, plus what JSON and base64 add to it. */
const maxResponseBytes = 140 * 1_000_000;

/** The tools of an MCP server, over streamable HTTP. */
export async function listMcpTools(endpoint: McpEndpoint): Promise<DescribedTool[]> {
  return withClient(endpoint, async (client, options) => {
    const tools: DescribedTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < maxPages && tools.length < maxTools; page++) {
      const listed = await client.listTools({ params: cursor === undefined ? undefined : { cursor }, options });
      for (const { name, description, inputSchema, annotations } of listed.tools) {
        tools.push({
          name,
          ...(description !== undefined && { description }),
          inputSchema: { ...inputSchema, type: 'object' },
          ...hintsOf(annotations),
        });
      }
      cursor = listed.nextCursor;
      if (cursor === undefined) break;
    }
    return tools.slice(0, maxTools);
  });
}

/** Calls a tool once: the caller knows whether an interrupted call may be repeated. */
export async function callMcpTool(
  endpoint: McpEndpoint,
  call: { name: string; input: Record<string, unknown> },
): Promise<McpResult> {
  return withClient(endpoint, async (client, options) => {
    const result = (await client.callTool({ name: call.name, arguments: call.input, options })) as {
      isError?: boolean;
      content?: { type: string; text?: string }[];
      structuredContent?: unknown;
      toolResult?: unknown;
    };
    const { content = [], structuredContent, toolResult } = result;
    const texts = content.filter((part) => part.type === 'text');
    const onlyText = texts.length === content.length && texts.length > 0;
    const said = onlyText ? texts.map(({ text }) => text ?? '').join('\n') : content;
    return { isError: result.isError === true, output: structuredContent ?? toolResult ?? said };
  });
}

type Client = Awaited<ReturnType<Awaited<ReturnType<typeof loadLibrary>>['createMCPClient']>>;

async function withClient<T>(
  { url, headers, fetch, signal, admitLarge }: McpEndpoint,
  work: (client: Client, options: { signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const { createMCPClient } = await loadLibrary();
  // On its own, the client keeps waiting for an answer whose stream has broken off.
  const broken = new AbortController();
  const options = { signal: AbortSignal.any([signal, broken.signal]) };
  const client = await createMCPClient({
    transport: { type: 'http', url, headers, fetch: watched(fetch, broken, admitLarge), redirect: 'error' },
    clientName: 'atrium',
    initializationOptions: options,
    maxRetries: 0,
    // Errors outside of a request are reported by the request.
    onUncaughtError: () => undefined,
  });
  try {
    return await work(client, options);
  } catch (error) {
    throw broken.signal.aborted ? broken.signal.reason : error;
  } finally {
    await client.close().catch(() => undefined);
  }
}

/**
 * Aborts `broken` when an answer breaks off. Cuts off an endless answer, and reads a large one only when it is
 * admitted.
 */
function watched(
  fetch: typeof globalThis.fetch,
  broken: AbortController,
  admitLarge: () => Promise<void> = () => Promise.resolve(),
): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { body, status, headers } = response;
    if (body === null) return response;
    // Only unsolicited messages of the server come this way, and the call does not need them.
    if (init?.method !== 'POST') return limited(response, largeBytes, tooLarge);
    async function* read(from: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      let bytes = 0;
      try {
        for await (const chunk of from) {
          bytes += chunk.length;
          if (bytes > largeBytes) await admitLarge();
          if (bytes > maxResponseBytes) throw tooLarge();
          yield chunk;
        }
      } catch (error) {
        broken.abort(error);
        throw error;
      }
    }
    const stream = ReadableStream.from(read(body));
    return new Response(stream as never, { status, headers: Object.fromEntries(headers) });
  };
}

function tooLarge(): DomainError {
  return new DomainError('tooLarge', 'TOOL_RESULT_TOO_LARGE', 'The result is larger than 100 MB. Ask for less of it.');
}
