import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';
import type { YamlFault, YamlText } from '../readers/kinds/yaml.ts';
import { type CheckSchedule, componentFaults } from './componentFaults.ts';
import { described, isWhole } from './manifestFaults.ts';
import { manifestSchema } from './manifestSchema.ts';

interface CommonComponent {
  name: string;
  command: string;
  /** Relative to the app's folder. Empty means the folder itself. */
  cwd: string;
  env: Record<string, string>;
  /** The name or id of the environment of the computer on which it runs. */
  environment?: string;
  /** Names of the space's secrets. Each becomes a variable of the same name. */
  secrets: string[];
  timeoutSeconds: number;
  retry: { attempts: number; delaySeconds: number };
  concurrency: number;
  /** The default among the components of its kind. */
  isDefault: boolean;
}

type OfKind =
  | { kind: 'process' }
  | { kind: 'webhook'; auth: 'signature' | 'none' }
  | {
      kind: 'schedule';
      cron: string;
      timeZone: string;
      overlap: 'skip' | 'queue' | 'interrupt';
      jitterSeconds: number;
    }
  | { kind: 'web'; port: number };

export type ManifestComponent = CommonComponent & OfKind;

export interface Manifest {
  name: string;
  components: ManifestComponent[];
}

export type ManifestFault = YamlFault;

export type ManifestText = { manifest: Manifest } | { faults: ManifestFault[] };

/**
 * `pointer` is the JSON pointer of the value. With `atKey`, the fault is at its key. With `isMissing`, something that
 * should be there is not, perhaps because its name is mistyped: such faults come last.
 */
export type Fault = { pointer: string; detail: string; atKey?: boolean; isMissing?: boolean };

interface WrittenComponent {
  name: string;
  kind: ManifestComponent['kind'];
  command: string;
  cwd?: string;
  environment?: string;
  env?: Record<string, string | number | boolean>;
  secrets?: string[];
  timeout?: number;
  retry?: { attempts: number; delay?: number };
  concurrency?: number;
  default?: boolean;
  auth?: 'signature' | 'none';
  cron?: string;
  timeZone?: string;
  overlap?: 'skip' | 'queue' | 'interrupt';
  jitter?: number;
  port?: number;
}

interface Written {
  name: string;
  environment?: string;
  components: WrittenComponent[];
}

const maxFaults = 20;
const maxDetail = 500;
const defaultTimeoutSeconds = 3_600;
const defaultDelaySeconds = 10;

let compiled: ValidateFunction<Written> | undefined;

/** Compiled on first use, because this takes a tenth of the start time. */
function validator(): ValidateFunction<Written> {
  compiled ??= new Ajv2020.default({ allErrors: true, strict: true, allowUnionTypes: true }).compile<Written>(
    manifestSchema,
  );
  return compiled;
}

/** A manifest with its defaults filled in, or all of its faults. */
export function manifestOf(document: YamlText, checkSchedule: CheckSchedule): ManifestText {
  if ('faults' in document) return document;
  const { value } = document;
  const validate = validator();
  const isWritten = validate(value);
  const faults = [...(validate.errors ?? []).filter(isWhole).map(described), ...componentFaults(value, checkSchedule)];
  if (isWritten && faults.length === 0) return { manifest: completed(value) };
  const placed = faults.map(({ detail, isMissing = false, ...fault }) => ({
    ...placeOf(fault),
    detail: detail.slice(0, maxDetail),
    isMissing,
  }));
  // A mistyped field comes before the field that is missing for that reason.
  const inOrder = placed.toSorted(
    (a, b) => Number(a.isMissing) - Number(b.isMissing) || a.line - b.line || a.column - b.column,
  );
  return { faults: inOrder.slice(0, maxFaults).map(({ isMissing: _, ...fault }) => fault) };

  /** The position of the value, or of the closest parent if it is missing. */
  function placeOf({ pointer, atKey = false }: Pick<Fault, 'pointer' | 'atKey'>) {
    const { values, keys } = document as Extract<YamlText, { value: unknown }>;
    for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      const place = (atKey ? keys[at] : undefined) ?? values[at];
      if (place !== undefined) return place;
    }
    return values[''] ?? { line: 1, column: 1 };
  }
}

function completed({ name, environment: usual, components }: Written): Manifest {
  return {
    name,
    components: components.map((component) => {
      const { environment = usual, env = {}, cwd = '', timeout, retry, secrets = [], concurrency = 1 } = component;
      const isOnly = components.filter(({ kind }) => kind === component.kind).length === 1;
      return {
        name: component.name,
        command: component.command,
        cwd,
        ...(environment !== undefined && { environment }),
        env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, String(value)])),
        secrets,
        timeoutSeconds: timeout ?? defaultTimeoutSeconds,
        retry: { attempts: retry?.attempts ?? 1, delaySeconds: retry?.delay ?? defaultDelaySeconds },
        concurrency,
        isDefault: component.default ?? isOnly,
        ...ofKind(component),
      };
    }),
  };
}

/** `componentFaults` has checked that the fields that each kind requires are there. */
function ofKind(component: WrittenComponent): OfKind {
  const { kind, auth = 'signature', cron = '', timeZone = '', overlap = 'skip', jitter = 0, port = 0 } = component;
  switch (kind) {
    case 'process':
      return { kind };
    case 'webhook':
      return { kind, auth };
    case 'schedule':
      return { kind, cron, timeZone, overlap, jitterSeconds: jitter };
    case 'web':
      return { kind, port };
  }
}
