import { startFakeProvider } from './openaiServer.ts';

/**
 * The fake provider as a process of its own, for benchmarks and for tests that kill Atrium: `node
 * test/fakes/openaiServerProcess.ts [PORT]` prints its base URL and runs until SIGINT or SIGTERM.
 */
const provider = await startFakeProvider({ port: Number(process.argv[2] ?? 0) });
process.stdout.write(`${provider.url}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void provider.stop().then(() => process.exit(0)));
}
