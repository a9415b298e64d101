import type { SendIntent } from '../../models/chat/acceptMessage.ts';
import type { StoredPart } from '../../models/chat/message.ts';
import type { Redactor } from '../../models/secrets/redactor.ts';

/**
 * The results of tools that a request brings, without the space's secrets, like the results of all clients: those that
 * continue a thread, and those in the messages of a new one. Conversations are compared by their texts as they were
 * sent, so this comes after the comparison.
 */
export function withoutSecrets(
  redactor: Redactor,
  { history, handedBack }: Pick<SendIntent, 'history' | 'handedBack'>,
): Pick<SendIntent, 'history' | 'handedBack'> {
  if (redactor.isEmpty) return { history, handedBack };
  const clean = (part: StoredPart) =>
    part.type === 'dynamic-tool' && part.state === 'output-available'
      ? { ...part, output: redactor.json(part.output) }
      : part;
  return {
    history: history?.map(({ role, parts }) => ({ role, parts: parts.map(clean) })),
    handedBack: handedBack && {
      turnId: handedBack.turnId,
      outputs: new Map([...handedBack.outputs].map(([id, output]) => [id, redactor.json(output)])),
    },
  };
}
