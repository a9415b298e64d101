import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { DomainError } from '../../base/errors.ts';
import { type IdKind, newId } from '../../base/ids.ts';
import { type IdempotencyKey, idempotencyModels, type StoredAnswer } from '../../models/operations/idempotency.ts';
import type { AnswerOf } from './answer.ts';
import type { OperationId } from './auth/access.ts';
import { callerOf } from './auth/caller.ts';
import type { RouteDeps } from './deps.ts';
import { GoesOn } from './operationAnswer.ts';

export interface OnceOptions<Kept, Body> {
  /** The status of the answer. An operation that continues always answers 202. */
  status?: number;
  /**
   * Makes the answer from the stored body where they differ: a link that grants access is signed anew each time and
   * never stored.
   */
  show?: (kept: Kept) => Body | Promise<Body>;
}

/** `show` is required when the stored body is not the answer. */
type Options<Kept, Body> = Kept extends Body
  ? [options?: OnceOptions<Kept, Body>]
  : [options: OnceOptions<Kept, Body> & Required<Pick<OnceOptions<Kept, Body>, 'show'>>];

/**
 * Answers a request that makes an object, once per Idempotency-Key. `work` gets the new object's id and returns the
 * body of a 201 (or of `status`), or the operation that continues. After a crash or a failure with an unknown outcome,
 * it may be called again with the same id. It must then use what it finds under that id.
 */
export async function makeOnce<Id extends OperationId = never, Kept = AnswerOf<Id>>(
  { database }: Pick<RouteDeps, 'database'>,
  req: Request,
  res: Response,
  kind: IdKind,
  work: (id: string) => Promise<Kept | GoesOn>,
  ...[options]: Options<Kept, AnswerOf<Id>>
): Promise<void> {
  const { status = 201 } = options ?? {};
  const show = options?.show as Show | undefined;
  const key = idempotencyKeyOf(req);
  if (key === undefined) return send(res, answerOf(await work(newId(kind)), status), show);
  const requestHash = createHash('sha256')
    .update(JSON.stringify([req.path, req.body ?? null]))
    .digest();
  const { row, isFirst, answer } = await idempotencyModels(database).Idempotency.claim({ ...key, requestHash }, () =>
    newId(kind),
  );
  if (answer !== undefined) return send(res, answer, show);
  let made: StoredAnswer;
  try {
    made = answerOf(await work(row.objectId), status);
    await row.answer(made.status, made.body);
  } catch (error) {
    // Only a refused first attempt has certainly made nothing. In all other cases the outcome is unknown (a COMMIT
    // whose answer was lost may have happened). The key then keeps the object's id: the same request again finds the
    // object or makes it under that id.
    const isRefused = isFirst && error instanceof DomainError;
    await (isRefused ? row.release() : row.reopen()).catch((failure: unknown) => {
      req.log.warn({ err: failure }, 'An Idempotency-Key stays claimed for a minute.');
    });
    throw error;
  }
  await send(res, made, show);
}

export function idempotencyKeyOf(req: Request): IdempotencyKey | undefined {
  const key = req.get('idempotency-key');
  return key === undefined
    ? undefined
    : { caller: callerOf(req).userId, operation: req.operation?.id ?? req.path, key };
}

function answerOf(made: unknown, status: number): StoredAnswer {
  return made instanceof GoesOn ? { status: 202, body: made.body } : { status, body: made };
}

type Show = (kept: unknown) => unknown;

async function send(res: Response, { status, body }: StoredAnswer, show: Show = (kept) => kept): Promise<void> {
  if (status === 202) res.location(`/api/operations/${(body as GoesOn['body']).id}`);
  res.status(status).json(status === 202 ? body : await show(body));
}
