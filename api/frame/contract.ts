import type { OpenAPIV3 as OpenApi } from 'express-openapi-validator/dist/framework/types.js';
import { readDocument } from './contractDocument.ts';

/** One operation of the contract, with what the frame needs to know of it. */
export interface Operation {
  id: string;
  /** Its tag. */
  area: string;
  /** Upper-case. */
  method: string;
  /** As the contract writes it: `/api/spaces/{spaceId}`. */
  path: string;
  /** Needs no credential; it may still take one. */
  isPublic: boolean;
  /** Takes an API key, and not only a session. */
  takesApiKey: boolean;
  /** What an API key needs to be allowed; `any` means no particular scope. */
  scope: string | undefined;
  /** The media types of its body; empty when it has none. */
  bodyTypes: string[];
  bodyRequired: boolean;
  /** Opens a WebSocket. */
  isUpgrade: boolean;
}

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
  requestBody?: { required?: boolean; content?: Record<string, unknown> };
}

const methods = ['get', 'put', 'post', 'delete', 'patch'] as const;

/** Reads the contract in `api/contract/`, and what a test adds to it. */
export function loadContract(more: Record<string, string> = {}): Contract {
  const { document } = readDocument(more);
  const operations: Operation[] = [];
  for (const [path, item] of Object.entries(document.paths ?? {})) {
    for (const method of methods) {
      const raw = (item as Record<string, RawOperation | undefined>)[method];
      if (raw !== undefined) operations.push(operationOf(document, path, method, raw));
    }
  }
  return { document, operations };
}

function operationOf(document: OpenApi.DocumentV3_1, path: string, method: string, raw: RawOperation): Operation {
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
    isUpgrade: raw['x-upgrade'] === 'websocket',
  };
}
