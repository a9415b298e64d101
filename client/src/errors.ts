import type { components } from './api.ts';

type Problem = components['schemas']['Problem'];

/** An error answer, with its problem document (RFC 9457). */
export class AtriumError extends Error {
  override readonly name = 'AtriumError';
  readonly status: number;
  /** A stable code. `UNKNOWN` if the answer was no problem+json, as with a proxy's error. */
  readonly code: string;
  readonly problem: Problem | undefined;

  constructor(status: number, problem: Problem | undefined) {
    super(problem?.detail ?? `The server answered ${status}.`);
    this.status = status;
    this.code = problem?.code ?? 'UNKNOWN';
    this.problem = problem;
  }

  static async of(response: Response): Promise<AtriumError> {
    const isProblem = response.headers.get('content-type')?.includes('json') === true;
    const problem = isProblem ? ((await response.json().catch(() => undefined)) as Problem | undefined) : undefined;
    return new AtriumError(response.status, problem);
  }
}
