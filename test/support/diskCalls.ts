import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './folders.ts';

interface TraceEvent {
  name: string;
  ph: string;
  ts: number;
}

const watched = new Set(['fsync', 'rename', 'link', 'unlink', 'rmdir', 'mkdir']);

/**
 * Runs this module's code in a process of its own. Returns Node's system calls that change names or sync, in the order
 * of their answers.
 */
export function diskCallsOf(code: string): string[] {
  const folder = temporaryFolder();
  const trace = join(folder, 'trace.json');
  const categories = ['--trace-event-categories', 'node.fs.async,node.fs.sync', '--trace-event-file-pattern', trace];
  const program = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '--eval', code];
  execFileSync(process.execPath, [...categories, ...program], { cwd: process.cwd(), stdio: 'pipe' });
  const { traceEvents } = JSON.parse(readFileSync(trace, 'utf8')) as { traceEvents: TraceEvent[] };
  return traceEvents
    .filter(({ ph }) => ph === 'e' || ph === 'E')
    .toSorted((a, b) => a.ts - b.ts)
    .map(({ name }) => name.replace(/^fs\.(sync|async)\./, ''))
    .filter((name) => watched.has(name));
}
