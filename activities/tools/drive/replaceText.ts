import { DomainError } from '../../../base/errors.ts';

/**
 * Replaces `oldText`, which must match exactly, by `newText`. Throws 422 `NO_MATCH` or `MANY_MATCHES` with advice for
 * the model. A file with CRLF line ends keeps them, although models write LF.
 */
export function replaceText(
  before: string,
  { oldText, newText, all }: { oldText: string; newText: string; all: boolean },
): { text: string; replaced: number } {
  const usesReturns = !before.includes(oldText) && before.includes('\r\n');
  const wanted = usesReturns ? withReturns(oldText) : oldText;
  const replacement = usesReturns ? withReturns(newText) : newText;
  if (wanted === replacement) {
    throw new DomainError('unprocessable', 'NOTHING_TO_CHANGE', 'oldText and newText are the same.');
  }
  const pieces = before.split(wanted);
  const matches = pieces.length - 1;
  if (matches === 0) {
    const detail = 'oldText is not in the file. Read the file, and copy the text exactly, without line numbers.';
    throw new DomainError('unprocessable', 'NO_MATCH', detail);
  }
  if (matches > 1 && !all) {
    const detail = `oldText is in the file ${matches} times. Include more of the text around it, or set \`all\`.`;
    throw new DomainError('unprocessable', 'MANY_MATCHES', detail);
  }
  return { text: pieces.join(replacement), replaced: matches };
}

function withReturns(text: string): string {
  return text.replace(/\r?\n/g, '\r\n');
}
