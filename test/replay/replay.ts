import { text } from 'node:stream/consumers';
import proto from '@temporalio/proto';
import { bundleWorkflowCode, Worker } from '@temporalio/worker';
import { workflowInterceptors } from '../../temporal/bundle.ts';

/**
 * Replays histories in a separate process, because Jest's sandbox cannot load Temporal's native module. Usage: `node
 * replay.ts WORKFLOWS_PATH`, with `[{name, history}]` on standard input. The last line is a JSON object of failures by
 * name, `{}` if there are none. Temporal's own log comes before it.
 */
const workflowsPath = process.argv[2] ?? '';
const histories = JSON.parse(await text(process.stdin)) as { name: string; history: object }[];
const quietly = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {} };
const workflowBundle = await bundleWorkflowCode({
  workflowsPath,
  workflowInterceptorModules: workflowInterceptors,
  logger: quietly,
});

const failures: Record<string, string> = {};
const replays = Worker.runReplayHistories(
  { workflowBundle },
  histories.map(({ name, history }) => ({
    workflowId: name,
    history: proto.temporal.api.history.v1.History.fromObject(history),
  })),
);
for await (const { workflowId, error } of replays) {
  if (error !== undefined) failures[workflowId] = `${error.name}: ${error.message}`;
}
process.stdout.write(`\n${JSON.stringify(failures)}`);
