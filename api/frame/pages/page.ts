import path from 'node:path';
import { fileURLToPath } from 'node:url';
import express, { type RequestHandler, type Response } from 'express';
import { type Html, html } from './html.ts';

export interface Page {
  title: string;
  body: Html;
  status?: number;
  /** For a page with much to read. */
  isWide?: boolean;
  /** Where a form of the page may redirect to. Browsers apply the policy to redirects too. */
  formMayGoTo?: string | undefined;
  /** Reload after this many seconds, because the content is about to change. */
  refreshSeconds?: number | undefined;
}

/** Sends a page for a person: no scripts, no framing, no caching. */
export function sendPage(res: Response, page: Page): void {
  const { status = 200, formMayGoTo } = page;
  res.setHeader('content-security-policy', policyOf(formMayGoTo));
  // With the stricter `no-referrer`, browsers send `null` as the origin of our own forms.
  res.setHeader('referrer-policy', 'same-origin');
  res.status(status).type('text/html').send(layout(page).text);
}

const assets = fileURLToPath(new URL('./assets/', import.meta.url));
export const iconFile = path.join(assets, 'icon.svg');

/** The pages' stylesheet and icon. */
export function pageFiles(): RequestHandler {
  return express.static(assets, { index: false, redirect: false, maxAge: '1h' });
}

function policyOf(formMayGoTo: string | undefined): string {
  return [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    `form-action 'self'${formMayGoTo === undefined ? '' : ` ${sourceOf(formMayGoTo)}`}`,
  ].join('; ');
}

/** The policy source for an address: its origin, or just the scheme when an app has a scheme of its own. */
function sourceOf(address: string): string {
  const { origin, protocol } = new URL(address);
  return origin === 'null' ? protocol : origin;
}

function layout({ title, body, refreshSeconds, isWide = false }: Page): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
${refreshSeconds !== undefined && html`<meta http-equiv="refresh" content="${refreshSeconds}">`}
<title>${title} · Atrium</title>
<link rel="icon" href="/auth/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/auth/assets/page.css">
</head>
<body${isWide && html` class="wide"`}>
<header><img src="/auth/assets/icon.svg" alt="" width="28" height="28"> Atrium</header>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`;
}
