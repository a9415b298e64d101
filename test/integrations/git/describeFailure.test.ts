import { describeFailure, isUnexplained, wasKilled } from '../../../integrations/git/rules/describeFailure.ts';
import { gitError } from '../../../integrations/git/rules/failures.ts';

test('what cannot be explained is known by its cause, in whatever words people are told of it', () => {
  const failed = describeFailure({ code: 1, signal: null, said: 'odd', output: '' });
  const killed = describeFailure({ code: null, signal: 'SIGKILL', said: '', output: '' });
  const explained = describeFailure({ code: 1, signal: null, said: 'No space left on device', output: '' });
  expect([failed, killed, explained].map(isUnexplained)).toEqual([true, true, false]);
  expect([failed, killed, explained].map(wasKilled)).toEqual([false, true, false]);
  const reworded = gitError('GIT_FAILED', 'In other words.', { cause: killed.cause });
  expect([isUnexplained(reworded), wasKilled(reworded)]).toEqual([true, true]);
  const [, other] = [failed, killed].map(({ message }) => gitError('GIT_FAILED', message));
  expect([isUnexplained(other), wasKilled(other)]).toEqual([false, false]);
});
