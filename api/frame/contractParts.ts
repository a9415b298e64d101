import type { OpenAPIV3 as OpenApi } from 'express-openapi-validator/dist/framework/types.js';
import type { Contract, Operation } from './contract.ts';

/** The contract of a path, and of those that have its shape: `/a/{one}` and `/a/{other}`. */
export interface ContractPart {
  operations: Operation[];
  /**
   * The paths, and the components that they use, those of the answers where these are wanted. A new copy each time, for
   * the validator changes what it is given.
   */
  copy(options?: { withAnswers: boolean }): OpenApi.DocumentV3_1;
}

type Json = Record<string, unknown>;

/**
 * Splits the contract by path. The validator hands the whole document to the schema compiler for each operation, which
 * walks it from end to end every time, and prepares all of it at the first request: with one document the start would
 * take time by the square of the number of operations. Paths of one shape stay together, so that those that cannot be
 * told apart are found.
 */
export function splitContract({ document, operations }: Contract): ContractPart[] {
  const parts = Map.groupBy(operations, ({ path }) => path.replace(/\{[^}]+\}/g, '{}'));
  return [...parts.values()].map((ofPart) => ({
    operations: ofPart,
    copy: ({ withAnswers } = { withAnswers: true }) =>
      partOf(document, new Set(ofPart.map(({ path }) => path)), withAnswers),
  }));
}

function partOf(
  document: OpenApi.DocumentV3_1,
  wanted: ReadonlySet<string>,
  withAnswers: boolean,
): OpenApi.DocumentV3_1 {
  const found = Object.entries((document.paths ?? {}) as Record<string, Json>).filter(([path]) => wanted.has(path));
  const paths = Object.fromEntries(found.map(([path, item]) => [path, withAnswers ? item : withoutAnswers(item)]));
  const all = document.components as unknown as Record<string, Json>;
  const components: Record<string, Json> = { securitySchemes: all.securitySchemes ?? {} };
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const [, kind, name] = /^#\/components\/([^/]+)\/([^/]+)$/.exec(String((value as Json).$ref)) ?? [];
    if (kind !== undefined && name !== undefined && components[kind]?.[name] === undefined) {
      const found = all[kind]?.[name];
      components[kind] = { ...components[kind], [name]: found };
      visit(found);
    }
    for (const child of Object.values(value)) visit(child);
  };
  visit(paths);
  return structuredClone({ ...document, paths, components }) as unknown as OpenApi.DocumentV3_1;
}

function withoutAnswers(item: Json): Json {
  const entries = Object.entries(item).map(([key, value]) => {
    const isOperation = typeof value === 'object' && value !== null && 'responses' in value;
    return [key, isOperation ? { ...value, responses: {} } : value];
  });
  return Object.fromEntries(entries);
}
