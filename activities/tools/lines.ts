import { firstOf } from '../../base/text.ts';

/** A run of lines of a file. */
export interface Lines {
  /** From 1. */
  firstLine: number;
  lines: string[];
  /** Whether more lines follow. */
  hasMore: boolean;
}

/** The most text that a model reads at once. A longer result would be stored as a file again. */
const maxCharacters = 48_000;
const maxLineCharacters = 2_000;

/** The requested lines of a text, in memory that does not grow with it. */
export async function takeLines(
  bytes: AsyncIterable<Uint8Array>,
  { firstLine, count }: { firstLine: number; count: number },
  signal: AbortSignal,
): Promise<Lines> {
  const result: Lines = { firstLine, lines: [], hasMore: false };
  let characters = 0;
  let number = 0;
  for await (const line of linesOf(bytes, signal)) {
    number += 1;
    if (number < firstLine) continue;
    const shown = line.length > maxLineCharacters ? `${firstOf(line, maxLineCharacters)}… [line cut]` : line;
    characters += shown.length + 1;
    if (result.lines.length === count || (characters > maxCharacters && result.lines.length > 0)) {
      result.hasMore = true;
      break;
    }
    result.lines.push(shown);
  }
  return result;
}

/** Lines as a model reads them, each with its number. */
export function numbered({ firstLine, lines }: Lines): string {
  return lines.map((line, index) => `${String(firstLine + index).padStart(6)}\t${line}`).join('\n');
}

async function* linesOf(stream: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  // A very long line, such as a minified file's, is buffered only as far as it is shown.
  let rest = '';
  const keep = (text: string) => firstOf(text, maxLineCharacters * 2);
  for await (const chunk of stream) {
    signal.throwIfAborted();
    const pieces = decoder.decode(chunk, { stream: true }).split('\n');
    const last = pieces.pop() ?? '';
    for (const piece of pieces) {
      yield withoutReturn(rest + piece);
      rest = '';
    }
    rest = keep(rest + last);
  }
  if (rest !== '') yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
