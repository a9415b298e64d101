import { orAfter } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { ReadinessCheck } from '../frame/deps.ts';

export interface Readiness {
  status: 'ready' | 'degraded';
  parts: { name: string; status: 'ok' | 'unavailable'; durationMs: number; detail?: string }[];
}

/** How long a part may take to answer. */
export const checkTimeoutMs = 2_000;
const retryAfterSeconds = 2;

/** Asks all parts at once. Throws 503 `NOT_READY` when a part that the process needs does not answer. */
export async function askParts(parts: readonly ReadinessCheck[], logger: Logger): Promise<Readiness> {
  const results = await Promise.all(parts.map(measure));
  const failed = results.filter((result) => result.error !== undefined);
  for (const { name, error } of failed) logger.warn({ part: name, reason: String(error) }, 'not ready');
  const missing = failed.filter(({ without }) => without === undefined);
  if (missing.length > 0) throw notReady(missing);
  return {
    status: failed.length > 0 ? 'degraded' : 'ready',
    parts: results.map(({ name, durationMs, error, without }) => ({
      name,
      status: error === undefined ? 'ok' : 'unavailable',
      durationMs,
      ...(error !== undefined && without !== undefined && { detail: without }),
    })),
  };
}

export function notReady(parts: readonly Pick<ReadinessCheck, 'name' | 'fault'>[]): DomainError {
  const names = parts.map(({ name }) => name);
  return new DomainError('unavailable', 'NOT_READY', `Not ready: ${names.join(', ')}.`, {
    errors: parts.map(({ name, fault = 'does not answer' }) => ({ pointer: name, detail: fault })),
    retryAfterSeconds,
  });
}

type Measured = Omit<ReadinessCheck, 'check'> & { durationMs: number; error?: unknown };

async function measure({ check, ...part }: ReadinessCheck): Promise<Measured> {
  const startedAt = performance.now();
  const duration = () => Math.round((performance.now() - startedAt) * 10) / 10;
  try {
    const outcome = await orAfter(check(), checkTimeoutMs, 'late');
    if (outcome === 'late') throw new Error(`no answer in ${checkTimeoutMs} ms`);
    return { ...part, durationMs: duration() };
  } catch (error) {
    return { ...part, durationMs: duration(), error };
  }
}
