import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import express, { type RequestHandler } from 'express';
import type { Config } from '../../../config/index.ts';

const own = join(import.meta.dirname, 'browser');
/** The package exports `core/rfb.js`; this is the folder above `core`. */
const noVnc = dirname(dirname(createRequire(import.meta.url).resolve('@novnc/novnc')));

/** Serves the page and noVNC's own files. */
export function viewFiles({ http, ports }: Pick<Config, 'http' | 'ports'>): RequestHandler {
  const origin = ports.desktopOrigin.replace(/^http/, 'ws');
  const policy = [
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; base-uri 'none'",
    `form-action 'none'; connect-src 'self' ${origin}`,
    `frame-ancestors ${framesOf(http).join(' ')}`,
  ].join('; ');
  const page = readFileSync(join(own, 'page.html'));
  const router = express.Router();
  router.get('/', (_req, res) => {
    res.set({ 'content-security-policy': policy, 'cache-control': 'no-store' }).type('text/html').send(page);
  });
  const options = { index: false, redirect: false, maxAge: '1h' };
  router.use('/page', express.static(own, options));
  for (const folder of ['core', 'vendor']) router.use(`/novnc/${folder}`, express.static(join(noVnc, folder), options));
  return router;
}

/** Only pages that may call the API may show it in a frame. Another page could hide it under something to click on. */
function framesOf({ publicUrl, corsOrigins, allowsLocalPages }: Config['http']): string[] {
  const local = allowsLocalPages ? ['http://localhost:*', 'http://127.0.0.1:*'] : [];
  return [new URL(publicUrl).origin, ...corsOrigins, ...local];
}
