import type { Request } from 'express';
import type { ByteRange } from '../../integrations/storage/objectStore.ts';

/** Conditional and range requests for a file (RFC 9110 §13 and §14). */

/**
 * The reader has this content already: 304. Express' own `req.fresh` says no wherever `Cache-Control: no-cache` is
 * sent, which `fetch` adds to every request that has an If-None-Match.
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
 * The requested range, cut where the file ends; undefined for the whole. Several ranges at once, and unknown forms, are
 * answered with the whole, as RFC 9110 allows.
 */
export function wantedRange(req: Request, size: number, etag: string): ByteRange | 'unsatisfiable' | undefined {
  // Ranges are for GET alone.
  if (req.method !== 'GET') return undefined;
  // If-Range: when the content has changed, the reader wants all of it. A date is too coarse to tell contents apart.
  const condition = req.get('if-range');
  if (condition !== undefined && condition !== etag) return undefined;
  const [, first, last, suffix] = /^bytes=\s*(?:(\d+)-(\d*)|-(\d+))\s*$/i.exec(req.get('range') ?? '') ?? [];
  if (suffix !== undefined) {
    const start = Math.max(0, size - Number(suffix));
    return start === size ? 'unsatisfiable' : { start, end: size - 1 };
  }
  if (first === undefined) return undefined;
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return undefined;
  return start >= size ? 'unsatisfiable' : { start, end };
}
