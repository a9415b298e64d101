import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';

/** A page as a person reads it. */
export interface ReadablePage {
  title: string | null;
  /** Markdown. */
  text: string;
}

const turndown = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' });
turndown.remove(['script', 'style', 'noscript', 'template', 'iframe', 'svg' as never]);

/** The text of a page, without what is around it on every page; the whole body where there is no article in it. */
export function readableText(html: string): ReadablePage {
  // A part of a page is wrapped into one: the parser makes nothing up.
  const { document } = parseHTML(/<html[\s>]/i.test(html) ? html : inPage(html));
  const title = document.title?.trim() || null;
  const article = new Readability(document.cloneNode(true) as never, { charThreshold: 200 }).parse();
  const body = article?.content ?? document.body?.innerHTML ?? html;
  // Given as a node: turndown's own parser would read the text a second time.
  const content = parseHTML(inPage(body)).document.body;
  return { title: article?.title || title, text: turndown.turndown(content as never).trim() };
}

function inPage(body: string): string {
  return `<!doctype html><html><head></head><body>${body}</body></html>`;
}
