import { DomainError } from '../../base/errors.ts';
import type { ManifestProblem } from './manifest.ts';

/** 422 with the line and column of every fault. */
export function refusedManifest({ code, detail, faults }: ManifestProblem): DomainError {
  return new DomainError('unprocessable', code, detail, {
    errors: faults.map(({ line, column, detail: fault }) => ({
      pointer: `atrium.yaml:${line}:${column}`,
      detail: fault,
    })),
  });
}
