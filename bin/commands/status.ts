import type { Command } from 'commander';
import { loadLaunchConfig } from '../../config/launch.ts';
import { columns, print } from '../support/answer.ts';
import { findRunning, type RunningAtrium } from '../support/running.ts';

const answerTimeoutMs = 3_000;

/** `atrium status`: what runs with this data directory. Exit code 0 when it runs and is ready, else 1. */
export function addStatus(program: Command): void {
  program
    .command('status')
    .description('show what runs here')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const running = findRunning(loadLaunchConfig().dataDir);
      const ready = running?.apiUrl !== undefined && (await isReady(running.apiUrl));
      if (!ready) process.exitCode = 1;
      print(command, { json: toJson(running, ready), text: toText(running, ready) });
    });
}

async function isReady(apiUrl: string): Promise<boolean> {
  try {
    return (await fetch(new URL('/readyz', apiUrl), { signal: AbortSignal.timeout(answerTimeoutMs) })).ok;
  } catch {
    return false;
  }
}

/** Without `environment`: it holds passwords. */
function toJson(running: RunningAtrium | undefined, ready: boolean) {
  if (running === undefined) return { state: 'stopped', ready };
  const { process, state, startedAt, parts, apiUrl } = running;
  return { state, ready, pid: process.pid, startedAt, apiUrl, parts };
}

function toText(running: RunningAtrium | undefined, ready: boolean): string {
  if (running === undefined) return 'Atrium does not run here. Start it with "npm start".';
  const { ATRIUM_TEMPORAL_UI_URL: uiUrl } = running.environment;
  const state = running.state === 'running' && !ready ? 'running, but not ready' : running.state;
  return columns([
    ['Atrium', `${state} (process ${running.process.pid}, since ${running.startedAt})`],
    ...(running.apiUrl === undefined ? [] : [['api', running.apiUrl] as const]),
    ...running.parts.map((part) => [part.name, `${part.address} (process ${part.pid})`] as const),
    ...(uiUrl === undefined ? [] : [['temporal ui', uiUrl] as const]),
  ]);
}
