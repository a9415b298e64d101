import { setTimeout as delay } from 'node:timers/promises';
import { ApplicationFailure } from '@temporalio/activity';
import { collectOutput } from '../../integrations/computers/collectOutput.ts';
import type { HostClient, OutputRequest } from '../../integrations/computers/hostClient.ts';
import { maskedOutput } from '../../integrations/computers/maskedOutput.ts';
import { signatureOf } from '../../integrations/git/rules/person.ts';
import { type KeptLog, noteAwake } from '../../models/apps/attempts.ts';
import { contentOf } from '../../models/apps/deliveries.ts';
import { cancelledBefore, notRun, outcomeOf, type RunOutcome } from '../../models/apps/outcome.ts';
import { findRun, isActive, processIdOf, type Run } from '../../models/apps/run.ts';
import { beginLog } from '../../models/apps/runLogs.ts';
import { endAttempt, isUnwanted, noteStarted } from '../../models/apps/steps.ts';
import { getComputer } from '../../models/computers/computer.ts';
import { DomainError } from '../../models/errors.ts';
import { may, standingOf } from '../../models/identity/authority.ts';
import { isAtLeast } from '../../models/identity/roles.ts';
import { isAway } from '../../models/unavailable.ts';
import { keepAlive } from '../keepAlive.ts';
import { UnwantedWatch } from '../unwantedWatch.ts';
import { databaseVariables } from './databaseVariables.ts';
import { asInput } from './deliveredInput.ts';
import type { AppDeps } from './deps.ts';
import { placeFiles } from './placeFiles.ts';
import { recordBytes } from './recordBytes.ts';

/** Of the output that a run keeps beside its log, for each stream. */
const maxOutputBytes = 65_536;
/** How long a process may take to end when it is asked to. */
const graceMs = 5_000;
const watchIntervalMs = 1_000;
/** What passes by itself, as a computer that takes long to wake. */
const passing = [
  'COMPUTER_WAKES',
  'HOST_LOST',
  'COMPUTER_NOT_ANSWERING',
  'TOO_MANY_PROCESSES',
  'FILES_BUSY',
  'DATABASE_NOT_READY',
];

/**
 * Makes one attempt of a run, or goes on with one that another worker has begun: its process has the run's id and the
 * attempt's number, so it is started once.
 */
export function createRunAttempt(deps: AppDeps) {
  const { config, database, identity, liveComputers, logger, secrets, spaceDatabases, storage } = deps;

  return async function runAppAttempt({ runId, attempt }: { runId: string; attempt: number }): Promise<void> {
    using heartbeat = keepAlive();
    const run = await findRun(database, runId);
    if (run === undefined || !isActive(run) || run.attempt !== attempt || run.retryAt !== null) return;
    const options = { logger, subject: { runId }, intervalMs: watchIntervalMs };
    using watch = new UnwantedWatch(() => isUnwanted(database, runId), options);
    try {
      await makeAttempt(run, { stopped: heartbeat.cancelled, unwanted: watch.signal });
    } catch (error) {
      heartbeat.cancelled.throwIfAborted();
      if (isAway(error) || (error instanceof DomainError && passing.includes(error.code))) {
        const { code } = error as { code?: string };
        throw ApplicationFailure.create({ type: code ?? 'UNAVAILABLE', message: 'A part is away.' });
      }
      const wasUnwanted = watch.signal.aborted;
      if (!wasUnwanted && !(error instanceof DomainError)) {
        logger.error({ err: error, runId }, 'A run could not be made.');
        throw ApplicationFailure.create({ type: 'RUN_FAILED', message: 'RUN_FAILED', nonRetryable: true });
      }
      const { code = '', message } = error as DomainError;
      await end(run, wasUnwanted ? cancelledBefore : notRun(code, message));
    }
  };

  async function makeAttempt(run: Run, signals: { stopped: AbortSignal; unwanted: AbortSignal }): Promise<void> {
    const { stopped, unwanted } = signals;
    const client = await begin(run, AbortSignal.any([stopped, unwanted]));
    const processId = processIdOf(run);
    const over = new AbortController();
    const killed = killWhen(client, processId, unwanted, over.signal);
    try {
      const records = outputOf(run, client, { follow: true, signal: stopped });
      const { stdout, stderr, exit } = await collectOutput(records, { maxBytes: maxOutputBytes });
      const { timeoutSeconds } = run.spec;
      const outcome = outcomeOf(exit, { isCancelled: unwanted.aborted, timeoutSeconds });
      await end(run, outcome, { output: stdout + stderr, client });
    } finally {
      over.abort();
      await killed;
    }
  }

  /** The computer with the process on it, which has begun, or has ended. */
  async function begin(run: Run, signal: AbortSignal): Promise<HostClient> {
    const { spaceId, userId, apiKeyId, spec } = run;
    const ref = { spaceId, computerId: spec.place.computerId };
    const processId = processIdOf(run);
    if (run.isStarted) {
      const client = await liveComputers.asIs(ref);
      if (await isKnown(client, processId)) return client;
      const detail = 'Its computer has lost it. What it did until then has happened.';
      throw new DomainError('conflict', 'RUN_LOST', detail);
    }
    await requireRight(run);
    const by = { userId, credentialId: apiKeyId, address: null };
    const { status } = await getComputer(database, spaceId, ref.computerId);
    const client = await liveComputers.awake(ref, by);
    await noteAwake(database, run, status !== 'running');
    if (!(await isKnown(client, processId))) {
      if (spec.place.kind === 'folder') await placeFiles(deps, client, run, signal);
      const values = await secrets.named.readSome(spaceId, spec.secrets, { ...by, userId });
      const own = { ATRIUM_APP_ID: run.itemId, ATRIUM_COMPONENT: run.component, ATRIUM_RUN_ID: run.id };
      const delivered = run.deliveryId === null ? undefined : asInput(await contentOf(database, run.deliveryId));
      const connected = await spaceDatabases.ofApp(run.appId);
      if (connected !== undefined && !may(run, 'databases:write')) throw notAllowed();
      const shared = databaseVariables(connected);
      const env = { ...shared, ...spec.env, ...values, ...delivered?.env, ...own, ATRIUM_ATTEMPT: String(run.attempt) };
      const cwd = spec.cwd === '' ? spec.place.folder : `${spec.place.folder}/${spec.cwd}`;
      signal.throwIfAborted();
      const timeoutMs = spec.timeoutSeconds * 1_000;
      const usualEnv = signatureOf((await identity.users.byId(userId)) ?? undefined);
      const start = { processId, command: spec.command, cwd, env, usualEnv, timeoutMs };
      await client.startProcess({ ...start, ...(delivered && { stdin: delivered.stdin }) });
    }
    await noteStarted(database, run);
    return client;
  }

  /** What was asked for is done for whoever may still ask for it. */
  async function requireRight(run: Run): Promise<void> {
    const { role, keyHolds } = await standingOf(identity, run);
    const hasScopes = may(run, 'apps:write') && (run.spec.secrets.length === 0 || may(run, 'secrets:read'));
    if (role !== undefined && isAtLeast(role, 'editor') && keyHolds && hasScopes) return;
    throw notAllowed();
  }

  async function end(run: Run, outcome: RunOutcome, of?: { output: string; client: HostClient }): Promise<void> {
    const common = { runId: run.id, attempt: run.attempt, outcome, output: of?.output ?? '' };
    if (of === undefined) return endAttempt(database, { ...common, log: null });
    const quotaBytes = config.drive.quotaBytes;
    await using log = await beginLog({ database, store: storage, quotaBytes }, run.spaceId);
    await endAttempt(database, { ...common, log: await keepLog(run, of.client, log) });
  }

  /** Without the values of the space's secrets: what is kept is safe also when they are no longer known. */
  function outputOf(run: Run, client: HostClient, request?: OutputRequest) {
    const masks = () => secrets.redactors.forSpace(run.spaceId);
    return maskedOutput((wanted) => client.output(processIdOf(run), wanted), masks, request);
  }

  /** As far as the space has room for it. */
  async function keepLog(
    run: Run,
    client: HostClient,
    log: { objectKey: string; reserve(bytes: number): Promise<void> },
  ): Promise<KeptLog> {
    const { outputBytes } = await client.process(processIdOf(run));
    const { reserve } = log;
    const maxBytes = Number.MAX_SAFE_INTEGER;
    try {
      await storage.write(log.objectKey, recordBytes(outputOf(run, client)), { fileName: 'log', maxBytes, reserve });
      return { objectKey: log.objectKey, bytes: outputBytes };
    } catch (error) {
      if (error instanceof DomainError && error.code === 'QUOTA_EXCEEDED') {
        return { objectKey: null, bytes: outputBytes };
      }
      throw error;
    }
  }
}

function notAllowed(): DomainError {
  return new DomainError('forbidden', 'RUN_NOT_ALLOWED', 'Whoever asked for it may not run it any more.');
}

async function isKnown(client: HostClient, processId: string): Promise<boolean> {
  try {
    await client.process(processId);
    return true;
  } catch (error) {
    if (error instanceof DomainError && error.code === 'PROCESS_NOT_FOUND') return false;
    throw error;
  }
}

/** Ends the process once it is unwanted: first by asking. Settles when that is done, or the process is over. */
async function killWhen(
  client: HostClient,
  processId: string,
  unwanted: AbortSignal,
  over: AbortSignal,
): Promise<void> {
  await new Promise<void>((resolve) => {
    if (unwanted.aborted || over.aborted) return resolve();
    unwanted.addEventListener('abort', () => resolve(), { once: true });
    over.addEventListener('abort', () => resolve(), { once: true });
  });
  for (let signal = 'SIGTERM'; !over.aborted; signal = 'SIGKILL') {
    // It may have ended just now, and a connection that is cut is made again.
    await client.signalProcess(processId, signal).catch(() => undefined);
    await delay(graceMs, undefined, { signal: over }).catch(() => undefined);
  }
}
