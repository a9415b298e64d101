import Ajv2020, { type ErrorObject } from 'ajv/dist/2020.js';
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml';
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

/** What is wrong, and where; both count from 1. */
export interface ManifestFault {
  line: number;
  column: number;
  detail: string;
}

export type ManifestText = { manifest: Manifest } | { faults: ManifestFault[] };

type Path = (string | number)[];
type Fault = { path: Path; detail: string; atKey?: boolean };

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

const wordsOf: Readonly<Partial<Record<string, string>>> = {
  MULTIPLE_DOCS: 'a second document begins here, and only one is read',
};
const maxFaults = 20;
const maxDetail = 500;
const defaultTimeoutSeconds = 3_600;
const defaultDelaySeconds = 10;

const validate = new Ajv2020.default({ allErrors: true, strict: true, allowUnionTypes: true }).compile<Written>(
  manifestSchema,
);

/** Reads `atrium.yaml`: what it says, with what it leaves out filled in, or everything that is wrong with it. */
export async function readManifest(bytes: Uint8Array): Promise<ManifestText> {
  const lines = new LineCounter();
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const faultAt = (offset: number, detail: string) => ({ ...at(offset), detail: detail.slice(0, maxDetail) });
  const text = decode(bytes);
  if (text === undefined) return { faults: [{ line: 1, column: 1, detail: 'is not UTF-8' }] };
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, merge: false });
  const unread = [...document.errors, ...document.warnings];
  if (unread.length > 0)
    return { faults: sorted(unread.map(({ pos, code, message }) => faultAt(pos[0], wordsOf[code] ?? message))) };
  const odd: ManifestFault[] = [];
  visit(document, {
    Node(_key, node) {
      if (!isAlias(node) && node.anchor === undefined) return;
      odd.push(faultAt(node.range?.[0] ?? 0, 'anchors and aliases are not supported'));
    },
  });
  if (odd.length > 0) return { faults: sorted(odd) };
  const value: unknown = document.toJS();
  const faults = validate(value) ? faultsOf(value) : (validate.errors ?? []).filter(isWhole).map(described);
  if (faults.length > 0) {
    return { faults: sorted(faults.map((fault) => faultAt(offsetOf(document, fault), fault.detail))) };
  }
  return { manifest: completed(value as Written) };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
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
  components.forEach(({ name, cwd, command, env = {}, secrets = [], default: isDefault = false }, index) => {
    const path = ['components', index];
    if (names.has(name)) faults.push({ path: [...path, 'name'], detail: `another component is called ${name} too` });
    names.add(name);
    if (cwd !== undefined && !isBelow(cwd)) {
      faults.push({ path: [...path, 'cwd'], detail: 'must be a folder of the app: relative, without ".."' });
    }
    for (const [key, text] of Object.entries({ command, cwd, ...env })) {
      const where = key === 'command' || key === 'cwd' ? [key] : ['env', key];
      if (String(text).includes('\0')) faults.push({ path: [...path, ...where], detail: 'must not have a NUL' });
    }
    for (const [place, secret] of secrets.entries()) {
      if (Object.hasOwn(env, secret)) {
        faults.push({ path: [...path, 'secrets', place], detail: `${secret} is in \`env\` too` });
      }
    }
    if (isDefault && hasDefault) {
      faults.push({ path: [...path, 'default'], detail: 'only one component can be the default' });
    }
    hasDefault ||= isDefault;
  });
  return faults;
}

function isBelow(path: string): boolean {
  return !path.startsWith('/') && !path.split('/').includes('..');
}

/** Of a name that is wrong it is said once, and not how. */
function isWhole({ propertyName }: ErrorObject): boolean {
  return propertyName === undefined;
}

function described({ instancePath, keyword, message = 'is wrong', params }: ErrorObject): Fault {
  const path = instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const name = path.findLast((part) => typeof part === 'string');
  const where = name === undefined ? '' : `${name} `;
  switch (keyword) {
    case 'additionalProperties': {
      const unknown = String((params as { additionalProperty: string }).additionalProperty);
      return { path: [...path, unknown], detail: `there is no field \`${unknown}\` here`, atKey: true };
    }
    case 'propertyNames': {
      const wrong = String((params as { propertyName: string }).propertyName);
      return { path: [...path, wrong], detail: `${wrong} is not a name of a variable`, atKey: true };
    }
    case 'enum':
      return {
        path,
        detail: `${where}must be one of ${(params as { allowedValues: unknown[] }).allowedValues.join(', ')}`,
      };
    default:
      return { path, detail: `${where}${message}` };
  }
}

/** Where the thing is written; where it is missing, what it is missing from. */
function offsetOf(document: Document, { path, atKey = false }: Fault): number {
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const [depth, part] of path.entries()) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
      if (pair === undefined || !isPair(pair)) break;
      offset = atKey && depth === path.length - 1 ? startOf(pair.key) : (startOf(pair.value) ?? startOf(pair.key));
      node = pair.value;
    } else if (isNode(node) && 'items' in node && typeof part === 'number') {
      node = (node.items as unknown[])[part];
      offset = startOf(node) ?? offset;
    } else break;
  }
  return offset ?? 0;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined;
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
