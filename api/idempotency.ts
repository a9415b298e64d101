import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { Idempotency } from '../models/idempotency.ts';
import { type IdKind, newId } from '../models/ids.ts';
import { callerOf } from './auth/caller.ts';

/**
 * Answers a request that makes something, once per Idempotency-Key (design §5). `work` gets the id of what it makes, the
 * same one when a crash makes another process do it again, and gives the body of a 201.
 */
export async function makeOnce(
  req: Request,
  res: Response,
  kind: IdKind,
  work: (id: string) => Promise<unknown>,
): Promise<void> {
  const key = req.get('idempotency-key');
  if (key === undefined) {
    res.status(201).json(await work(newId(kind)));
    return;
  }
  const requestHash = createHash('sha256')
    .update(JSON.stringify([req.path, req.body ?? null]))
    .digest();
  const claim = { caller: callerOf(req).userId, operation: req.operation?.id ?? req.path, key, requestHash };
  const { row, answer } = await Idempotency.claim(claim, () => newId(kind));
  if (answer !== undefined) {
    res.status(answer.status).json(answer.body);
    return;
  }
  try {
    const body = await work(row.objectId);
    await row.answer(201, body);
    res.status(201).json(body);
  } catch (error) {
    // Refused or failed, it has done nothing: the key is free for another try.
    await row.release();
    throw error;
  }
}
