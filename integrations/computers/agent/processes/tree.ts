import { readdirSync, readFileSync } from 'node:fs';

/** Environment variable of a process. Its descendants inherit it unless a program removes it. */
export const processMarker = 'ATRIUM_PROCESS_ID';

interface Task {
  pid: number;
  parent: number;
  session: number;
}

const maxRounds = 100;

/**
 * Sends a signal to everything that a process has started: its session, its descendants, and processes that carry its
 * marker. Repeats SIGKILL until no process is left. Returns how many processes it found.
 */
export async function signalTree(
  processId: string,
  leader: number | undefined,
  signal: NodeJS.Signals,
): Promise<number> {
  const found = new Set<number>();
  for (let round = 0; round < maxRounds; round++) {
    const pids = treeOf(processId, leader);
    for (const pid of pids) {
      found.add(pid);
      send(pid, signal);
    }
    if (signal !== 'SIGKILL' || pids.length === 0) break;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return found.size;
}

/** The living processes of a tree. `leader` is undefined once it has ended: its pid may belong to another process. */
function treeOf(processId: string, leader: number | undefined): number[] {
  const tasks = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(taskOf)
    .filter((task) => task !== undefined)
    .filter(({ pid }) => pid !== 1 && pid !== process.pid);
  const marker = `${processMarker}=${processId}`;
  const tree = new Set(
    tasks
      .filter(({ pid, session }) => (leader !== undefined && session === leader) || hasMarker(pid, marker))
      .map(({ pid }) => pid),
  );
  if (leader !== undefined) tree.add(leader);
  for (let size = -1; size !== tree.size; ) {
    size = tree.size;
    for (const { pid, parent } of tasks) if (tree.has(parent)) tree.add(pid);
  }
  const living = new Set(tasks.map(({ pid }) => pid));
  return [...tree].filter((pid) => living.has(pid));
}

function taskOf(name: string): Task | undefined {
  const stat = read(`/proc/${name}/stat`);
  // The program's name is in parentheses and may itself contain parentheses.
  const [state, parent, , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === undefined || state === 'Z' || state === 'X' || session === undefined) return undefined;
  return { pid: Number(name), parent: Number(parent), session: Number(session) };
}

function hasMarker(pid: number, marker: string): boolean {
  return `\0${read(`/proc/${pid}/environ`)}`.includes(`\0${marker}\0`);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // it has ended, or we may not read it
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
