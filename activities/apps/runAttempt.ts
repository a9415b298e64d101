import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import type { HostClient, OutputRequest } from '../../integrations/computers/hostClient.ts';
import { collectOutput } from '../../integrations/computers/output/collectOutput.ts';
import { maskedOutput } from '../../integrations/computers/output/maskedOutput.ts';
import type { ExpectedFiles, StartProcess } from '../../integrations/computers/types.ts';
import { databaseHost, databasePort } from '../../integrations/egress/databaseNames.ts';
import { signatureOf } from '../../integrations/git/rules/person.ts';
import { findApp } from '../../models/apps/app.ts';
import { currentAttempt, noteAwake, noteTaken } from '../../models/apps/attempts.ts';
import { contentOf } from '../../models/apps/deliveries.ts';
import { cancelledBefore, notRun, outcomeOf } from '../../models/apps/outcome.ts';
import { requireTreeInUse } from '../../models/apps/requireVersionInUse.ts';
import { findRun, isActive, processIdOf, type Run } from '../../models/apps/run.ts';
import { endAttempt, isUnwanted, noteEnd, noteStarted } from '../../models/apps/steps.ts';
import { getComputer } from '../../models/computers/computer.ts';
import type { AppDatabase } from '../../models/databases/connections.ts';
import { may, standingOf } from '../../models/identity/authority.ts';
import { isAtLeast } from '../../models/identity/roles.ts';
import { keepAlive } from '../keepAlive.ts';
import { isKnownProcess } from '../knownProcess.ts';
import { isPassing } from '../passing.ts';
import { UnwantedWatch } from '../unwantedWatch.ts';
import { endProcessOf, killWhen, processOf } from './attemptProcess.ts';
import type { AppDeps } from './deps.ts';
import { keepLogAndClose } from './keepLog.ts';
import { placeFiles } from './placeFiles.ts';
import { readApp } from './takeDueAppRun.ts';

/** The most output that a run's row keeps for each stream. The log has all of it. */
const maxOutputBytes = 65_536;
const watchIntervalMs = 1_000;
/** How often files are placed for one attempt if other programs change them before it starts. */
const mostPlacings = 3;
/** The type of our own failures. The server's log has the details. */
export const ownFailure = 'RUN_FAILED';

interface Signals {
  stopped: AbortSignal;
  unwanted: AbortSignal;
}

/**
 * Makes one attempt of a run, or continues one that another worker began: the process id has the run's id and the
 * attempt's number, so it is started once. The end of the process is recorded as soon as it is seen. Without such an
 * end, the attempt ends only once it has no process.
 */
export function createRunAttempt(deps: AppDeps) {
  const { database, identity, liveComputers, logger, secrets, spaceDatabases } = deps;

  return async function runAppAttempt({ runId, attempt }: { runId: string; attempt: number }): Promise<void> {
    using heartbeat = keepAlive();
    const stopped = heartbeat.cancelled;
    const run = await findRun(database, runId);
    if (run === undefined || !isActive(run) || run.attempt !== attempt || run.retryAt !== null) return;
    await noteTaken(database, run);
    const options = { logger, subject: { runId }, intervalMs: watchIntervalMs };
    using watch = new UnwantedWatch(() => isUnwanted(database, runId), options);
    try {
      const isOver = ((await currentAttempt(database, run))?.status ?? null) !== null;
      if (!isOver) await makeAttempt(run, { stopped, unwanted: watch.signal });
      await keepLogAndClose(deps, run, (signal) => logOf(run, signal), stopped);
    } catch (error) {
      stopped.throwIfAborted();
      // A cancelled attempt does not wait for a computer that is slow to wake.
      const isCalledOff = watch.signal.aborted || (await isUnwanted(database, runId).catch(() => false));
      if (isPassing(error) && !isCalledOff) throw again(error);
      await giveUp(run, error, { stopped, isCalledOff });
    }
  };

  async function makeAttempt(run: Run, { stopped, unwanted }: Signals): Promise<void> {
    const client = await begin(run, AbortSignal.any([stopped, unwanted]));
    const over = new AbortController();
    const killed = killWhen(client, processIdOf(run), unwanted, over.signal);
    try {
      const records = outputOf(run, client, { follow: true, signal: stopped });
      const { stdout, stderr, exit, position: logBytes } = await collectOutput(records, { maxBytes: maxOutputBytes });
      if (exit === undefined) {
        stopped.throwIfAborted();
        throw new DomainError('unavailable', 'COMPUTER_CONNECTION_LOST', 'The connection to the computer was lost.');
      }
      const { timeoutSeconds } = run.spec;
      const outcome = outcomeOf(exit, { isCancelled: unwanted.aborted, timeoutSeconds });
      await noteEnd(database, { runId: run.id, attempt: run.attempt, outcome, output: stdout + stderr, logBytes });
    } finally {
      over.abort();
      await killed;
    }
  }

  /** Ends an attempt whose process is no longer followed. */
  async function giveUp(
    run: Run,
    error: unknown,
    { stopped, isCalledOff }: { stopped: AbortSignal; isCalledOff: boolean },
  ): Promise<void> {
    await endProcessOf(deps, run, stopped).catch((failure: unknown) => {
      throw again(failure);
    });
    const of = { runId: run.id, attempt: run.attempt };
    if (isCalledOff) return endAttempt(database, of, cancelledBefore);
    if (error instanceof DomainError) return endAttempt(database, of, notRun(error.code, error.message));
    logger.error({ err: error, runId: run.id }, 'A run could not be made.');
    throw ApplicationFailure.create({ type: ownFailure, message: ownFailure, nonRetryable: true });
  }

  /** Resolves to the computer once the process has begun there, or has ended. */
  async function begin(run: Run, signal: AbortSignal): Promise<HostClient> {
    const { spaceId, userId, apiKeyId, spec } = run;
    const ref = { spaceId, computerId: spec.place.computerId };
    const processId = processIdOf(run);
    // An earlier worker may have been killed between starting the process and recording it.
    const begun = await processOf(deps, run);
    if (begun !== undefined) {
      await noteStarted(database, run);
      return begun.client;
    }
    if (run.isStarted) {
      const detail = 'The computer has lost this run. Changes made before that are kept.';
      throw new DomainError('conflict', 'RUN_LOST', detail);
    }
    await requireRight(run);
    if (spec.place.kind === 'repository') await requireTree(run);
    const by = { userId, credentialId: apiKeyId, address: null };
    const { status } = await getComputer(database, spaceId, ref.computerId);
    const client = await liveComputers.awake(ref, by);
    await noteAwake(database, run, status !== 'running');
    if (!(await isKnownProcess(client, processId))) {
      const files = spec.place.kind === 'folder' ? await placeFiles(deps, client, run, { signal }) : undefined;
      const values = await secrets.named.readSome(spaceId, spec.secrets, { ...by, userId });
      const own = { ATRIUM_APP_ID: run.itemId, ATRIUM_COMPONENT: run.component, ATRIUM_RUN_ID: run.id };
      const delivered = run.deliveryId === null ? undefined : asInput(await contentOf(database, run.deliveryId));
      const connected = await spaceDatabases.ofApp(run.appId);
      if (connected !== undefined && !may(run, 'databases:write')) throw notAllowed();
      const usual = { ...databaseVariables(connected), ...(spec.port !== undefined && { PORT: String(spec.port) }) };
      const env = { ...usual, ...spec.env, ...values, ...delivered?.env, ...own, ATRIUM_ATTEMPT: String(run.attempt) };
      const cwd = spec.cwd === '' ? spec.place.folder : `${spec.place.folder}/${spec.cwd}`;
      signal.throwIfAborted();
      const timeoutMs = spec.timeoutSeconds * 1_000;
      const usualEnv = signatureOf((await identity.users.byId(userId)) ?? undefined);
      const isPrivate = spec.secrets.length > 0 || connected !== undefined;
      const start = { processId, command: spec.command, cwd, env, usualEnv, timeoutMs, isPrivate };
      await startWith(client, run, { ...start, ...(delivered && { stdin: delivered.stdin }) }, { files, signal });
    }
    await noteStarted(database, run);
    return client;
  }

  /**
   * Starts a run. A run that gets secrets or a database starts only if its files match its version. Other programs on
   * the computer may have changed them since they were placed. Then they are placed anew.
   */
  async function startWith(
    client: HostClient,
    run: Run,
    start: StartProcess,
    { files, signal }: { files: ExpectedFiles | undefined; signal: AbortSignal },
  ): Promise<void> {
    if (files === undefined || start.isPrivate !== true) return void (await client.startProcess(start));
    for (let expected = files, tries = 1; ; tries++) {
      try {
        return void (await client.startProcess({ ...start, files: expected }));
      } catch (error) {
        if (!(error instanceof DomainError) || error.code !== 'FILES_CHANGED') throw error;
        if (tries === mostPlacings) throw filesChanged();
      }
      expected = await placeFiles(deps, client, run, { signal, isAnew: true });
    }
  }

  /** Requires that the user and the key that asked for the run may still run it. */
  async function requireRight(run: Run): Promise<void> {
    const { role, keyHolds } = await standingOf(identity, run);
    const hasScopes = may(run, 'apps:write') && (run.spec.secrets.length === 0 || may(run, 'secrets:read'));
    if (role !== undefined && isAtLeast(role, 'editor') && keyHolds && hasScopes) return;
    throw notAllowed();
  }

  /** The tree may have been changed since the run was asked for. */
  async function requireTree({ appId }: Run): Promise<void> {
    await readApp(deps, appId);
    const app = await findApp(database, appId);
    if (app !== undefined) await requireTreeInUse(database, app);
  }

  /** The output without the values of the space's secrets, so that it stays safe when those are no longer known. */
  function outputOf(run: Run, client: HostClient, request?: OutputRequest) {
    const masks = () => secrets.redactors.forSpace(run.spaceId);
    return maskedOutput((wanted) => client.output(processIdOf(run), wanted), masks, request);
  }

  /** The whole log, as far as the computer has it. */
  async function logOf(run: Run, signal: AbortSignal) {
    const found = await processOf(deps, run);
    if (found === undefined) {
      throw new DomainError('gone', 'RUN_LOG_GONE', 'The computer no longer has the log of this run.');
    }
    return outputOf(run, found.client, { signal });
  }
}

function notAllowed(): DomainError {
  return new DomainError('forbidden', 'RUN_NOT_ALLOWED', 'The user who asked for this run may no longer run the app.');
}

function filesChanged(): DomainError {
  const detail = 'Another program on its computer keeps changing the files of this app. Give the app its own computer.';
  return new DomainError('conflict', 'APP_FILES_CHANGED', detail);
}

function again(error: unknown): ApplicationFailure {
  const { code } = error as { code?: string };
  return ApplicationFailure.create({ type: code ?? 'UNAVAILABLE', message: 'A service is unavailable; trying again.' });
}

/** The variables with which the runs of an app reach its database. */
export function databaseVariables(database: AppDatabase | undefined): Record<string, string> {
  if (database === undefined) return {};
  const { serverName, user, password } = database;
  const host = databaseHost(serverName);
  return {
    DATABASE_URL: `mysql://${user}:${password}@${host}:${databasePort}/${serverName}`,
    DATABASE_HOST: host,
    DATABASE_PORT: String(databasePort),
    DATABASE_NAME: serverName,
    DATABASE_USER: user,
    DATABASE_PASSWORD: password,
  };
}

/** A delivery as the input of its process: the body is stdin, the rest are variables. */
function asInput({ method, query, headers, body, deliveryId, auth }: Awaited<ReturnType<typeof contentOf>>) {
  const env = {
    ATRIUM_WEBHOOK_METHOD: method,
    ATRIUM_WEBHOOK_QUERY: query,
    ATRIUM_WEBHOOK_HEADERS: JSON.stringify(headers),
    ATRIUM_WEBHOOK_AUTH: auth,
    ...(deliveryId !== null && { ATRIUM_WEBHOOK_ID: deliveryId }),
  };
  return { env, stdin: body.toString('base64') };
}
