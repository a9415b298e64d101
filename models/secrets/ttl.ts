import { DomainError } from '../../base/errors.ts';

const maxTtlMs = 30 * 86_400_000;

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 } as const;
const short = /^(\d{1,12})(s|m|h|d)$/;
// Years and months have no fixed length, so only the other parts of ISO 8601 are accepted.
const iso =
  /^P(?:(\d{1,9}(?:[.,]\d{1,9})?)W)?(?:(\d{1,9}(?:[.,]\d{1,9})?)D)?(?:T(?=\d)(?:(\d{1,9}(?:[.,]\d{1,9})?)H)?(?:(\d{1,9}(?:[.,]\d{1,9})?)M)?(?:(\d{1,12}(?:[.,]\d{1,9})?)S)?)?$/;

/**
 * A duration such as `30s`, `15m`, `24h`, `7d` or `PT1H30M`, in milliseconds: more than zero and at most 30 days.
 * Throws 400 `INVALID_TTL`.
 */
export function parseTtl(text: string): number {
  const ms = milliseconds(text);
  if (ms === undefined) throw invalid('is not a duration such as 30s, 15m, 24h, 7d or PT1H30M');
  if (ms < 1) throw invalid('must be longer than 0');
  if (ms > maxTtlMs) throw invalid('must be at most 30 days');
  return ms;
}

function milliseconds(text: string): number | undefined {
  const [, count, unit] = short.exec(text) ?? [];
  if (count !== undefined && unit !== undefined) return Number(count) * unitMs[unit as 's' | 'm' | 'h' | 'd'];
  const parts = iso.exec(text)?.slice(1);
  if (parts === undefined || parts.every((part) => part === undefined)) return undefined;
  const units = [unitMs.w, unitMs.d, unitMs.h, unitMs.m, unitMs.s];
  const given = parts.map((part) => Number((part ?? '0').replace(',', '.')));
  return Math.round(given.reduce((sum, value, index) => sum + value * (units[index] ?? 0), 0));
}

function invalid(detail: string): DomainError {
  return new DomainError('invalid', 'INVALID_TTL', `ttl ${detail}.`, { errors: [{ pointer: '/ttl', detail }] });
}
