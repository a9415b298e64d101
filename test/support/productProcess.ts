import { createRuntime, type Role } from '../../bin/support/runtime.ts';
import { loadConfig } from '../../config/index.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { recordStatements } from './recordStatements.ts';

/**
 * Atrium in a process of its own, for tests that observe it from outside or kill it: `node
 * test/support/productProcess.ts ROLE`. It reads its configuration from the environment, prints one line `{"apiUrl"}`
 * when it is ready, and stops in order on SIGTERM. It ends when its standard input closes, so that a killed test leaves
 * no process behind. With `RECORD_STATEMENTS` it writes its kinds of SQL statements to that file at exit.
 */
const { RECORD_STATEMENTS: statementsFile } = process.env;
if (statementsFile !== undefined) recordStatements(statementsFile);
const role = process.argv[2] as Role;
const config = loadConfig();
const logger = createLogger({ level: config.logLevel });
const runtime = await createRuntime(config, logger, role);
const { worker, hosting, api: made } = await runtime.startParts({ shutdownGraceMs: 1_000 });
const headStarts = runtime.startHeadStarts({ shutdownGraceMs: 1_000 });
const api = await made?.open();
const sweeping = new AbortController();
const swept = runtime.keepSchedules(sweeping.signal);

worker?.failed.catch((error: unknown) => {
  logger.fatal({ err: error }, 'The worker has ended by itself.');
  process.exit(1);
});

async function stop(): Promise<never> {
  sweeping.abort();
  await swept;
  await api?.close({ graceMs: 2_000 });
  await headStarts?.stop();
  await hosting?.stop({ withComputers: role === 'both' });
  await worker?.stop();
  await runtime.close();
  process.exit(0);
}

process.once('SIGTERM', () => void stop());
process.stdin.on('end', () => process.exit(1)).resume();
process.stdout.write(`${JSON.stringify({ apiUrl: api?.url })}\n`);
