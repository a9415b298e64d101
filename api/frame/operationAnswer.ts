import type { Request, Response } from 'express';
import { lookUntil } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { Database } from '../../models/database/database.ts';
import { type Operation, operationModels } from '../../models/operations/operation.ts';
import { findDefinition } from '../../temporal/operations/index.ts';
import type { RouteDeps } from './deps.ts';
import { presentOperation } from './presentOperation.ts';

/** A result within this time is the request's answer. After it, the answer is the operation (202). */
const patience = { firstMs: 15, mostMs: 250, forMs: 20_000 };

/**
 * Looks at a row until `isDone`, for at most 20 seconds or until the client has gone, and returns what it saw last. It
 * looks at rows instead of the workflow, so that any process can do the work.
 */
export function waitForRow<T>(
  req: Request,
  look: () => Promise<T>,
  isDone: (seen: T) => boolean = (seen) => seen !== undefined,
): Promise<T> {
  return lookUntil(look, (seen) => isDone(seen) || req.socket.destroyed, patience);
}

type Deps = Pick<RouteDeps, 'database' | 'launcher'>;

/** Starts an operation and waits for its end. Undefined when that takes longer than a request may wait. */
export function runOperation(deps: Deps, req: Request, operation: Operation): Promise<Operation | undefined> {
  if (operation.status === 'running') void deps.launcher.startOperation(operation);
  return waitForRow(req, () => endedOperation(deps.database, operation.id));
}

/** The operation if it has ended, else undefined. */
export async function endedOperation(database: Database, id: string): Promise<Operation | undefined> {
  const operation = await operationModels(database).Operation.findByPk(id);
  return operation === null || operation.status === 'running' ? undefined : operation;
}

/** The 202 answer of an operation that takes longer than a request may wait. */
export class GoesOn {
  readonly body: ReturnType<typeof presentOperation>;

  constructor(operation: Operation) {
    this.body = presentOperation(operation);
  }
}

/** 202: the operation continues, and its client polls it. */
export function answerLater(res: Response, operation: Operation): void {
  res.status(202).location(`/api/operations/${operation.id}`).json(presentOperation(operation));
}

/** The operation once it has succeeded, or a `GoesOn` while it continues. Throws the reason if it has failed. */
export async function outcomeOf(deps: Deps, req: Request, operation: Operation): Promise<Operation | GoesOn> {
  const ended = await runOperation(deps, req, operation);
  if (ended === undefined) return new GoesOn(operation);
  if (ended.status !== 'succeeded') throw failureOf(ended);
  return ended;
}

/** True when the operation is done or there was nothing to do. Otherwise answers 202. Throws if it has failed. */
export async function doneOrLater(
  deps: Deps,
  req: Request,
  res: Response,
  operation: Operation | undefined,
): Promise<boolean> {
  if (operation === undefined || !((await outcomeOf(deps, req, operation)) instanceof GoesOn)) return true;
  answerLater(res, operation);
  return false;
}

/** The error that a failed operation means for the request that began it. */
export function failureOf(operation: Operation): DomainError {
  const { kind, errorCode: code, errorDetail } = operation;
  if (code === null) return new DomainError('conflict', 'OPERATION_CANCELLED', 'The operation was cancelled.');
  return new DomainError(findDefinition(kind)?.failures[code] ?? 'upstream', code, errorDetail ?? '');
}
