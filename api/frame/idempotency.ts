import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { DomainError } from '../../models/errors.ts';
import { type IdempotencyKey, idempotencyModels, type StoredAnswer } from '../../models/idempotency.ts';
import { type IdKind, newId } from '../../models/ids.ts';
import type { AnswerOf } from './answer.ts';
import type { OperationId } from './auth/access.ts';
import { callerOf } from './auth/caller.ts';
import type { RouteDeps } from './deps.ts';
import { GoesOn } from './operationAnswer.ts';

export interface OnceOptions<Kept, Body> {
  /** Of the answer, unless it is that of an operation that goes on. */
  status?: number;
  /**
   * Makes what is answered of what is kept, where that is not the same: a link that gives access is signed anew each
   * time, and kept by nobody.
   */
  show?: (kept: Kept) => Body | Promise<Body>;
}

/** Where what is kept is not what is answered, something must make the one of the other. */
type Options<Kept, Body> = Kept extends Body
  ? [options?: OnceOptions<Kept, Body>]
  : [options: OnceOptions<Kept, Body> & Required<Pick<OnceOptions<Kept, Body>, 'show'>>];

/**
 * Answers a request that makes something, once per Idempotency-Key (design §5). `work` gets the id of what it makes,
 * and gives the body of a 201 (or of `status`), or the operation that goes on. It may be called again with the same id,
 * after a crash or a failure of which nobody knows how far it came: then it takes what it finds under that id.
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
    // Only a refusal of a first try has surely made nothing. Of everything else the truth is not known (a COMMIT whose
    // answer was lost may have happened), so the key keeps the object's id: the same request again finds what there is,
    // or makes it under that id.
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
