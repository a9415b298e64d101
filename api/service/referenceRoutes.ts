import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import express, { type RequestHandler } from 'express';
import { dump } from 'js-yaml';
import type { RouteDeps } from '../frame/deps.ts';
import { createRouter } from '../frame/router.ts';

const page = fileURLToPath(new URL('./reference/', import.meta.url));

/**
 * Everything is served from here: the page works offline, and no other script may run in it. Swagger UI draws its icons
 * as data: images. It sets styles through the DOM, which needs no exception.
 */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Serves the contract as a document and as a page. */
export function docsRoutes({ contract, config }: RouteDeps) {
  const router = createRouter();
  const document = { ...contract.document, servers: [{ url: config.http.publicUrl }] };
  // Serialized on first use: it takes a while, and few clients ask for it.
  let yaml: string | undefined;
  let json: string | undefined;

  router.get('/openapi.yaml', (_req, res) => {
    yaml ??= dump(document, { noRefs: true, lineWidth: -1 });
    res.type('application/yaml').send(yaml);
  });

  router.get('/openapi.json', (_req, res) => {
    json ??= JSON.stringify(document);
    res.type('application/json').send(json);
  });

  router.get('/docs', (_req, res) => {
    res.setHeader('content-security-policy', pagePolicy);
    res.sendFile('index.html', { root: page });
  });

  return router;
}

/** The page's own files, and the files of Swagger UI that it uses. */
export function referencePageFiles(): RequestHandler {
  const swaggerUi = path.dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  const shared = ['swagger-ui-bundle.js', 'swagger-ui.css'];
  const router = createRouter();
  for (const file of shared) {
    router.get(`/${file}`, (_req, res) => res.sendFile(path.join(swaggerUi, file), { maxAge: '1h' }));
  }
  router.use(express.static(path.join(page, 'assets'), { index: false, redirect: false, maxAge: '1h' }));
  return router;
}
