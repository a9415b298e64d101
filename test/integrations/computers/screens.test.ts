import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { Screens } from '../../../integrations/computers/holder/screens/screens.ts';
import { DrawnScreen, ScreenThread } from '../../../integrations/computers/holder/screens/screenThread.ts';
import { TerminalScreen } from '../../../integrations/computers/holder/screens/terminalScreen.ts';
import type { Screen } from '../../../integrations/computers/hostClient.ts';
import type { LiveProcess } from '../../../integrations/computers/processes/liveProcess.ts';
import { ProcessStore } from '../../../integrations/computers/processes/processStore.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { waitFor } from '../../support/waitFor.ts';

const exit = { state: 'exited', exitCode: 0, signal: null, killedBy: null } as const;
const size = { cols: 80, rows: 24 };
const mebibyte = 1_048_576;
const never = new AbortController().signal;

const root = temporaryFolder();
const program = fileURLToPath(new URL('../../../integrations/computers/holder/screens/screenMain.ts', import.meta.url));
const thread = new ScreenThread(program);
let count = 0;

async function terminal(
  drawnIn = thread,
): Promise<{ store: ProcessStore; screens: Screens; process: LiveProcess; folder: string }> {
  const folder = `${root}/${count++}`;
  // Without a pace, which would delay the many megabytes below for seconds.
  const store = new ProcessStore(folder, { maxLogBytes: 8 * mebibyte });
  const { process } = await store.take({ processId: 'p', command: 'sh', pty: size }, '/');
  if (process === undefined) throw new Error('It is known.');
  return { store, screens: new Screens(store, drawnIn), process, folder };
}

const say = (process: LiveProcess, text: string) => process.append([{ kind: 'pty', payload: Buffer.from(text) }]);
const coloured = (bytes: number) => {
  const line = '\u001b[1;31mred\u001b[0m and \u001b[38;5;120mgreen\u001b[0m, again and again\r\n';
  return line.repeat(Math.ceil(bytes / line.length));
};

/** The text on a terminal that gets this drawing. */
async function shown(data: string): Promise<string> {
  const drawn = await TerminalScreen.restore({ position: 0, ...size, data });
  const again = drawn.screen().data;
  drawn.dispose();
  return stripVTControlCharacters(again);
}

describe('the screen of a terminal', () => {
  it('is the same for many simultaneous requests after much output, and keeps its modes', async () => {
    const { screens, process } = await terminal();
    screens.follow(process, size);
    await say(process, 'before\r\n\u001b[?1049h\u001b[?2004h');
    await screens.draw('p', size, never);
    for (let megabytes = 0; megabytes < 12; megabytes += 2) await say(process, coloured(2 * mebibyte));
    await say(process, 'the last line');
    const drawn = await Promise.all(Array.from({ length: 12 }, () => screens.draw('p', size, never)));
    expect(new Set(drawn).size).toBe(1);
    const { data, position } = drawn[0] as Screen;
    expect(position).toBe(process.info().outputBytes);
    expect(await shown(data)).toContain('the last line');
    // These modes were set before the skipped output.
    expect(data).toContain('\u001b[?1049h');
    expect(data).toContain('\u001b[?2004h');
    await process.end(exit);
  });

  it('is drawn from only the end of a long log, also after the end of its process', async () => {
    const { screens, process } = await terminal();
    for (let megabytes = 0; megabytes < 6; megabytes += 2) await say(process, coloured(2 * mebibyte));
    await say(process, '\r\nthe end of it');
    await process.end(exit);
    let written = 0;
    const { take } = DrawnScreen.prototype;
    DrawnScreen.prototype.take = function (records) {
      for (const { payload } of records) written += payload.length;
      return take.call(this, records);
    };
    try {
      const drawn = await Promise.all([1, 2, 3].map(() => screens.draw('p', size, never)));
      expect(new Set(drawn).size).toBe(1);
      expect(await shown(drawn[0]?.data ?? '')).toContain('the end of it');
      expect(written).toBeLessThan(2.1 * mebibyte);
    } finally {
      DrawnScreen.prototype.take = take;
    }
  });

  it('is drawn by the next holder from its checkpoint, with modes from before the end of the log', async () => {
    const { screens, process, folder } = await terminal();
    screens.follow(process, size);
    await say(process, '\u001b[?1049h\u001b[?2004h');
    for (let megabytes = 0; megabytes < 6; megabytes++) {
      await say(process, coloured(mebibyte));
      await screens.draw('p', size, never);
    }
    await say(process, 'kept');
    // As after a kill, the next holder gets nothing from this process.
    const next = new Screens(new ProcessStore(folder, { maxLogBytes: 8 * mebibyte }), thread);
    const { data } = await next.draw('p', size, never);
    expect(await shown(data)).toContain('kept');
    expect(data).toContain('\u001b[?2004h');
    rmSync(`${folder}/p/screen.json`);
    expect(await shown((await next.draw('p', size, never)).data)).toContain('kept');
    await process.end(exit);
  });

  it('stops being drawn when no request waits for it', async () => {
    const { screens, process } = await terminal();
    await say(process, coloured(mebibyte));
    await process.end(exit);
    let taken = 0;
    const { take } = DrawnScreen.prototype;
    const asker = new AbortController();
    DrawnScreen.prototype.take = function (records) {
      taken++;
      asker.abort();
      return take.call(this, records);
    };
    try {
      await expect(screens.draw('p', size, asker.signal)).rejects.toThrow();
      expect(taken).toBeLessThan(6);
    } finally {
      DrawnScreen.prototype.take = take;
    }
    expect(await shown((await screens.draw('p', size, never)).data)).toContain('again and again');
  });

  it('has a position that is never inside an escape sequence or a character', async () => {
    const { screens, process } = await terminal();
    screens.follow(process, size);
    const all = Buffer.from('one \u001b[31mtwo \u20ac\u001b]0;title\u0007 three');
    for (const [at, byte] of all.entries()) {
      await process.append([{ kind: 'pty', payload: Buffer.from([byte]) }]);
      const { position, data } = await screens.draw('p', size, never);
      const rest = all.subarray(position, at + 1).toString('latin1');
      expect(rest === '' || rest.startsWith('\u001b') || rest > '\u0080').toBe(true);
      expect(data).not.toContain('\ufffd');
    }
    expect(await shown((await screens.draw('p', size, never)).data)).toBe('one two \u20ac three');
    await process.end(exit);
  });

  it('shows exactly the output before its position, also while the process writes', async () => {
    const { screens, process } = await terminal();
    screens.follow(process, size);
    let text = '';
    for (let round = 0; round < 40; round++) {
      const more = `${round},`;
      const saying = say(process, more);
      text += more;
      for (let asked = 0; asked < 30; asked++) {
        const { data, position } = await screens.draw('p', size, never);
        expect((await shown(data)).replaceAll('\r\n', '')).toBe(text.slice(0, position));
      }
      await saying;
    }
    await process.end(exit);
  });

  it('takes bounded memory for hostile output', async () => {
    const screen = new TerminalScreen({ cols: 1_000, rows: 500 });
    expect(screen.cells).toBeLessThanOrEqual(1_000_000);
    const accents = Buffer.from(`a${'\u0301'.repeat(20_000)}`);
    const link = Buffer.from(`\u001b]8;;http://${'x'.repeat(60_000)}\u0007y\u001b]8;;\u0007`);
    for (let round = 0; round < 20; round++) {
      for (const payload of [accents, link]) await screen.take({ kind: 'pty', position: 0, payload });
    }
    expect(screen.screen().data.length).toBeLessThan(100_000);
    screen.dispose();
  });

  it.each(['L', 'M', 'S', 'T', 'b', '@', 'P', 'X', 'I', 'Z', ' @', ' A', "'}", "'~", 'H', 'J', 'm', '?h'])(
    'is drawn at once if a program sends the command %s with a count of two billion',
    async (command) => {
      const { screens, process } = await terminal();
      screens.follow(process, size);
      const [prefix, final] = command.startsWith('?') ? ['?', command.slice(1)] : ['', command];
      for (const number of ['2147483647', '1\n2147483647', '000002147483647', '\xff9\x7f999999999;1;2147483647']) {
        const sequences = [`\x1b[${prefix}${number}${final}`, `\xc2\x9b${prefix}${number}${final}`];
        for (const sequence of sequences) {
          await process.append([{ kind: 'pty', payload: Buffer.from(`\x1b[Hx${sequence}`, 'latin1') }]);
          expect((await screens.draw('p', size, never)).position).toBe(process.info().outputBytes);
        }
      }
      await say(process, '\x1b[2J\x1b[Hafter it');
      expect(await shown((await screens.draw('p', size, never)).data)).toContain('after it');
      await process.end(exit);
    },
  );

  it('is cleared if a program keeps its terminal too busy, and other screens are not delayed', async () => {
    const { screens, process } = await terminal(new ScreenThread(program, { limitMs: 1_000 }));
    const other = await terminal(thread);
    screens.follow(process, size);
    other.screens.follow(other.process, size);
    await screens.draw('p', size, never);
    // Each three bytes fill the whole screen line by line.
    await process.resized({ cols: 1_000, rows: 1_000 });
    await say(process, '\x1b#8'.repeat(60_000));
    await say(other.process, 'not disturbed');
    expect(await shown((await other.screens.draw('p', size, never)).data)).toContain('not disturbed');
    const { data, position } = await screens.draw('p', size, never);
    expect(data).toBe('');
    expect(position).toBe(process.info().outputBytes);
    // On a busy machine, a new thread may need longer than this limit to start.
    await waitFor('a drawing of later output', async () => {
      await say(process, 'drawn again');
      return (await shown((await screens.draw('p', size, never)).data)).includes('drawn again');
    });
    await process.end(exit);
    await other.process.end(exit);
  });

  it('is empty, also at the next request, if the log on disk cannot be drawn in time', async () => {
    const { screens, process } = await terminal(new ScreenThread(program, { limitMs: 1_000 }));
    await process.resized({ cols: 1_000, rows: 1_000 });
    await say(process, '\x1b#8'.repeat(60_000));
    await process.end(exit);
    for (let asked = 0; asked < 2; asked++) {
      const { data, position } = await screens.draw('p', size, never);
      expect({ data, position }).toEqual({ data: '', position: process.info().outputBytes });
    }
  });
});
