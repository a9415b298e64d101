import type { ProcessInfo } from '../../../integrations/computers/types.ts';
import type { Redactor } from '../../../models/secrets/redactor.ts';
import type { AnswerOf } from '../../frame/answer.ts';

/** A process for whoever may look at its computer: a command may have a secret in it that its author has typed. */
export function presentProcess(
  { processId, ...info }: ProcessInfo,
  redactor: Pick<Redactor, 'text'>,
): AnswerOf<'getProcess'> {
  const { cwd, pty, state, exitCode, signal, killedBy, startedAt, endedAt, outputBytes, droppedBytes } = info;
  const command =
    typeof info.command === 'string' ? redactor.text(info.command) : info.command.map((part) => redactor.text(part));
  const ended = { state, exitCode, signal, killedBy, startedAt, endedAt };
  return { id: processId, command, cwd, pty, ...ended, outputBytes, droppedBytes };
}
