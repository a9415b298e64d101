import { failureOf } from '../../../api/frame/operationAnswer.ts';
import { gitFailures } from '../../../integrations/git/rules/failures.ts';
import type { Operation } from '../../../models/operations/operation.ts';
import { gitOperations } from '../../../temporal/operations/git.ts';

function answerOf(kind: string, errorCode: string): string {
  return failureOf({ kind, errorCode, errorDetail: 'Why.' } as unknown as Operation).kind;
}

test.each(Object.keys(gitOperations))('%s answers each git failure with its own kind of error', (kind) => {
  const answers = Object.keys(gitFailures).map((code) => [code, answerOf(kind, code)]);
  expect(Object.fromEntries(answers)).toEqual(gitFailures);
});

test('Refusals by computers and rows do not count as failures of another server', () => {
  const answers = {
    NOT_FOUND: 'notFound',
    COMMAND_TOO_LONG: 'unprocessable',
    COMPUTER_DELETED: 'conflict',
    COMPUTER_NOT_ANSWERING: 'upstreamTimeout',
    TOO_MANY_PROCESSES: 'rateLimited',
  };
  for (const [code, kind] of Object.entries(answers))
    expect([code, answerOf('commitChanges', code)]).toEqual([code, kind]);
});
