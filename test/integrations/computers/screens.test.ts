import { rmSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { Screens } from '../../../integrations/computers/holder/screens.ts';
import { TerminalScreen } from '../../../integrations/computers/holder/terminalScreen.ts';
import type { Screen } from '../../../integrations/computers/hostClient.ts';
import type { LiveProcess } from '../../../integrations/computers/processes/liveProcess.ts';
import { ProcessStore } from '../../../integrations/computers/processes/processStore.ts';
import { temporaryFolder } from '../../support/folders.ts';

const exit = { state: 'exited', exitCode: 0, signal: null, killedBy: null } as const;
const size = { cols: 80, rows: 24 };
const mebibyte = 1_048_576;
const never = new AbortController().signal;

const root = temporaryFolder();
let count = 0;

async function terminal(): Promise<{ store: ProcessStore; screens: Screens; process: LiveProcess; folder: string }> {
  const folder = `${root}/${count++}`;
  // Not held to a pace, as the many megabytes below would be for seconds.
  const store = new ProcessStore(folder, { maxLogBytes: 8 * mebibyte });
  const { process } = await store.take({ processId: 'p', command: 'sh', pty: size }, '/');
  if (process === undefined) throw new Error('It is known.');
  return { store, screens: new Screens(store), process, folder };
}

const say = (process: LiveProcess, text: string) => process.append([{ kind: 'pty', payload: Buffer.from(text) }]);
const coloured = (bytes: number) => {
  const line = '\u001b[1;31mred\u001b[0m and \u001b[38;5;120mgreen\u001b[0m, again and again\r\n';
  return line.repeat(Math.ceil(bytes / line.length));
};

/** What a terminal shows that is given this drawing. */
async function shown(data: string): Promise<string> {
  const drawn = await TerminalScreen.restore({ position: 0, ...size, data });
  const again = drawn.screen().data;
  drawn.dispose();
  return stripVTControlCharacters(again);
}

describe('the screen of a terminal', () => {
  it('is there at once after any amount of output, for many who ask, and keeps its modes', async () => {
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
    // It was set before what was passed over.
    expect(data).toContain('\u001b[?1049h');
    expect(data).toContain('\u001b[?2004h');
    await process.end(exit);
  });

  it('reads no more than the end of a long log, after the end of its process too', async () => {
    const { screens, process } = await terminal();
    for (let megabytes = 0; megabytes < 6; megabytes += 2) await say(process, coloured(2 * mebibyte));
    await say(process, '\r\nthe end of it');
    await process.end(exit);
    let written = 0;
    const { take } = TerminalScreen.prototype;
    TerminalScreen.prototype.take = function (record) {
      written += record.payload.length;
      return take.call(this, record);
    };
    try {
      const drawn = await Promise.all([1, 2, 3].map(() => screens.draw('p', size, never)));
      expect(new Set(drawn).size).toBe(1);
      expect(await shown(drawn[0]?.data ?? '')).toContain('the end of it');
      expect(written).toBeLessThan(2.1 * mebibyte);
    } finally {
      TerminalScreen.prototype.take = take;
    }
  });

  it('is drawn from its checkpoint by the next holder, with what came before the end of the log', async () => {
    const { screens, process, folder } = await terminal();
    screens.follow(process, size);
    await say(process, '\u001b[?1049h\u001b[?2004h');
    for (let megabytes = 0; megabytes < 6; megabytes++) {
      await say(process, coloured(mebibyte));
      await screens.draw('p', size, never);
    }
    await say(process, 'kept');
    // As after a kill: nothing of this process is told to the next.
    const next = new Screens(new ProcessStore(folder, { maxLogBytes: 8 * mebibyte }));
    const { data } = await next.draw('p', size, never);
    expect(await shown(data)).toContain('kept');
    expect(data).toContain('\u001b[?2004h');
    rmSync(`${folder}/p/screen.json`);
    expect(await shown((await next.draw('p', size, never)).data)).toContain('kept');
    await process.end(exit);
  });

  it('is not drawn on when nobody waits for it any more', async () => {
    const { screens, process } = await terminal();
    await say(process, coloured(mebibyte));
    await process.end(exit);
    let taken = 0;
    const { take } = TerminalScreen.prototype;
    const asker = new AbortController();
    TerminalScreen.prototype.take = function (record) {
      taken++;
      asker.abort();
      return take.call(this, record);
    };
    try {
      await expect(screens.draw('p', size, asker.signal)).rejects.toThrow();
      expect(taken).toBeLessThan(6);
    } finally {
      TerminalScreen.prototype.take = take;
    }
    expect(await shown((await screens.draw('p', size, never)).data)).toContain('again and again');
  });

  it('never begins what follows within a sequence or a character', async () => {
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

  it('shows all that came before its position, and nothing after, whenever it is asked for', async () => {
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

  it('takes bounded memory, whatever a program sends', async () => {
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
});
