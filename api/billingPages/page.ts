import { createHash } from 'node:crypto';
import type { Response } from 'express';

/** No script at all, one style sheet that is in the page, and forms that go nowhere else. */
const policy = [
  "default-src 'none'",
  "style-src 'sha256-STYLE'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { display: grid; place-items: center; min-height: 100vh; margin: 0; background: Canvas; color: CanvasText; }
main { max-width: 26rem; padding: 2rem; text-align: center; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; }
p { margin: .5rem 0; }
.amount { font-size: 2rem; font-weight: 600; margin: 1rem 0; }
.note { border: 2px dashed #b45309; border-radius: .5rem; padding: .5rem 1rem; margin-bottom: 1.5rem; }
form { display: inline; }
button { font: inherit; padding: .5rem 1.25rem; margin: .25rem; border-radius: .4rem; border: 1px solid currentColor; background: none; color: inherit; cursor: pointer; }
button.first { background: #15803d; border-color: #15803d; color: #fff; }
button:focus-visible { outline: 3px solid #2563eb; outline-offset: 2px; }
`;

const styleHash = createHash('sha256').update(style).digest('base64');
const contentSecurityPolicy = policy.replace('STYLE', styleHash);

/** Text as HTML shows it. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

export interface Page {
  title: string;
  /** HTML: what comes from elsewhere has gone through `escapeHtml`. */
  body: string;
  /** Looks again after so many seconds, where what it says is about to change. */
  refreshSeconds?: number;
}

/** Sends a small page. */
export function sendPage(res: Response, page: Page): void {
  const refresh =
    page.refreshSeconds === undefined ? '' : `<meta http-equiv="refresh" content="${page.refreshSeconds}">`;
  res.setHeader('content-security-policy', contentSecurityPolicy);
  res.setHeader('cache-control', 'no-store');
  res.setHeader('referrer-policy', 'no-referrer');
  res
    .type('html')
    .send(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${refresh}` +
        `<title>${escapeHtml(page.title)}</title><style>${style}</style></head><body><main>${page.body}</main></body></html>`,
    );
}
