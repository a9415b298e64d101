import type { Request, Response } from 'express';
import { DomainError } from '../../base/errors.ts';
import type { ByteRange } from '../../integrations/storage/objectStore.ts';

/** Conditional and range requests for a file (RFC 9110 §13 and §14). */

/**
 * Whether to answer 304 because the client already has this content. Express's own `req.fresh` is false for every
 * request with `Cache-Control: no-cache`, which `fetch` adds whenever it sends If-None-Match.
 */
export function isNotModified(req: Request, content: { etag: string; modifiedAt: Date }): boolean {
  const tags = req.get('if-none-match');
  if (tags !== undefined) {
    return tags.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === content.etag);
  }
  const since = Date.parse(req.get('if-modified-since') ?? '');
  return !Number.isNaN(since) && Math.floor(content.modifiedAt.getTime() / 1_000) * 1_000 <= since;
}

/**
 * The requested range, clipped to the end of the file. Undefined means the whole file. Multiple ranges and unknown
 * forms get the whole file, as RFC 9110 allows. Throws 416 `RANGE_NOT_SATISFIABLE`.
 */
export function wantedRange(req: Request, res: Response, size: number, etag: string): ByteRange | undefined {
  // Ranges are for GET alone.
  if (req.method !== 'GET') return undefined;
  // If-Range: if the content has changed, the client wants all of it. A date is too coarse to tell versions apart.
  const condition = req.get('if-range');
  if (condition !== undefined && condition !== etag) return undefined;
  const [, first, last, suffix] = /^bytes=\s*(?:(\d+)-(\d*)|-(\d+))\s*$/i.exec(req.get('range') ?? '') ?? [];
  if (first === undefined && suffix === undefined) return undefined;
  const start = suffix === undefined ? Number(first) : Math.max(0, size - Number(suffix));
  const end = last ? Number(last) : Number.POSITIVE_INFINITY;
  if (end < start) return undefined;
  if (start < size) return { start, end: Math.min(end, size - 1) };
  res.set('content-range', `bytes */${size}`);
  throw new DomainError('rangeNotSatisfiable', 'RANGE_NOT_SATISFIABLE', `The file has ${size} bytes.`);
}
