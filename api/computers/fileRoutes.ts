import { posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import { DomainError } from '../../base/errors.ts';
import { driveInside, home } from '../../integrations/computers/drivers/bubblewrap/view.ts';
import type { FileContent, HostClient, WriteFileRequest } from '../../integrations/computers/hostClient.ts';
import type { ComputerRef } from '../../integrations/computers/liveComputers.ts';
import type { FileEntry } from '../../integrations/computers/types.ts';
import { contentDisposition } from '../../integrations/storage/disposition.ts';
import { getComputer } from '../../models/computers/computer.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { isNotModified, wantedRange } from '../frame/conditionalRead.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { streamingRoute } from '../frame/multipart.ts';
import { bodyOf, pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { requireStillAllowed } from '../frame/stillAllowed.ts';
import { time } from '../frame/times.ts';

const anyFile = 'application/octet-stream';

/** Files of a computer. They are opened inside it. Reads do not wake it. */
export function computerFileRoutes(deps: RouteDeps) {
  const { liveComputers } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/computers/:computerId/files';

  router.get(base, async (req, res) => {
    const ref = pathOf<'readComputerFile'>(req);
    const { path } = queryOf<'readComputerFile'>(req);
    const client = await liveComputers.unpaused(ref);
    await sendFile(req, res, client, path).catch(async (error: unknown) => {
      throw await inAbsentDrive(deps, error, ref, path);
    });
  });

  const put = streamingRoute(async (req, res) => {
    const { path, mode, parents = false } = queryOf<'writeComputerFile'>(req);
    const client = await liveComputers.awake(pathOf<'writeComputerFile'>(req), actorOf(req));
    const options: WriteFileRequest = { parents, ...conditionOf(req) };
    if (mode !== undefined) options.mode = Number.parseInt(mode, 8);
    try {
      const { size, etag, isNew } = await client.writeFile(path, bytesOf(deps, req), options);
      res.set({ etag });
      answer<'writeComputerFile'>(res, 200, { path, size, etag, isNew });
    } catch (error) {
      // The sender has gone, and nothing was written.
      if (req.destroyed && !req.complete) res.destroy();
      else throw inMissingFolder(error, path);
    }
  });
  router.put(base, put);

  router.delete(base, async (req, res) => {
    const { path, recursive = false } = queryOf<'deleteComputerFile'>(req);
    const client = await liveComputers.awake(pathOf<'deleteComputerFile'>(req), actorOf(req));
    await client.deleteFile(path, { recursive });
    res.status(204).end();
  });

  router.get(`${base}/list`, async (req, res) => {
    const { path = '.' } = queryOf<'listComputerFiles'>(req);
    const { limit, cursor } = pageOf(req);
    const ref = pathOf<'listComputerFiles'>(req);
    const client = await liveComputers.unpaused(ref);
    const listing = client.listFiles(path, { limit, ...(cursor !== undefined && { after: cursor }) });
    const { entries, nextCursor } = await listing.catch(async (error: unknown) => {
      throw await inAbsentDrive(deps, error, ref, path);
    });
    answer<'listComputerFiles'>(res, 200, { data: entries.map(presentEntry), nextCursor });
  });

  router.post(`${base}/folders`, async (req, res) => {
    const client = await liveComputers.awake(pathOf<'createComputerFolder'>(req), actorOf(req));
    await client.makeFolder(bodyOf<'createComputerFolder'>(req).path, { parents: true });
    res.status(204).end();
  });

  router.post(`${base}/move`, async (req, res) => {
    const { from, to, replace = false } = bodyOf<'moveComputerFile'>(req);
    const client = await liveComputers.awake(pathOf<'moveComputerFile'>(req), actorOf(req));
    await client.moveFile(from, to, { replace });
    res.status(204).end();
  });

  return router;
}

/** A missing file means here that the target's folder is missing. */
function inMissingFolder(error: unknown, path: string): unknown {
  if (!(error instanceof DomainError) || error.code !== 'FILE_NOT_FOUND') return error;
  const advice = 'Create the folder first, or write with parents=true.';
  return new DomainError('notFound', 'FOLDER_NOT_FOUND', `There is no folder ${posix.dirname(path)}. ${advice}`);
}

/** A computer that does not run does not have the drive. So a file that is missing there may be in the drive. */
async function inAbsentDrive(
  { database }: Pick<RouteDeps, 'database'>,
  error: unknown,
  { spaceId, computerId }: ComputerRef,
  path: string,
): Promise<unknown> {
  if (!(error instanceof DomainError) || error.code !== 'FILE_NOT_FOUND') return error;
  const inDrive = posix.relative(driveInside, posix.resolve(home, path));
  if (inDrive === '' || inDrive.startsWith('..')) return error;
  if ((await getComputer(database, spaceId, computerId)).status === 'running') return error;
  const advice = `Wake it, or use /api/spaces/${spaceId}/drive/items?path=${encodeURIComponent(`/${inDrive}`)}.`;
  const detail = `The computer does not run, so it does not have the drive of the space. ${advice}`;
  return new DomainError('notFound', 'FILE_NOT_FOUND', detail);
}

/**
 * The body as it comes. The sender decides how long that takes, so at its end we check again that the sender may still
 * write.
 */
async function* bytesOf(deps: RouteDeps, req: Request): AsyncGenerator<Buffer> {
  // A refusal may come before the end of the body, and must reach the sender.
  for await (const chunk of req.iterator({ destroyOnReturn: false })) yield chunk as Buffer;
  await requireStillAllowed(deps, req);
}

function conditionOf(req: Request): Pick<WriteFileRequest, 'ifMatch' | 'ifNew'> {
  const ifMatch = req.get('if-match');
  const none = req.get('if-none-match');
  if (none !== undefined && none.trim() !== '*') {
    throw new DomainError(
      'invalid',
      'CONDITION_UNKNOWN',
      'If-None-Match accepts only `*` here. It writes the file only if there is none yet.',
    );
  }
  return { ...(ifMatch !== undefined && { ifMatch }), ...(none !== undefined && { ifNew: true }) };
}

async function sendFile(req: Request, res: Response, client: HostClient, path: string): Promise<void> {
  const gone = goneOf(res);
  let file: FileContent = await client.readFile(path, { signal: gone });
  try {
    const { etag, size } = file;
    const modifiedAt = new Date(file.modifiedAt);
    res.set({ etag, 'last-modified': modifiedAt.toUTCString(), 'cache-control': 'private, no-cache' });
    if (isNotModified(req, { etag, modifiedAt })) return void res.status(304).end();
    const range = wantedRange(req, res, size, etag);
    if (range !== undefined) {
      file.body.destroy();
      file = await client.readFile(path, { range, signal: gone });
      // The file may have changed meanwhile.
      const { start, end } = file.range ?? range;
      res.status(206).set({ etag: file.etag, 'content-range': `bytes ${start}-${end}/${file.size}` });
    }
    const length = file.range === undefined ? file.size : file.range.end - file.range.start + 1;
    res.set({
      'content-length': String(length),
      'content-type': anyFile,
      'content-disposition': contentDisposition({ name: nameOf(path), contentType: anyFile }, true),
      'accept-ranges': 'bytes',
    });
    if (req.method === 'HEAD') return void res.end();
    await pipeline(file.body, res);
  } catch (error) {
    if (!res.headersSent) throw error;
    // Break off, so that the reader sees that the file is incomplete.
    res.destroy();
  } finally {
    file.body.destroy();
  }
}

function nameOf(path: string): string {
  return path.split('/').findLast((part) => part !== '') ?? 'file';
}

function presentEntry({ name, type, size, mode, modifiedAt, target }: FileEntry) {
  const entry = { name, type, size, mode: mode.toString(8), modifiedAt: time(new Date(modifiedAt)) };
  return { ...entry, target: target ?? null };
}
