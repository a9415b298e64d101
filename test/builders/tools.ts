import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';

/** A message that makes the demo model call these tools, one per step. */
export function toolLines(calls: readonly (readonly [name: string, input: unknown])[]): string {
  return calls.map(([name, input]) => `/tool ${name} ${JSON.stringify(input)}`).join('\n/say next\n');
}

/** The results of a turn's tool calls in order. Errors are texts. */
export function toolOutputs(chunks: readonly UiChunk[]): unknown[] {
  const results = new Map<string, unknown>();
  for (const chunk of chunks) {
    if (chunk.type === 'tool-input-available' || chunk.type === 'tool-input-error')
      results.set(chunk.toolCallId, undefined);
    if (chunk.type === 'tool-output-available') results.set(chunk.toolCallId, chunk.output);
    if (chunk.type === 'tool-output-error') results.set(chunk.toolCallId, `error: ${chunk.errorText}`);
  }
  return [...results.values()];
}
