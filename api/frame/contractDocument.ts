import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenAPIV3 as OpenApi } from 'express-openapi-validator/dist/framework/types.js';
import { load } from 'js-yaml';

type Named = Record<string, unknown>;

interface Part {
  tags?: readonly Named[];
  paths?: Named;
  components?: Record<string, Named>;
}

interface ReadDocument {
  document: OpenApi.DocumentV3_1;
  hash: string;
}

const folder = new URL('../contract/', import.meta.url);
const commonPart = 'common.yaml';

/**
 * The OpenAPI document, merged from the areas' files and `more`, with a hash of all of them. Parsing the YAML takes a
 * tenth of a start. With a `cacheDir`, the document is cached there as JSON, named by a hash of its parts and of this
 * file.
 */
export function readDocument(more: Record<string, string> = {}, cacheDir?: string): ReadDocument {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .sort();
  const own = Object.fromEntries(names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]));
  const texts = { ...own, ...more };
  const hash = createHash('sha256').update(JSON.stringify(texts)).digest('hex');
  const merge = () => mergeParts(texts) as unknown as OpenApi.DocumentV3_1;
  return { document: cacheDir === undefined ? merge() : cached(cacheDir, hash, merge), hash };
}

function cached(cacheDir: string, hash: string, merge: () => OpenApi.DocumentV3_1): OpenApi.DocumentV3_1 {
  const code = readFileSync(import.meta.filename);
  const name = createHash('sha256').update(hash).update(code).digest('hex').slice(0, 16);
  const path = join(cacheDir, `contract-${name}.json`);
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as OpenApi.DocumentV3_1;
  } catch {
    // Not cached yet.
  }
  const document = merge();
  try {
    mkdirSync(cacheDir, { recursive: true });
    const unfinished = `${path}.${process.pid}`;
    writeFileSync(unfinished, JSON.stringify(document));
    renameSync(unfinished, path);
  } catch {
    // The API does not need a writable folder. Without one, each start parses the YAML.
  }
  return document;
}

/**
 * Merges the parts: `common.yaml` is the document, and every other file adds paths, components and tags to it. Throws when
 * two describe the same one, or when a part has anything else.
 */
export function mergeParts(texts: Record<string, string>): Named {
  const { [commonPart]: common = '', ...areas } = texts;
  const document = load(common) as Named & Part;
  for (const [name, text] of Object.entries(areas)) {
    const { paths = {}, components = {}, tags = [], ...rest } = load(text) as Part;
    for (const key of Object.keys(rest)) throw new Error(`${name} has "${key}", which belongs in ${commonPart}.`);
    document.paths = merged(name, document.paths, paths);
    document.tags = [...(document.tags ?? []), ...tags];
    for (const [kind, entries] of Object.entries(components)) {
      document.components = { ...document.components, [kind]: merged(name, document.components?.[kind], entries) };
    }
  }
  return document;
}

function merged(name: string, into: Named = {}, entries: Named): Named {
  for (const key of Object.keys(entries)) {
    if (Object.hasOwn(into, key)) throw new Error(`${name} describes ${key}, which another part describes already.`);
  }
  return { ...into, ...entries };
}
