import { isDiskFull } from '../host/disks/disks.ts';
import { feed, openProgram, outputOf, type Program, type ProgramFailed } from '../spawner/streams.ts';

const isGnu = process.platform === 'linux';
/**
 * Attributes that a user may set. Others, such as the capabilities of a program, could give more rights where they are
 * unpacked.
 */
const keptAttributes = ['--acls', '--xattrs', '--xattrs-include=user.*'];
/** The form that attributes need gives each file further headers. Without these, only files with attributes have them. */
const fewHeaders = '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime,delete=mtime';
/** Sorted, so that unchanged files end up in the same pieces. Files that cannot be read are left out. */
const packOptions = isGnu
  ? ['--sort=name', '--sparse', '--one-file-system', '--ignore-failed-read', ...keptAttributes, fewHeaders]
  : [];
const unpackOptions = isGnu ? ['--no-same-owner', '--delay-directory-restore', ...keptAttributes] : ['-o'];
/** GNU tar's exit code if a file changed while it was read. */
const changed = isGnu ? [1] : [];
const unread = /: Warning: Cannot (open|read|stat|savedir)/;
const complaintsShown = 3;
const lineEnds = 100;

/** tar could not read or write all that it should. Its message has the first complaints, or that the disk is full. */
export class TarFailed extends Error {
  override readonly name = 'TarFailed';
}

interface TarOptions {
  signal: AbortSignal;
  /** The command that starts tar, such as `nice`. */
  through?: readonly string[];
}

/**
 * Packs everything in a folder as bytes, with names, permissions and attributes. Keeps links as links, and follows none
 * out of the folder. Calls `leaveOut` for each file that cannot be read.
 */
export async function* pack(
  folder: string,
  signal: AbortSignal,
  leaveOut: () => void = () => undefined,
): AsyncGenerator<Buffer> {
  yield* outputOf(await openPack(folder, { signal, leaveOut }));
}

/** The program behind {@link pack}. */
export function openPack(
  folder: string,
  { leaveOut, ...options }: TarOptions & { leaveOut: () => void },
): Promise<Program> {
  const args = [...packOptions, '--numeric-owner', '-cf', '-', '-C', folder, '.'];
  return openTar(args, options, (line) => unread.test(line) && leaveOut());
}

/**
 * Unpacks what {@link pack} gave into an empty folder, as our user. On failure throws {@link TarFailed} and leaves what
 * it could unpack.
 */
export async function unpack(folder: string, bytes: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void> {
  await feed(await openTar([...unpackOptions, '-xpf', '-', '-C', folder], { signal }), bytes);
}

async function openTar(
  args: readonly string[],
  { signal, through }: TarOptions,
  hear: (line: string) => void = () => undefined,
): Promise<Program> {
  const first: string[] = [];
  let full: string | undefined;
  const complain = (line: string) => {
    if (first.length < complaintsShown) first.push(shortened(line));
    if (isDiskFull(line)) full ??= shortened(line);
    hear(line);
  };
  const { stream, ended } = await openProgram('tar', args, { signal, through, complain, fineCodes: changed });
  const fail = (error: ProgramFailed) => {
    signal.throwIfAborted();
    throw new TarFailed(`tar failed${error.how}: ${full ?? first.join('; ')}`);
  };
  return { stream, ended: ended.catch(fail) };
}

/** Keeps the beginning and the end of a line, which has the reason. A path in between can be of any length. */
function shortened(line: string): string {
  return line.length <= 2 * lineEnds ? line : `${line.slice(0, lineEnds)} … ${line.slice(-lineEnds)}`;
}
