import { DomainError } from '../../base/errors.ts';
import type { ChatStreamBody } from './chatRequest.ts';

/** These prefixes are reserved for the server's own tools (docs/tools.md). */
const reservedAreas = [
  'app',
  'ask',
  'browser',
  'computer',
  'database',
  'device',
  'drive',
  'git',
  'mcp',
  'process',
  'tabs',
  'web',
];

/** Refuses a client's own tools whose names collide with ours, or with one another: 422. */
export function checkClientTools(
  { clientTools = [] }: Pick<ChatStreamBody, 'clientTools'>,
  pointerOf = (index: number) => `/clientTools/${index}/name`,
): void {
  const seen = new Set<string>();
  for (const [index, { name }] of clientTools.entries()) {
    const pointer = pointerOf(index);
    if (reservedAreas.includes(name.split('_', 1)[0] ?? '')) {
      throw refused('TOOL_NAME_RESERVED', pointer, `Tools named ${name.split('_', 1)[0]}_… are the server’s own.`);
    }
    if (seen.has(name)) throw refused('TOOL_NAME_TAKEN', pointer, 'Two client tools have this name.');
    seen.add(name);
  }
}

function refused(code: string, pointer: string, detail: string): DomainError {
  return new DomainError('unprocessable', code, detail, { errors: [{ pointer, detail }] });
}
