import { hash, randomBytes } from 'node:crypto';

/** A token for a link: 256 random bits, which go into a URL as they are. Only its hash is stored. */
export function newLinkToken(): string {
  return randomBytes(32).toString('base64url');
}

/** What is stored of a link's token, so that a database dump does not contain working links. */
export function hashLinkToken(token: string): Buffer {
  return hash('sha256', `atrium/link/${token}`, 'buffer');
}
