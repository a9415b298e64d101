import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Client, Connection, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client';
import proto from '@temporalio/proto';
import type { Config } from '../../config/index.ts';
import { waitFor } from '../support/waitFor.ts';

const { History } = proto.temporal.api.history.v1;
type HistoryEvent = proto.temporal.api.history.v1.IHistoryEvent;
const folder = join(import.meta.dirname, 'histories');
const root = join(import.meta.dirname, '..', '..');

/** A saved history as Temporal's own JSON. */
export interface SavedHistory {
  /** `workflow/path`. */
  name: string;
  history: { events: { eventType: string }[] };
}

export function fileOf(name: string): string {
  return join(folder, `${name}.json`);
}

export function isSaved(name: string): boolean {
  return existsSync(fileOf(name));
}

export async function savedHistories(): Promise<SavedHistory[]> {
  const files = await Array.fromAsync(glob('**/*.json', { cwd: folder }));
  return files.sort().map((file) => ({
    name: file.replace(/\.json$/, ''),
    history: JSON.parse(readFileSync(join(folder, file), 'utf8')) as SavedHistory['history'],
  }));
}

/**
 * Waits for the end of a workflow, and saves the history of its last run, or of its first run if it continued as new.
 */
export async function saveHistory(
  config: Config,
  workflowId: string,
  { name, ofFirstRun = false }: { name: string; ofFirstRun?: boolean },
): Promise<void> {
  await withClient(config, async (client) => {
    const ended = await untilEnded(client, workflowId);
    const runId = ofFirstRun ? (ended.raw.workflowExecutionInfo?.firstRunId ?? '') : ended.runId;
    const run = client.workflow.getHandle(workflowId, runId);
    const history = History.toObject(History.create(await run.fetchHistory()), {
      enums: String,
      longs: String,
      bytes: String,
    });
    mkdirSync(dirname(fileOf(name)), { recursive: true });
    // Stack traces name files. Keeps those paths relative to the project.
    const json = JSON.stringify(history, undefined, 1).replaceAll(`file://${root}/`, '').replaceAll(`${root}/`, '');
    writeFileSync(fileOf(name), `${json}\n`);
  });
}

function untilEnded(client: Client, workflowId: string): Promise<WorkflowExecutionDescription> {
  return waitFor(`the end of ${workflowId}`, async () => {
    const execution = await client.workflow.getHandle(workflowId).describe().catch(unlessMissing);
    return execution?.status.name !== 'RUNNING' && execution;
  });
}

/** Waits for the end of a workflow. */
export async function workflowEnded(config: Config, workflowId: string): Promise<void> {
  await withClient(config, (client) => untilEnded(client, workflowId));
}

/** Waits until a workflow has taken a path that an earlier version of it did not have (`patched`). */
export function tookNewPath(config: Config, workflowId: string): Promise<true> {
  return withClient(config, (client) =>
    waitFor(`the new path of ${workflowId}`, async () => {
      const history = await client.workflow.getHandle(workflowId).fetchHistory().catch(unlessMissing);
      const isPatch = ({ markerRecordedEventAttributes: marker }: HistoryEvent) => marker?.markerName === 'core_patch';
      return history?.events?.some(isPatch) ? true : undefined;
    }),
  );
}

/** Triggers a schedule now. */
export function triggerSchedule(config: Config, scheduleId: string): Promise<void> {
  return withClient(config, (client) => client.schedule.getHandle(scheduleId).trigger());
}

/** Waits until a visibility query finds a workflow with this status, and returns its id. */
export function completedWorkflow(config: Config, query: string, status = 'Completed'): Promise<string> {
  return withClient(config, (client) =>
    waitFor('a completed workflow', async () => {
      for await (const { workflowId } of client.workflow.list({
        query: `${query} AND ExecutionStatus = '${status}'`,
      })) {
        return workflowId;
      }
      return undefined;
    }),
  );
}

/** The API may answer before the workflow has started. */
function unlessMissing(error: unknown): undefined {
  if (error instanceof WorkflowNotFoundError) return undefined;
  throw error;
}

async function withClient<T>({ temporal }: Config, use: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address: temporal.address });
  try {
    return await use(new Client({ connection, namespace: temporal.namespace }));
  } finally {
    await connection.close();
  }
}
