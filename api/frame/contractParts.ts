import type { OpenAPIV3 as OpenApi } from 'express-openapi-validator/dist/framework/types.js';
import type { Contract, Operation } from './contract.ts';

/** The contract of one path, and of the paths with the same shape: `/a/{one}` and `/a/{other}`. */
export interface ContractPart {
  operations: Operation[];
  /**
   * The paths with the components that they use. The answers are left out unless wanted. Each call returns a new copy,
   * because the validator changes its input.
   */
  copy(options?: { withAnswers: boolean }): OpenApi.DocumentV3_1;
}

type Json = Record<string, unknown>;

/**
 * Splits the contract by path. For each operation the validator hands the whole document to the schema compiler, which
 * walks all of it every time. With one document the start would take time quadratic in the number of operations. Paths
 * of one shape stay together so that ambiguous ones are detected.
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
