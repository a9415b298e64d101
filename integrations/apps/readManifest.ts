import Ajv2020, { type ErrorObject } from 'ajv/dist/2020.js';
import type { YamlFault, YamlText } from '../readers/kinds/yaml.ts';
import { manifestSchema } from './manifestSchema.ts';

export interface ManifestComponent {
  name: string;
  kind: 'process';
  command: string;
  /** Below the app's folder; empty is the folder itself. */
  cwd: string;
  env: Record<string, string>;
  /** Names of the space's secrets, which become variables of the same names. */
  secrets: string[];
  timeoutSeconds: number;
  retry: { attempts: number; delaySeconds: number };
  concurrency: number;
  isDefault: boolean;
}

export interface Manifest {
  name: string;
  components: ManifestComponent[];
}

/** What is wrong, and where. */
export type ManifestFault = YamlFault;

export type ManifestText = { manifest: Manifest } | { faults: ManifestFault[] };

/** `pointer` is that of the value, or of its key. */
type Fault = { pointer: string; detail: string; atKey?: boolean };

interface Written {
  name: string;
  components: {
    name: string;
    kind: 'process';
    command: string;
    cwd?: string;
    env?: Record<string, string | number | boolean>;
    secrets?: string[];
    timeout?: number;
    retry?: { attempts: number; delay?: number };
    concurrency?: number;
    default?: boolean;
  }[];
}

const maxFaults = 20;
const maxDetail = 500;
const defaultTimeoutSeconds = 3_600;
const defaultDelaySeconds = 10;

const validate = new Ajv2020.default({ allErrors: true, strict: true, allowUnionTypes: true }).compile<Written>(
  manifestSchema,
);

/** What a manifest says, with what it leaves out filled in, or everything that is wrong with it. */
export function manifestOf(document: YamlText): ManifestText {
  if ('faults' in document) return document;
  const { value } = document;
  const faults = validate(value) ? faultsOf(value) : (validate.errors ?? []).filter(isWhole).map(described);
  if (faults.length === 0) return { manifest: completed(value as Written) };
  return { faults: sorted(faults.map((fault) => ({ ...placeOf(fault), detail: fault.detail.slice(0, maxDetail) }))) };

  /** Where the thing is written; where it is missing, what it is missing from. */
  function placeOf({ pointer, atKey = false }: Fault) {
    const { values, keys } = document as Extract<YamlText, { value: unknown }>;
    for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      const place = (atKey ? keys[at] : undefined) ?? values[at];
      if (place !== undefined) return place;
    }
    return values[''] ?? { line: 1, column: 1 };
  }
}

function sorted(faults: ManifestFault[]): ManifestFault[] {
  return faults.toSorted((a, b) => a.line - b.line || a.column - b.column).slice(0, maxFaults);
}

/** What no schema says. */
function faultsOf({ components }: Written): Fault[] {
  const faults: Fault[] = [];
  const names = new Set<string>();
  let hasDefault = false;
  for (const [index, component] of components.entries()) {
    const { name, cwd, command, env = {}, secrets = [], default: isDefault = false } = component;
    const add = (where: string, detail: string) => faults.push({ pointer: `/components/${index}/${where}`, detail });
    if (names.has(name)) add('name', `another component is called ${name} too`);
    names.add(name);
    if (cwd !== undefined && !isBelow(cwd)) add('cwd', 'must be a folder of the app: relative, without ".."');
    if (hasNul(command)) add('command', 'must not have a NUL');
    if (hasNul(cwd ?? '')) add('cwd', 'must not have a NUL');
    for (const [key, text] of Object.entries(env)) if (hasNul(String(text))) add(`env/${key}`, 'must not have a NUL');
    for (const [place, secret] of secrets.entries()) {
      if (Object.hasOwn(env, secret)) add(`secrets/${place}`, `${secret} is in \`env\` too`);
    }
    if (isDefault && hasDefault) add('default', 'only one component can be the default');
    hasDefault ||= isDefault;
  }
  return faults;
}

function hasNul(text: string): boolean {
  return text.includes('\0');
}

function isBelow(path: string): boolean {
  return !path.startsWith('/') && !path.split('/').includes('..');
}

/** Of a name that is wrong it is said once, and not how. */
function isWhole({ propertyName }: ErrorObject): boolean {
  return propertyName === undefined;
}

function described({ instancePath: pointer, keyword, message = 'is wrong', params }: ErrorObject): Fault {
  const name = pointer.split('/').findLast((part) => part !== '' && !/^\d+$/.test(part));
  const where = name === undefined ? '' : `${name} `;
  switch (keyword) {
    case 'additionalProperties': {
      const unknown = String((params as { additionalProperty: string }).additionalProperty);
      const escaped = unknown.replaceAll('~', '~0').replaceAll('/', '~1');
      return { pointer: `${pointer}/${escaped}`, detail: `there is no field \`${unknown}\` here`, atKey: true };
    }
    case 'propertyNames': {
      const wrong = String((params as { propertyName: string }).propertyName);
      const escaped = wrong.replaceAll('~', '~0').replaceAll('/', '~1');
      return { pointer: `${pointer}/${escaped}`, detail: `${wrong} is not a name of a variable`, atKey: true };
    }
    case 'required':
      return { pointer, detail: message };
    case 'enum':
      return {
        pointer,
        detail: `${where}must be one of ${(params as { allowedValues: unknown[] }).allowedValues.join(', ')}`,
      };
    default:
      return { pointer, detail: `${where}${message}` };
  }
}

function completed({ name, components }: Written): Manifest {
  const isOnly = components.length === 1;
  return {
    name,
    components: components.map(({ env = {}, cwd = '', timeout, retry, ...component }) => ({
      name: component.name,
      kind: component.kind,
      command: component.command,
      cwd,
      env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, String(value)])),
      secrets: component.secrets ?? [],
      timeoutSeconds: timeout ?? defaultTimeoutSeconds,
      retry: { attempts: retry?.attempts ?? 1, delaySeconds: retry?.delay ?? defaultDelaySeconds },
      concurrency: component.concurrency ?? 1,
      isDefault: component.default ?? isOnly,
    })),
  };
}
