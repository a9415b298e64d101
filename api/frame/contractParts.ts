import type { OpenAPIV3 as OpenApi } from 'express-openapi-validator/dist/framework/types.js';
import type { Contract, Operation } from './contract.ts';

/** A contract of one area: its operations, and the components that they use. */
export interface ContractPart {
  document: OpenApi.DocumentV3_1;
  operations: Operation[];
}

type Json = Record<string, unknown>;

/**
 * Splits the contract by area. The validator hands the whole document to the schema compiler for each operation, which
 * walks it from end to end every time: with all areas in one document the start would take time by the square of their
 * number.
 */
export function splitContract({ document, operations }: Contract): ContractPart[] {
  const areas = new Map<string, Set<string>>();
  const areaOfPath = new Map<string, string>();
  for (const { path, area } of operations) {
    // Operations of one path stay together, so that the path is in one part only.
    const name = areaOfPath.get(path) ?? area;
    areaOfPath.set(path, name);
    areas.set(name, (areas.get(name) ?? new Set()).add(path));
  }
  return [...areas.values()].map((paths) => ({
    document: partOf(document, paths),
    operations: operations.filter(({ path }) => paths.has(path)),
  }));
}

function partOf(document: OpenApi.DocumentV3_1, wanted: ReadonlySet<string>): OpenApi.DocumentV3_1 {
  const paths = Object.fromEntries(Object.entries(document.paths ?? {}).filter(([path]) => wanted.has(path)));
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
  // The validator changes what it is given.
  return structuredClone({ ...document, paths, components }) as unknown as OpenApi.DocumentV3_1;
}
