import { isLoadingVariable, whyRefused } from '../../base/loadingVariables.ts';
import type { Fault } from './readManifest.ts';

type Kind = keyof typeof fieldsOf;

/** The fields that only components of one kind have. */
const fieldsOf = {
  process: { needed: [], own: [] },
  webhook: { needed: [], own: ['auth'] },
  schedule: { needed: ['cron', 'timeZone'], own: ['cron', 'timeZone', 'overlap', 'jitter'] },
  web: { needed: ['port'], own: ['port'] },
} as const satisfies Record<string, { needed: readonly string[]; own: readonly string[] }>;

/** The fields of a schedule component. */
export interface WrittenSchedule {
  cron: string;
  timeZone: string;
  jitterSeconds: number;
}

/** Returns the fault of such a schedule, if any. */
export type CheckSchedule = (
  schedule: WrittenSchedule,
) => { field: 'cron' | 'timeZone' | 'jitter'; detail: string } | undefined;

/**
 * The faults of a manifest's components that a schema cannot express. It checks every part that is there, so that one
 * fault does not hide the others.
 */
export function componentFaults(manifest: unknown, checkSchedule: CheckSchedule): Fault[] {
  const components: unknown = isObject(manifest) ? manifest.components : undefined;
  if (!Array.isArray(components)) return [];
  const names = new Set<string>();
  const kindsWithDefault = new Set<unknown>();
  return components.flatMap((component: unknown, index) => {
    if (!isObject(component)) return [];
    const pointer = `/components/${index}`;
    const { name, kind, default: isDefault } = component;
    const faults = [
      ...faultsOfKind(component, pointer),
      ...faultsOfFields(component, pointer),
      ...faultsOfSchedule(component, pointer, checkSchedule),
    ];
    if (typeof name === 'string' && names.has(name)) {
      faults.push({ pointer: `${pointer}/name`, detail: `another component is called ${name} too` });
    }
    if (typeof name === 'string') names.add(name);
    if (isDefault === true && kindsWithDefault.has(kind)) {
      faults.push({ pointer: `${pointer}/default`, detail: 'only one component of a kind can be the default' });
    }
    if (isDefault === true) kindsWithDefault.add(kind);
    return faults;
  });
}

function faultsOfKind(component: Record<string, unknown>, pointer: string): Fault[] {
  const { kind } = component;
  if (!isKind(kind)) return [];
  const faults: Fault[] = [];
  for (const field of fieldsOf[kind].needed) {
    if (component[field] === undefined) faults.push({ pointer, detail: `\`${field}\` is missing`, isMissing: true });
  }
  for (const [other, { own }] of Object.entries(fieldsOf)) {
    for (const field of own) {
      if (other === kind || component[field] === undefined) continue;
      faults.push({
        pointer: `${pointer}/${field}`,
        detail: `only a ${other} component has \`${field}\``,
        atKey: true,
      });
    }
  }
  return faults;
}

function faultsOfFields(component: Record<string, unknown>, pointer: string): Fault[] {
  const faults: Fault[] = [];
  const add = (where: string, detail: string) => faults.push({ pointer: `${pointer}/${where}`, detail });
  const { cwd, command, env: written, secrets } = component;
  const env = isObject(written) ? written : {};
  if (typeof cwd === 'string' && !isBelow(cwd)) add('cwd', 'must be a folder of the app: relative, without ".."');
  if (hasNul(command)) add('command', 'must not have a NUL');
  if (hasNul(cwd)) add('cwd', 'must not have a NUL');
  for (const [key, text] of Object.entries(env)) {
    if (hasNul(text)) add(`env/${key}`, 'must not have a NUL');
    if (isLoadingVariable(key)) add(`env/${key}`, whyRefused(key));
  }
  for (const [place, secret] of (Array.isArray(secrets) ? secrets : []).entries()) {
    if (typeof secret === 'string' && Object.hasOwn(env, secret)) {
      add(`secrets/${place}`, `${secret} is in \`env\` too`);
    }
  }
  return faults;
}

function faultsOfSchedule(
  { kind, cron, timeZone, jitter = 0 }: Record<string, unknown>,
  pointer: string,
  check: CheckSchedule,
): Fault[] {
  if (kind !== 'schedule' || typeof cron !== 'string' || typeof timeZone !== 'string') return [];
  const fault = check({ cron, timeZone, jitterSeconds: typeof jitter === 'number' ? jitter : 0 });
  return fault === undefined ? [] : [{ pointer: `${pointer}/${fault.field}`, detail: fault.detail }];
}

function isKind(kind: unknown): kind is Kind {
  return typeof kind === 'string' && Object.hasOwn(fieldsOf, kind);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasNul(text: unknown): boolean {
  return typeof text === 'string' && text.includes('\0');
}

function isBelow(path: string): boolean {
  return !path.startsWith('/') && !path.split('/').includes('..');
}
