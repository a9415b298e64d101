import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { Idempotency, type StoredAnswer } from '../models/idempotency.ts';
import { type IdKind, newId } from '../models/ids.ts';
import { callerOf } from './auth/caller.ts';
import { GoesOn } from './operationAnswer.ts';

/**
 * Answers a request that makes something, once per Idempotency-Key (design §5). `work` gets the id of what it makes, the
 * same one when a crash makes another process do it again, and gives the body of a 201 (or of `status`), or the
 * operation that goes on.
 */
export async function makeOnce(
  req: Request,
  res: Response,
  kind: IdKind,
  work: (id: string) => Promise<unknown>,
  status = 201,
): Promise<void> {
  const key = req.get('idempotency-key');
  if (key === undefined) {
    send(res, answerOf(await work(newId(kind)), status));
    return;
  }
  const requestHash = createHash('sha256')
    .update(JSON.stringify([req.path, req.body ?? null]))
    .digest();
  const claim = { caller: callerOf(req).userId, operation: req.operation?.id ?? req.path, key, requestHash };
  const { row, answer } = await Idempotency.claim(claim, () => newId(kind));
  if (answer !== undefined) {
    send(res, answer);
    return;
  }
  try {
    const made = answerOf(await work(row.objectId), status);
    await row.answer(made.status, made.body);
    send(res, made);
  } catch (error) {
    // Refused or failed, it has done nothing: the key is free for another try.
    await row.release();
    throw error;
  }
}

function answerOf(made: unknown, status: number): StoredAnswer {
  return made instanceof GoesOn ? { status: 202, body: made.body } : { status, body: made };
}

function send(res: Response, { status, body }: StoredAnswer): void {
  if (status === 202) res.location(`/api/operations/${(body as GoesOn['body']).id}`);
  res.status(status).json(body);
}
