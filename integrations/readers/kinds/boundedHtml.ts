import { Parser } from 'htmlparser2';
import { firstOf } from '../../../base/text.ts';

/** Deeper than people write. The time to find a page's article grows with the cube of its depth. */
const maxDepth = 128;
/** Beyond this, a page is no longer read: the parser itself is slow with so many open elements. */
const maxOpenElements = 5_000;
const maxElements = 20_000;
const maxCharacters = 2 * 1_048_576;
const chunkCharacters = 16_384;

/**
 * Makes a page cheap enough to parse: tags below a depth are dropped while their text stays, and the page ends at the
 * maximum number of elements. It uses the parser that will read the page, so both see the same elements.
 */
export function boundedHtml(whole: string): { html: string; isCut: boolean } {
  const kept: string[] = [];
  let next = 0;
  let elements = 0;
  let depth = 0;
  let end: number | undefined;
  const parser = new Parser({
    onopentag() {
      elements++;
      depth++;
      if (end !== undefined) return;
      if (elements > maxElements || depth > maxOpenElements) end = parser.startIndex;
      else if (depth > maxDepth) leaveOut();
    },
    onclosetag(_name, isImplied) {
      if (depth > maxDepth && !isImplied && end === undefined) leaveOut();
      depth--;
    },
  });
  const html = firstOf(whole, maxCharacters);
  for (let at = 0; at < html.length && end === undefined; at += chunkCharacters) {
    parser.write(html.slice(at, at + chunkCharacters));
  }
  if (end === undefined && next === 0) return { html, isCut: html.length < whole.length };
  kept.push(html.slice(next, Math.max(next, end ?? html.length)));
  return { html: kept.join(' '), isCut: end !== undefined || html.length < whole.length };

  function leaveOut(): void {
    kept.push(html.slice(next, parser.startIndex));
    next = parser.endIndex + 1;
  }
}
