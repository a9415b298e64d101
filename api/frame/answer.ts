import type { Response } from 'express';
import type { operations } from '../generated/types.gen.ts';
import type { OperationId } from './auth/access.ts';

type AnswersOf<Id extends OperationId> = operations[Id]['responses'];

type JsonOf<Answer> = Answer extends { content: { 'application/json': infer Body } } ? Body : never;

/** An operation's JSON answers as `[status, body]` pairs. */
type Answers<Id extends OperationId> = Id extends OperationId
  ? {
      [Status in keyof AnswersOf<Id>]: [JsonOf<AnswersOf<Id>[Status]>] extends [never]
        ? never
        : [status: Status, body: JsonOf<AnswersOf<Id>[Status]>];
    }[keyof AnswersOf<Id>]
  : never;

/** The body of an operation's JSON answer: `AnswerOf<'getThread'>`. `Status` selects one other than 200 and 201. */
export type AnswerOf<Id extends OperationId, Status = 200 | 201> = Id extends OperationId
  ? JsonOf<AnswersOf<Id>[Status & keyof AnswersOf<Id>]>
  : never;

/**
 * Sends a JSON answer: `answer<'getThread'>(res, 200, thread)`. An answer that the contract does not describe does not
 * compile.
 */
export function answer<Id extends OperationId = never>(res: Response, ...[status, body]: Answers<Id>): void {
  res.status(status as number).json(body);
}
