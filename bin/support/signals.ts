/** A stop was requested before Atrium was ready. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/**
 * One Ctrl-C arrives three times: from the terminal, npm and the bootstrap. A later signal than this is a new request.
 */
const sameKeyPressMs = 2_000;

/**
 * A signal that aborts when a person or a supervisor asks to stop. At a second request the process exits at once, with
 * everything it started.
 */
export function stopOnSignals(): AbortSignal {
  const controller = new AbortController();
  let askedAt: number | undefined;
  for (const signal of signals) {
    process.on(signal, () => {
      if (askedAt === undefined) {
        askedAt = performance.now();
        controller.abort(new StoppedError(`Stopped by ${signal}.`));
      } else if (performance.now() - askedAt > sameKeyPressMs) {
        process.exit(130);
      }
    });
  }
  // A closed terminal must not turn an orderly stop into a crash.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return controller.signal;
}

export function stopRequested(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
