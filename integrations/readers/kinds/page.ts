import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';
import { firstOf } from '../../../base/text.ts';
import { boundedHtml } from './boundedHtml.ts';
import { maxTextCharacters } from './limits.ts';

/** A page as a person reads it. */
export interface PageText {
  title: string | null;
  /** Markdown. */
  text: string;
  /** The page has more elements, or more text, than were read. */
  isCut: boolean;
}

const turndown = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' });
turndown.remove(['title', 'script', 'style', 'noscript', 'template', 'iframe', 'svg' as never]);

/** A page's article, without menus and the like; the whole body where it has no article. */
export async function readPage(bytes: Uint8Array): Promise<PageText> {
  const { html, isCut } = boundedHtml(new TextDecoder().decode(bytes));
  const { document } = parseHTML(wholePage(html));
  const title = (document.title || document.querySelector('body > title')?.textContent || '').trim() || null;
  const article = new Readability(document.cloneNode(true) as never, { charThreshold: 200 }).parse();
  const body = article?.content ?? document.body?.innerHTML ?? html;
  // Given as a node: turndown's own parser would read the text a second time.
  const content = parseHTML(inPage(body)).document.body;
  const text = turndown.turndown(content as never).trim();
  const name = article?.title || title;
  return {
    title: name === null ? null : firstOf(name, 1_000).toWellFormed(),
    text: firstOf(text, maxTextCharacters).toWellFormed(),
    isCut: isCut || text.length > maxTextCharacters,
  };
}

/** The parser does not add optional tags that were left out, so such a page, or a fragment, is wrapped. */
function wholePage(html: string): string {
  if (/<head[\s>]/i.test(html) && /<body[\s>]/i.test(html)) return html;
  return inPage(html.replace(/<\/?(?:html|head|body)(?:\s[^>]{0,2000})?>|<!doctype[^>]{0,2000}>/gi, ''));
}

function inPage(body: string): string {
  return `<!doctype html><html><head></head><body>${body}</body></html>`;
}
