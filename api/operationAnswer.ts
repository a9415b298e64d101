import { setTimeout as delay } from 'node:timers/promises';
import type { Request } from 'express';
import { DomainError } from '../models/errors.ts';
import { Operation } from '../models/operation.ts';
import { presentOperation } from './presenters/thread.ts';

/** Design §5: an answer that is there within this time is the request's own; after it, the operation is. */
const longestWaitMs = 20_000;
const firstLookMs = 15;
const longestLookMs = 250;

/**
 * Waits until `look` gives something, for 20 seconds at most, or until the client is gone. Rows are looked at and not the workflow, so that it does not
 * matter which process does the work.
 */
export async function waitForRow<T>(req: Request, look: () => Promise<T | undefined>): Promise<T | undefined> {
  const deadline = performance.now() + longestWaitMs;
  for (let waitMs = firstLookMs; ; waitMs = Math.min(waitMs * 1.4, longestLookMs)) {
    const found = await look();
    if (found !== undefined || performance.now() > deadline || req.socket.destroyed) return found;
    await delay(waitMs);
  }
}

/** The operation, once it has ended. */
export async function endedOperation(id: string): Promise<Operation | undefined> {
  const operation = await Operation.findByPk(id);
  return operation === null || operation.status === 'running' ? undefined : operation;
}

/** The answer 202 of an operation that takes longer than a request may wait. */
export class GoesOn {
  readonly body: ReturnType<typeof presentOperation>;

  constructor(operation: Operation) {
    this.body = presentOperation(operation);
  }
}

/** What a failed operation means for the request that began it. */
export function failureOf(operation: Operation): DomainError {
  const detail = operation.errorDetail ?? 'The operation was called off.';
  return new DomainError('upstream', operation.errorCode ?? 'OPERATION_CANCELLED', detail);
}
