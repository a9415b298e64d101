import { reservedBecause } from '../../models/secrets/names.ts';
import type { SecretInfo } from '../../models/secrets/secrets.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

/** A secret without its value. */
export function presentSecret(secret: SecretInfo): components['schemas']['Secret'] {
  const { name, createdAt, updatedAt, updatedBy } = secret;
  const leftOutBecause = reservedBecause(name) ?? null;
  return { name, createdAt: time(createdAt), updatedAt: time(updatedAt), updatedBy, leftOutBecause };
}
