import type { SecretInfo } from '../../models/secrets/secrets.ts';
import { time } from '../frame/times.ts';
import type { components } from '../types.gen.ts';

/** A secret without its value. */
export function presentSecret(secret: SecretInfo): components['schemas']['Secret'] {
  const { name, createdAt, updatedAt, updatedBy } = secret;
  return { name, createdAt: time(createdAt), updatedAt: time(updatedAt), updatedBy };
}
