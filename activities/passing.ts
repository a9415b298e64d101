import { DomainError } from '../base/errors.ts';
import { isAway } from '../models/database/unavailable.ts';

const codes = [
  'COMPUTER_WAKES',
  'HOST_LOST',
  'COMPUTER_NOT_ANSWERING',
  'TOO_MANY_PROCESSES',
  'FILES_BUSY',
  'DATABASE_NOT_READY',
];

/** True if the error passes by itself, for example while a computer wakes. */
export function isPassing(error: unknown): boolean {
  return isAway(error) || (error instanceof DomainError && codes.includes(error.code));
}
