import type { Request, Response } from 'express';
import { contentDisposition, servedContentType } from '../../integrations/storage/disposition.ts';
import type { Content } from '../../models/drive/driveItem.ts';
import { isNotModified, wantedRange } from '../frame/conditionalRead.ts';
import type { RouteDeps } from '../frame/deps.ts';

interface Served {
  name: string;
  content: Content & { etag: string; modifiedAt: Date };
  /** As an attachment. */
  download: boolean;
}

/** Streams a file, or the range of it that the request asks for. */
export async function sendContent(
  { storage }: Pick<RouteDeps, 'storage'>,
  req: Request,
  res: Response,
  { name, content, download }: Served,
): Promise<void> {
  const { size, contentType, etag, modifiedAt } = content;
  res.set({ etag, 'last-modified': modifiedAt.toUTCString(), 'cache-control': 'private, no-cache' });
  if (isNotModified(req, content)) return void res.status(304).end();
  const range = wantedRange(req, res, size, etag);
  const length = range === undefined ? size : range.end - range.start + 1;
  const bytes = req.method === 'HEAD' ? undefined : await storage.open(content.objectKey, length, range);
  if (range !== undefined) res.status(206).set('content-range', `bytes ${range.start}-${range.end}/${size}`);
  res.set({
    'content-length': String(length),
    'content-type': servedContentType(contentType),
    'content-disposition': contentDisposition({ name, contentType }, download),
    'accept-ranges': 'bytes',
    // If a browser shows the file after all, it has no origin and runs no scripts.
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; media-src 'self'; sandbox",
  });
  if (bytes === undefined) return void res.end();
  await bytes.sendTo(res);
}
