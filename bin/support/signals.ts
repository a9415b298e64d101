/** A stop that was requested before Atrium was ready. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** One Ctrl-C arrives from the terminal, from npm and from the bootstrap: a signal later than this is a new one. */
const sameKeyPressMs = 2_000;

/**
 * A signal that is aborted when a person or a supervisor asks to stop. At a second request the process ends at once,
 * with everything it started.
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
  // A terminal that has gone away must not turn an orderly stop into a crash.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return controller.signal;
}

/** Settles when a stop is requested. */
export function stopRequested(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
