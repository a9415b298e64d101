import type { ProcessInfo } from '../../../integrations/computers/types.ts';
import type { AnswerOf } from '../../frame/answer.ts';

export function presentProcess({ processId, ...info }: ProcessInfo): AnswerOf<'getProcess'> {
  const { command, cwd, pty, state, exitCode, signal, killedBy, startedAt, endedAt, outputBytes, droppedBytes } = info;
  const ended = { state, exitCode, signal, killedBy, startedAt, endedAt };
  return { id: processId, command, cwd, pty, ...ended, outputBytes, droppedBytes };
}
