import { DomainError } from '../../../base/errors.ts';

/** An instruction of a Dockerfile, and the number of its first line. */
export interface Instruction {
  line: number;
  /** In upper case. */
  keyword: string;
  rest: string;
}

/** The error for a line of a Dockerfile that cannot be built. */
export function badLine(line: number, detail: string): DomainError {
  const text = `Line ${line} of the Dockerfile cannot be built: ${detail}.`;
  return new DomainError('unprocessable', 'DOCKERFILE_INVALID', text, {
    errors: [{ pointer: '/dockerfile', detail: `line ${line}: ${detail}` }],
  });
}

const continued = /\\[ \t]*$/;

/** The instructions of a Dockerfile. A backslash at the end of a line continues it. Comments are left out. */
export function instructionsOf(text: string): Instruction[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  requireUsualEscape(lines);
  const found: Instruction[] = [];
  let begun: { line: number; text: string } | undefined;
  for (const [index, content] of lines.entries()) {
    if (/^\s*(#|$)/.test(content)) continue;
    begun ??= { line: index + 1, text: '' };
    begun.text += content.replace(continued, '');
    if (continued.test(content)) continue;
    found.push(instructionOf(begun));
    begun = undefined;
  }
  if (begun !== undefined) found.push(instructionOf(begun));
  return found;
}

function instructionOf({ line, text }: { line: number; text: string }): Instruction {
  const [, keyword = '', rest = ''] = /^\s*(\S+)\s*(.*?)\s*$/s.exec(text) ?? [];
  return { line, keyword: keyword.toUpperCase(), rest };
}

/** The directive stands before everything else. */
function requireUsualEscape(lines: readonly string[]): void {
  for (const [index, content] of lines.entries()) {
    const directive = /^\s*#\s*(\w+)\s*=\s*(\S+)\s*$/.exec(content);
    if (directive === null) return;
    if (directive[1]?.toLowerCase() === 'escape' && directive[2] !== '\\') {
      throw badLine(index + 1, 'only the backslash continues lines');
    }
  }
}
