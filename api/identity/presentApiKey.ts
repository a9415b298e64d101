import type { ApiKeyRow } from '../../models/identity/tables.ts';
import { optionalTime, time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

type ApiKey = components['schemas']['ApiKey'];

/** A key without its text, which is not stored. */
export function presentApiKey(key: ApiKeyRow): ApiKey {
  return {
    id: key.id,
    name: key.name,
    hint: key.hint,
    scopes: JSON.parse(key.scopes) as ApiKey['scopes'],
    createdAt: time(key.createdAt),
    expiresAt: optionalTime(key.expiresAt),
    lastUsedAt: optionalTime(key.lastUsedAt),
  };
}
