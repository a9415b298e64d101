import { existsSync, readdirSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as delay } from 'node:timers/promises';

export const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type Level = (typeof levels)[number];

export interface LogLine {
  part: string;
  /** In milliseconds. A line without a time, such as one of a stack, has that of the line before. */
  time: number;
  level: Level;
  text: string;
  /** The line as it is in the file. */
  raw: string;
}

export interface LogQuery {
  /** Empty means all. */
  parts: readonly string[];
  level: Level;
  /** Only lines that contain this id: of a request, a turn, a computer. */
  id?: string | undefined;
}

/** A log file. `path.1` is the one before it. */
interface LogFile {
  part: string;
  path: string;
}

const readBytes = 262_144;
const followMs = 200;

/** The logs kept on this machine: of Atrium, its parts, and the holders of its computers. */
export function findLogs({ dataDir, computersDir }: { dataDir: string; computersDir: string }): LogFile[] {
  const folder = join(dataDir, 'logs');
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.log')) : [];
  const holders = join(computersDir, '.logs', 'holders.log');
  return [
    ...names.toSorted().map((name) => ({ part: name.slice(0, -'.log'.length), path: join(folder, name) })),
    ...(existsSync(holders) ? [{ part: 'computers', path: holders }] : []),
  ];
}

/**
 * Yields the last matching lines of all logs together, ordered by time. With `follow`, goes on with new lines as they
 * come, also from a log that is rotated, and does not end.
 */
export async function* readLogs(
  find: () => LogFile[],
  query: LogQuery,
  { most, follow }: { most: number; follow: boolean },
): AsyncGenerator<LogLine> {
  const open = new Map<string, OpenLog>();
  for (let isFirst = true; isFirst || follow; isFirst = false) {
    if (!isFirst) await delay(followMs);
    for (const file of chosen(find(), query)) {
      if (!open.has(file.path)) open.set(file.path, new OpenLog(file, query));
    }
    const found: LogLine[] = [];
    for (const log of open.values()) {
      const lines: LogLine[] = [];
      for await (const line of log.read()) {
        lines.push(line);
        // Keeps only the last lines in memory.
        if (isFirst && lines.length > 2 * most) lines.splice(0, lines.length - most);
      }
      found.push(...lines);
    }
    found.sort((one, other) => one.time - other.time);
    yield* isFirst ? found.slice(Math.max(0, found.length - most)) : found;
  }
}

function chosen(files: readonly LogFile[], { parts }: LogQuery): LogFile[] {
  return files.filter(({ part }) => parts.length === 0 || parts.includes(part));
}

/** A log that continues from the last read position. */
class OpenLog {
  readonly #path: string;
  readonly #reader: LineReader;
  #isNew = true;
  #file: FileHandle | undefined;
  #at = 0;

  constructor({ part, path }: LogFile, query: LogQuery) {
    this.#path = path;
    this.#reader = new LineReader(part, query);
  }

  async *read(): AsyncGenerator<LogLine> {
    if (this.#isNew) yield* this.#readBefore();
    this.#isNew = false;
    this.#file ??= await openIfThere(this.#path);
    if (this.#file === undefined) return;
    // Stat before reading to the end, so that lines written before a rename are not missed.
    const now = statSync(this.#path, { throwIfNoEntry: false });
    const own = await this.#file.stat();
    if (own.size < this.#at) this.#at = 0;
    this.#at = yield* this.#readOn(this.#file, this.#at);
    if (now === undefined || now.ino === own.ino) return;
    await this.#file.close();
    this.#file = undefined;
    this.#at = 0;
    yield* this.read();
  }

  async *#readBefore(): AsyncGenerator<LogLine> {
    const file = await openIfThere(`${this.#path}.1`);
    if (file === undefined) return;
    yield* this.#readOn(file, 0);
    await file.close();
  }

  async *#readOn(file: FileHandle, from: number): AsyncGenerator<LogLine, number> {
    for (let at = from; ; ) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(readBytes), 0, readBytes, at);
      if (bytesRead === 0) return at;
      at += bytesRead;
      yield* this.#reader.push(buffer.subarray(0, bytesRead));
    }
  }
}

/** Joins a part's bytes into lines, and yields the lines that match. */
class LineReader {
  readonly #part: string;
  readonly #query: LogQuery;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  #last: { time: number; level: Level } = { time: 0, level: 'info' };

  constructor(part: string, query: LogQuery) {
    this.#part = part;
    this.#query = query;
  }

  *push(bytes: Buffer): Generator<LogLine> {
    const lines = (this.#rest + this.#decoder.write(bytes)).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const raw of lines) {
      if (raw.trim() === '') continue;
      const line = { part: this.#part, ...this.#last, text: raw, ...readLine(raw), raw };
      this.#last = { time: line.time, level: line.level };
      if (this.#isWanted(line)) yield line;
    }
  }

  #isWanted({ level, raw }: LogLine): boolean {
    const { level: least, id } = this.#query;
    return levels.indexOf(level) >= levels.indexOf(least) && (id === undefined || raw.includes(id));
  }
}

/** Reads time and level from a line. Atrium and Temporal write JSON; lines of MariaDB begin with their time. */
function readLine(raw: string): Partial<LogLine> {
  if (raw.startsWith('{')) return readJson(raw) ?? {};
  const [, time, level] = /^(\d{4}-\d\d-\d\d[T ]+\d?\d:\d\d:\d\d\S*)(?:.*?\[(\w+)\])?/.exec(raw) ?? [];
  if (time === undefined) return {};
  // MariaDB writes local time, with a blank instead of a leading zero.
  return { ...timeOf(time.replace(/ +(\d):/, 'T0$1:').replace(/ +/, 'T')), level: levelOf(level) ?? 'info' };
}

function readJson(raw: string): Partial<LogLine> | undefined {
  try {
    const {
      level,
      time,
      ts,
      msg,
      pid: _,
      name: __,
      hostname: ___,
      ...facts
    } = JSON.parse(raw) as Record<string, unknown>;
    const said = Object.keys(facts).length === 0 ? '' : ` ${JSON.stringify(facts)}`;
    const text = `${typeof msg === 'string' ? msg : ''}${said}`;
    return { ...timeOf(time ?? ts), level: levelOf(level) ?? 'info', text };
  } catch {
    return undefined; // a line whose beginning was cut off
  }
}

function timeOf(value: unknown): { time?: number } {
  const time = typeof value === 'number' ? value : Date.parse(String(value));
  return Number.isNaN(time) ? {} : { time };
}

/** Pino's levels are numbers: 10 is `trace`, 60 is `fatal`. */
function levelOf(level: unknown): Level | undefined {
  if (typeof level === 'number') return levels[Math.min(Math.max(Math.floor(level / 10), 1), levels.length) - 1];
  const name = String(level).toLowerCase();
  if (name === 'note') return 'info';
  return levels.find((known) => name.startsWith(known));
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  return open(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}
