import { Router } from 'express';

/**
 * A router of one area. Paths match exactly as the contract writes them: `/API/Me` and `/api/me/` are other paths, so
 * no route answers for an operation that was not checked.
 */
export function createRouter(): Router {
  return Router({ caseSensitive: true, strict: true });
}
