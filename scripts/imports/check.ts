import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { faultWithinLayer, namedPermissions, permissionUsed } from './areas.ts';
import { cyclesOf } from './cycles.ts';
import { importsOf, lineAt, withoutComments } from './parse.ts';
import { confined, type Rule, rules } from './rules.ts';

/** Source text by path from the project's root, such as `api/frame/app.ts`. */
export type Sources = Map<string, string>;

const withoutRules = ['bench', 'scripts', 'test'];

/** The project's own TypeScript: the folders with rules, the tests and the benches. */
export function readSources(root: string): Sources {
  const patterns = [...Object.keys(rules), ...withoutRules].map((folder) => `${folder}/**/*.ts`);
  const paths = globSync(patterns, { cwd: root }).map((path) => path.replaceAll('\\', '/'));
  return new Map(paths.sort().map((path) => [path, readFileSync(posix.join(root, path), 'utf8')]));
}

/** One line for each import or statement that breaks a rule, and for each import cycle. */
export function checkImports(sources: Sources): string[] {
  const broken = [...sources].flatMap(([path, source]) => {
    const code = withoutComments(source);
    const rule = rules[folderOf(path)];
    if (rule === undefined) return [];
    return [...checkArrows(path, code, rule), ...checkConfined(path, code)];
  });
  return [...broken, ...checkCycles(sources)];
}

/** Finds files that load each other: no order works to read or start them. Types may refer to each other. */
function checkCycles(sources: Sources): string[] {
  const graph = new Map(
    [...sources].map(([path, source]) => {
      const loaded = importsOf(withoutComments(source)).filter(
        ({ from, typeOnly }) => from.startsWith('.') && !typeOnly,
      );
      return [path, loaded.map(({ from }) => posix.join(posix.dirname(path), from))];
    }),
  );
  return cyclesOf(graph).map((cycle) => `${cycle.join(' → ')} → ${cycle[0]} import each other in a circle`);
}

function checkArrows(path: string, code: string, rule: Rule): string[] {
  return importsOf(code).flatMap(({ from, typeOnly, line }) => {
    const fault = from.startsWith('.')
      ? faultOfFile(path, posix.join(posix.dirname(path), from), typeOnly, rule)
      : faultOfPackage(from, typeOnly, rule);
    return fault === undefined ? [] : [`${path}:${line} ${fault}`];
  });
}

function faultOfFile(path: string, target: string, typeOnly: boolean, rule: Rule): string | undefined {
  const own = folderOf(path);
  const covers = (names: string[] = []) => names.includes(target) || names.includes(folderOf(target));
  if (folderOf(target) === own) return faultWithinLayer(path, target);
  if (covers(rule.may)) return undefined;
  if (!covers(rule.typesOf)) return `imports ${target}: ${own}/ may not (${rule.why})`;
  // `import { type A }` still loads the module at run time. Only `import type` does not.
  return typeOnly ? undefined : `imports ${target}: ${own}/ may use its types only, by "import type" (${rule.why})`;
}

function faultOfPackage(name: string, typeOnly: boolean, rule: Rule): string | undefined {
  if (rule.packages === undefined || typeOnly) return undefined;
  if (rule.packages.some((allowed) => isOf(allowed, name))) return undefined;
  return `imports the package ${name} (${rule.why})`;
}

function checkConfined(path: string, code: string): string[] {
  return confined.flatMap(({ pattern, only, message }) => {
    const match = only(path) ? null : pattern.exec(code);
    return match === null ? [] : [`${path}:${lineAt(code, match.index)} ${message}`];
  });
}

/** The permissions that no import uses, so that the rules do not allow more than needed. */
export function unusedPermissions(sources: Sources): string[] {
  const used = new Set([...sources].flatMap(([path, source]) => permissionsUsed(path, withoutComments(source))));
  const granted = Object.entries(rules).flatMap(([folder, { may, typesOf = [], packages = [] }]) => [
    ...may.map((name) => `${folder} may use ${name}`),
    ...typesOf.map((name) => `${folder} may use types of ${name}`),
    ...packages.map((name) => `${folder} may use the package ${name}`),
  ]);
  return [...granted, ...namedPermissions()].filter((permission) => !used.has(permission));
}

function permissionsUsed(path: string, code: string): string[] {
  const folder = folderOf(path);
  const packages = rules[folder]?.packages ?? [];
  return importsOf(code).flatMap(({ from, typeOnly }) => {
    if (!from.startsWith('.')) {
      return packages
        .filter((name) => !typeOnly && isOf(name, from))
        .map((name) => `${folder} may use the package ${name}`);
    }
    const target = posix.join(posix.dirname(path), from);
    const use = `${folder} ${typeOnly ? 'may use types of' : 'may use'}`;
    return [`${use} ${target}`, `${use} ${folderOf(target)}`, permissionUsed(path, target) ?? ''];
  });
}

function isOf(allowed: string, name: string): boolean {
  return name === allowed || name.startsWith(`${allowed}/`);
}

function folderOf(path: string): string {
  return path.split('/')[0] ?? path;
}
