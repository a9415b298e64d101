import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { DomainError } from '../../base/errors.ts';
import { Places } from '../../base/places.ts';
import { guardedFetch } from '../../integrations/egress/fetch.ts';
import { Spool } from '../../integrations/storage/spool.ts';
import { attachById, readDataUrl } from '../../models/chat/attachments.ts';
import type { ImportedMessage } from '../../models/chat/importHistory.ts';
import type { StoredPart } from '../../models/chat/message.ts';
import { keepSentFile, prepareThread } from '../../models/chat/sentFiles.ts';
import type { Thread } from '../../models/chat/thread.ts';
import { type Caller, requireScope } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { type GivenFile, isRemote, storedIdOf } from './givenFiles.ts';

/** A shorter `data:` URL stays in its message, as long as all of them together are not much longer. */
const maxInlineCharacters = 64 * 1_024;
const maxInlineOfAll = 512 * 1_024;
/** For one request. Each file is fetched once, and all at the same time. */
const maxRemoteFiles = 20;
const maxRemoteBytes = 20_000_000;
/** All together, as much as a body may bring. */
const maxRemoteOfAll = 32 * 2 ** 20;
const fetchMs = 20_000;
/** Requests of a user whose files are fetched and stored at once. Their bytes are on the disk meanwhile. */
const fetching = new Places({ all: Number.POSITIVE_INFINITY, perOwner: 2 });

interface Messages {
  history: readonly ImportedMessage[];
  news: readonly StoredPart[];
}

/** The messages of a request, with their files where a turn finds them. */
export interface KeptMessages {
  history: ImportedMessage[];
  news: StoredPart[];
  /** The id of the thread that was made for them, if there was none. */
  prepared?: string;
}

type Home = Pick<Thread, 'id' | 'spaceId' | 'userId'>;

/** Whether all files of these messages stay within them. */
export function areInline(history: readonly ImportedMessage[]): boolean {
  return notInline(filesIn({ history, news: [] })).size === 0;
}

/**
 * Stores the files of messages in their thread: long ones, and those that are given by an address, which are fetched by
 * the rules of the space. Throws 400 `FILE_NOT_FETCHED` or `FILE_NOT_FOUND`, and 403 for a key without the scope for
 * it.
 */
export async function keepFiles(
  deps: RouteDeps,
  caller: Caller,
  messages: Messages,
  where: { spaceId: string; threadId: string | undefined },
): Promise<KeptMessages> {
  const history = [...messages.history];
  const news = [...messages.news];
  const elsewhere = notInline(filesIn(messages));
  if (elsewhere.size === 0) return { history, news };
  const { spaceId, threadId } = where;
  await using held = new AsyncDisposableStack();
  if ([...elsewhere.keys()].some(isRemote)) held.use(await fetching.take({ owner: caller.userId }));
  const loaded = await loadAll(deps, caller, { files: [...elsewhere.values()], spaceId, held });
  const { userId } = caller;
  const isPrepared = threadId === undefined && loaded.some(({ file }) => 'open' in file);
  const prepared = isPrepared ? await prepareThread(deps.database, { spaceId, userId }) : undefined;
  const home = { id: prepared?.id ?? threadId ?? '', spaceId, userId };
  const kept = new Map<string, StoredPart>();
  for (const { url, file } of loaded) kept.set(url, 'open' in file ? await store(deps, home, file) : file);
  const place = (part: StoredPart) => (part.type === 'file' ? (kept.get(part.url) ?? part) : part);
  return {
    history: history.map(({ role, parts }) => ({ role, parts: parts.map(place) })),
    news: news.map(place),
    ...(prepared && { prepared: prepared.id }),
  };
}

function filesIn({ history, news }: Messages): GivenFile[] {
  return [...history.flatMap(({ parts }) => parts), ...news].filter((part) => part.type === 'file');
}

/** The files that do not stay in their messages, by their URLs. */
function notInline(files: readonly GivenFile[]): Map<string, GivenFile> {
  let inline = 0;
  const elsewhere = new Map<string, GivenFile>();
  for (const file of files) {
    const { url } = file;
    const stays = url.startsWith('data:') && url.length <= maxInlineCharacters && inline + url.length <= maxInlineOfAll;
    if (stays) inline += url.length;
    else elsewhere.set(url, file);
  }
  return elsewhere;
}

interface Bytes {
  fileName: string;
  size: number;
  sha256: Buffer;
  open(): AsyncIterable<Buffer>;
}

interface Loaded {
  url: string;
  /** Its bytes, or the part that stands for it already. */
  file: Bytes | StoredPart;
}

async function loadAll(
  deps: RouteDeps,
  caller: Caller,
  { files, spaceId, held }: { files: readonly GivenFile[]; spaceId: string; held: AsyncDisposableStack },
): Promise<Loaded[]> {
  const remote = files.filter(({ url }) => isRemote(url));
  if (remote.length > 0) requireScope(caller, 'web', ', which fetching files takes');
  if (remote.length > maxRemoteFiles) {
    throw new DomainError('invalid', 'TOO_MANY_FILES', `At most ${maxRemoteFiles} files of a request are fetched.`);
  }
  if (files.some(({ url }) => storedIdOf(url) !== undefined)) {
    requireScope(caller, 'drive:read', ', which attaching files takes');
  }
  const owner = await deps.egressRules.owner(spaceId, 'attachment');
  await using guarded = guardedFetch(deps.egressGuard, owner, { idleTimeoutMs: fetchMs });
  const folder = join(deps.config.dataDir, 'cache');
  const fetched: Fetching = { fetch: guarded.fetch, folder, held, bytes: 0, failed: new AbortController() };
  const loading = files.map(async ({ url, filename = 'unnamed' }): Promise<Loaded> => {
    const id = storedIdOf(url);
    if (id !== undefined) return { url, file: await attachById(deps.database, { spaceId, id }) };
    if (isRemote(url)) return { url, file: await fetchFile(fetched, url) };
    const bytes = readDataUrl(url) ?? Buffer.alloc(0);
    const sha256 = createHash('sha256').update(bytes).digest();
    return { url, file: { fileName: filename, size: bytes.length, sha256, open: () => Readable.from([bytes]) } };
  });
  for (const one of loading) one.catch((error: unknown) => fetched.failed.abort(error));
  // Nothing is left that writes once the files are removed.
  await Promise.allSettled(loading);
  fetched.failed.signal.throwIfAborted();
  return await Promise.all(loading);
}

/** The files of one request, which are fetched at the same time. */
interface Fetching {
  fetch: typeof globalThis.fetch;
  /** Where they are until they are stored. */
  folder: string;
  held: AsyncDisposableStack;
  /** The bytes of all files so far. */
  bytes: number;
  /** Aborted with the error of the first file that fails: the request is refused then. */
  failed: AbortController;
}

async function fetchFile(all: Fetching, url: string): Promise<Bytes> {
  const { host, pathname } = new URL(url);
  const notFetched = (why: string) => {
    return new DomainError('invalid', 'FILE_NOT_FETCHED', `The file at ${host.slice(0, 200)} was not fetched: ${why}.`);
  };
  const spool = all.held.use(await Spool.open(all.folder));
  const sha256 = createHash('sha256');
  const late = AbortSignal.timeout(fetchMs);
  const signal = AbortSignal.any([late, all.failed.signal]);
  let diskError: unknown;
  try {
    const headers = { 'user-agent': 'Atrium (attachment)' };
    const response = await all.fetch(url, { headers, redirect: 'follow', signal });
    if (!response.ok) throw notFetched(`its server answered ${response.status}`);
    for await (const piece of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      all.bytes += piece.length;
      if (spool.bytes + piece.length > maxRemoteBytes) {
        throw notFetched(`it is larger than ${maxRemoteBytes / 1_000_000} MB`);
      }
      if (all.bytes > maxRemoteOfAll) {
        throw notFetched(`the files of a request may have ${maxRemoteOfAll / 2 ** 20} MiB together`);
      }
      sha256.update(piece);
      await spool.write(piece).catch((error: unknown) => {
        diskError = error;
      });
      if (diskError !== undefined) throw diskError;
    }
    const fileName = pathname.split('/').at(-1) || 'unnamed';
    return { fileName, size: spool.bytes, sha256: sha256.digest(), open: () => spool.read() };
  } catch (error) {
    if (diskError !== undefined) throw diskError;
    if (late.aborted) throw notFetched('its server took too long');
    if (error instanceof DomainError && error.code !== 'FILE_NOT_FETCHED') throw notFetched(lowered(error.message));
    // Other errors may tell of internal hosts.
    throw error instanceof DomainError ? error : notFetched('its server did not answer with valid HTTP');
  }
}

/** A refusal of the egress guard, within a sentence. */
function lowered(message: string): string {
  return message.replace(/\.$/, '');
}

async function store(
  { database, storage, config }: RouteDeps,
  thread: Home,
  { fileName, size, sha256, open }: Bytes,
): Promise<StoredPart> {
  // The same file again has the same name, and takes no more room.
  const extension = /\.[A-Za-z0-9]{1,8}$/.exec(fileName)?.[0] ?? '';
  const name = `${sha256.toString('hex').slice(0, 32)}${extension}`;
  const file = { name, fileName, size, bytes: open() };
  const data = await keepSentFile({ database, storage, limits: config.drive }, thread, file);
  return { type: 'data-file', data };
}
