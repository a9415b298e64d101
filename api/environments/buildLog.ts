import { lookUntil } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { HostClient, OutputRequest } from '../../integrations/computers/hostClient.ts';
import { maskedOutput } from '../../integrations/computers/output/maskedOutput.ts';
import { type Exit, noteRecord, positionAfter, RecordDecoder } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';
import { ownSteps, processIdOf, type StepRow, sealedOutput } from '../../models/environments/builds/stepRows.ts';
import { titleOf, type WorkStep } from '../../models/environments/steps.ts';
import { builderOf, findVersion, type Version } from '../../models/environments/version.ts';
import { type JoinedLog, type JoinedLogOptions, joinedLogPauses } from '../computers/processes/joinedLog.ts';
import { recordFrom } from '../computers/processes/sendText.ts';
import type { RouteDeps } from '../frame/deps.ts';

type Deps = Pick<RouteDeps, 'database' | 'liveComputers' | 'sealedLogs' | 'secrets'>;

/** The output of the steps of a build, one after the other, each below a line that names it. */
export async function buildLogOf(deps: Deps, version: Version): Promise<JoinedLog> {
  let bytes = 0;
  for (const step of await ownSteps(deps.database.pool, [version.id])) {
    if (step.status === 'waiting') break;
    bytes += headOf(version, step).length + (await outputBytes(deps, version, step));
  }
  return { bytes, records: (after, options) => recordsOf(deps, version, after, options) };
}

async function* recordsOf(
  deps: Deps,
  version: Version,
  after: number,
  options: JoinedLogOptions,
): AsyncGenerator<OutputRecord> {
  let begin = 0;
  for (let number = 0; ; ) {
    const step = await stepAfter(deps, version, number, options);
    if (step === undefined) break;
    const head: OutputRecord = { kind: 'stdout', position: begin, payload: headOf(version, step) };
    begin += head.payload.length;
    if (begin > after) yield recordFrom(head, after);
    for await (const record of outputOf(deps, version, step, Math.max(0, after - begin), options)) {
      if (record.kind !== 'exit') yield { ...record, position: begin + record.position };
    }
    const ended = options.follow ? await whenEnded(deps, version, step, options.signal) : step;
    // Without `follow`, reading ends at the step that still runs.
    if (ended === undefined || isRunning(ended)) return;
    begin += ended.logBytes ?? 0;
    number = ended.number;
  }
  if (!options.follow) return;
  const { id } = version;
  const isOver = async () => (await findVersion(deps.database.pool, id))?.status !== 'building';
  await lookUntil(isOver, Boolean, { ...joinedLogPauses, signal: options.signal });
  yield noteRecord('exit', Math.max(begin, after), await exitOf(deps, version));
}

function isRunning({ status }: StepRow): boolean {
  return status === 'running';
}

/** The line above the output of a step. */
function headOf({ steps }: Version, { number, status }: StepRow): Buffer {
  const note = status === 'kept' ? ' (built before)' : '';
  const step = steps[number - 1] as WorkStep;
  return Buffer.from(`Step ${number} of ${steps.length}: ${titleOf(step)}${note}\n`);
}

/** The next step, once it has begun. Undefined if there is none and will be none. */
async function stepAfter(
  { database }: Deps,
  { id }: Version,
  number: number,
  { follow, signal }: JoinedLogOptions,
): Promise<StepRow | undefined> {
  const look = async () => {
    // In this order, so that a step that begins meanwhile is found.
    const version = await findVersion(database.pool, id);
    const next = (await ownSteps(database.pool, [id])).find((step) => step.number > number);
    const begun = next?.status === 'waiting' ? undefined : next;
    return { begun, mayBegin: follow && next !== undefined && version?.status === 'building' };
  };
  return (
    await lookUntil(look, ({ begun, mayBegin }) => begun !== undefined || !mayBegin, { ...joinedLogPauses, signal })
  ).begun;
}

/** The step once its output is stored. Undefined if its version is gone. */
function whenEnded({ database }: Deps, { id }: Version, { number }: StepRow, signal: AbortSignal) {
  return lookUntil(
    async () => (await ownSteps(database.pool, [id])).find((step) => step.number === number),
    (step) => step === undefined || !isRunning(step),
    { ...joinedLogPauses, signal },
  );
}

/** The output of a step: from its computer while it runs, then as it is stored. */
async function* outputOf(
  deps: Deps,
  version: Version,
  step: StepRow,
  after: number,
  options: JoinedLogOptions,
): AsyncGenerator<OutputRecord> {
  const masks = () => deps.secrets.redactors.forSpace(version.spaceId);
  if (!isRunning(step)) {
    if (after >= (step.logBytes ?? 0)) return;
    const stored = await storedRecords(deps, step);
    if (stored === undefined) return yield noteRecord('gap', after, { droppedBytes: (step.logBytes ?? 0) - after });
    const open = (request: OutputRequest) => behind(stored, request.after ?? 0);
    return yield* maskedOutput(open, masks, { after, signal: options.signal });
  }
  const client = await computerOf(deps, version, step, options);
  if (client === undefined) return;
  const open = (request: OutputRequest) => client.output(processIdOf(step), request);
  try {
    yield* maskedOutput(open, masks, { after, ...options });
  } catch (error) {
    // The computer may have stopped meanwhile. How the step ended is told by its row.
    if (!(error instanceof DomainError)) throw error;
  }
}

async function* behind(records: readonly OutputRecord[], after: number): AsyncGenerator<OutputRecord> {
  for (const record of records) if (positionAfter(record) > after) yield recordFrom(record, after);
}

async function storedRecords({ database, sealedLogs }: Deps, step: StepRow): Promise<OutputRecord[] | undefined> {
  const sealed = await sealedOutput(database.pool, step, 'log');
  return sealed && [...new RecordDecoder().push(await sealedLogs.open(step, 'log', sealed))];
}

/** The computer of a running step once the process is there. Undefined if it is not, or the step has ended. */
async function computerOf(
  { database, liveComputers }: Deps,
  version: Version,
  { number }: StepRow,
  { follow, signal }: JoinedLogOptions,
): Promise<HostClient | undefined> {
  const look = async () => {
    const step = (await ownSteps(database.pool, [version.id])).find((one) => one.number === number);
    if (step === undefined || !isRunning(step)) return { isOver: true };
    const client = await unlessRefused(liveComputers.asIs(builderOf(version)));
    const isThere = client !== undefined && (await unlessRefused(client.process(processIdOf(step)))) !== undefined;
    return { isOver: !follow, client: isThere ? client : undefined };
  };
  return (await lookUntil(look, ({ isOver, client }) => isOver || client !== undefined, { ...joinedLogPauses, signal }))
    .client;
}

async function outputBytes({ liveComputers }: Deps, version: Version, step: StepRow): Promise<number> {
  if (!isRunning(step)) return step.logBytes ?? 0;
  const client = await unlessRefused(liveComputers.asIs(builderOf(version)));
  return (client && (await unlessRefused(client.process(processIdOf(step))))?.outputBytes) ?? 0;
}

async function unlessRefused<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof DomainError) return undefined;
    throw error;
  }
}

/** How the build ended, as the end of a process. */
async function exitOf({ database }: Deps, { id }: Version): Promise<Exit> {
  const version = await findVersion(database.pool, id);
  const failed = (await ownSteps(database.pool, [id])).find(({ status }) => status === 'failed');
  const end = { signal: null, killedBy: null };
  if (version?.status === 'ready') return { ...end, state: 'exited', exitCode: 0 };
  const exitCode = failed?.exitCode ?? null;
  return { ...end, state: exitCode === null ? 'killed' : 'exited', exitCode };
}
