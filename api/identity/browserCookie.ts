import { hash, randomBytes } from 'node:crypto';
import type { Request, Response } from 'express';
import type { Config } from '../../config/index.ts';

const lifetimeMs = 10 * 60_000;
const acceptable = /^[A-Za-z0-9_-]{43}$/;

/**
 * A cookie that proves that the browser returning from an issuer is the one that was sent there. Otherwise an attacker
 * could make another browser finish the attacker's sign-in. It has no other meaning, and several tabs share it.
 */
export function createBrowserCookie({ http }: Pick<Config, 'http'>) {
  const secure = http.publicUrl.startsWith('https:');
  const name = secure ? '__Host-atrium-sign-in' : 'atrium-sign-in';
  return {
    /** Sets the browser's cookie, reusing a valid one, and returns the cookie's fingerprint. */
    give(req: Request, res: Response): string {
      const value = valueIn(req, name) ?? randomBytes(32).toString('base64url');
      res.cookie(name, value, { httpOnly: true, secure, sameSite: 'lax', path: '/', maxAge: lifetimeMs });
      return fingerprintOf(value);
    },
    /** Whether this browser has the cookie with the fingerprint. */
    isOf(req: Request, fingerprint: string): boolean {
      const value = valueIn(req, name);
      return value !== undefined && fingerprintOf(value) === fingerprint;
    },
  };
}

function valueIn(req: Request, name: string): string | undefined {
  for (const part of (req.headers.cookie ?? '').split(';')) {
    const [key, value] = part.trim().split('=', 2);
    if (key === name && value !== undefined && acceptable.test(value)) return value;
  }
  return undefined;
}

function fingerprintOf(value: string): string {
  return hash('sha256', value, 'base64url');
}
