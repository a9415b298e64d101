import type { OpenAPIV3 as OpenApi } from 'express-openapi-validator/dist/framework/types.js';
import { readDocument } from './contractDocument.ts';

/** One operation of the contract, reduced to what the frame needs. */
export interface Operation {
  id: string;
  /** Its tag. */
  area: string;
  /** Upper-case. */
  method: string;
  /** As the contract writes it: `/api/spaces/{spaceId}`. */
  path: string;
  /** Needs no credential, but may take one. */
  isPublic: boolean;
  /** Accepts an API key, not only a session. */
  takesApiKey: boolean;
  /** The scope that an API key needs. `any` means no particular one. */
  scope: string | undefined;
  /** The media types of its body. Empty when it has none. */
  bodyTypes: string[];
  bodyRequired: boolean;
  /** The longest JSON body, if the operation takes a longer one than others. */
  maxBodyBytes?: number;
  /** Opens a WebSocket. */
  isUpgrade: boolean;
  /** The media types of its 2xx answers. Empty when they have no body. */
  answerTypes: string[];
  parameters: Parameter[];
}

/** A parameter of a path, a query or a header: one scalar, or a list of them. */
export interface Parameter {
  in: 'path' | 'query' | 'header';
  name: string;
  type: ScalarType;
  isList: boolean;
}

export type ScalarType = (typeof scalarTypes)[number];

const scalarTypes = ['string', 'integer', 'number', 'boolean'] as const;

export interface Contract {
  document: OpenApi.DocumentV3_1;
  operations: Operation[];
}

interface RawOperation {
  operationId: string;
  tags?: string[];
  security?: Record<string, string[]>[];
  'x-scope'?: string;
  'x-upgrade'?: 'websocket';
  'x-body-mib'?: number;
  parameters?: (RawParameter | Reference)[];
  requestBody?: { required?: boolean; content?: Record<string, unknown> };
  responses?: Record<string, { content?: Record<string, unknown> } | Reference>;
}

interface RawParameter {
  in: Parameter['in'];
  name: string;
  schema: RawSchema | Reference;
}

interface RawSchema {
  type?: string;
  items?: RawSchema | Reference;
}

interface Reference {
  $ref: string;
}

const methods = ['get', 'put', 'post', 'delete', 'patch'] as const;

/**
 * Reads the contract in `api/contract/`, plus parts that a test adds. `cacheDir` keeps the result for the next start.
 */
export function loadContract(more: Record<string, string> = {}, cacheDir?: string): Contract {
  const { document } = readDocument(more, cacheDir);
  const operations: Operation[] = [];
  for (const [path, item] of Object.entries(document.paths ?? {})) {
    for (const method of methods) {
      const raw = (item as Record<string, RawOperation | undefined>)[method];
      if (raw === undefined) continue;
      const shared = (item as Pick<RawOperation, 'parameters'>).parameters ?? [];
      const parameters = [...shared, ...(raw.parameters ?? [])].map((one) => parameterOf(document, one));
      operations.push({ ...operationOf(document, path, method, raw), parameters });
    }
  }
  return { document, operations };
}

function operationOf(
  document: OpenApi.DocumentV3_1,
  path: string,
  method: string,
  raw: RawOperation,
): Omit<Operation, 'parameters'> {
  const security = raw.security ?? document.security ?? [];
  return {
    id: raw.operationId,
    area: raw.tags?.[0] ?? '',
    method: method.toUpperCase(),
    path,
    isPublic: security.length === 0 || security.some((scheme) => Object.keys(scheme).length === 0),
    takesApiKey: security.some((scheme) => Object.hasOwn(scheme, 'apiKey')),
    scope: raw['x-scope'],
    bodyTypes: Object.keys(raw.requestBody?.content ?? {}),
    bodyRequired: raw.requestBody?.required ?? false,
    ...(raw['x-body-mib'] !== undefined && { maxBodyBytes: raw['x-body-mib'] * 2 ** 20 }),
    isUpgrade: raw['x-upgrade'] === 'websocket',
    answerTypes: answerTypesOf(document, raw),
  };
}

function answerTypesOf(document: OpenApi.DocumentV3_1, { responses = {} }: RawOperation): string[] {
  const good = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  return [...new Set(good.flatMap(([, response]) => Object.keys(resolve(document, response).content ?? {})))];
}

/** Throws for a parameter whose type the frame cannot read. */
function parameterOf(document: OpenApi.DocumentV3_1, raw: RawParameter | Reference): Parameter {
  const { in: place, name, schema } = resolve(document, raw);
  const whole = resolve(document, schema);
  const isList = whole.type === 'array';
  const one = isList ? resolve(document, whole.items ?? {}) : whole;
  const type = scalarTypes.find((known) => known === one.type);
  if (type === undefined) throw new Error(`The parameter ${name} has no type that a parameter can have.`);
  return { in: place, name, type, isList };
}

function resolve<T extends object>(document: OpenApi.DocumentV3_1, value: T | Reference): T {
  if (!('$ref' in value)) return value;
  const keys = value.$ref.slice('#/'.length).split('/');
  const found = keys.reduce((place, key) => (place as Record<string, unknown>)[key], document as unknown);
  return resolve(document, found as T | Reference);
}
