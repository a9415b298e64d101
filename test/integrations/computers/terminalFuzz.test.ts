import { fileURLToPath } from 'node:url';
import xterm from '@xterm/headless';
import { type DrawnScreen, ScreenThread } from '../../../integrations/computers/holder/screens/screenThread.ts';
import { SequenceFilter } from '../../../integrations/computers/holder/screens/sequences.ts';
import { seededRandom } from '../../support/random.ts';
import { sizeOf } from '../../support/size.ts';

const seconds = sizeOf('TERMINAL_FUZZ_SECONDS', 5, 3_600);
const program = fileURLToPath(new URL('../../../integrations/computers/holder/screens/screenMain.ts', import.meta.url));
const noise = [
  '\n',
  '\r',
  '\0',
  '\x7f',
  '\xff',
  '\x80',
  '\xc2',
  '\xe0\x82',
  '\xef\xbb\xbf',
  '\xf4\x9f',
  '\x07',
  '\x18',
];
const numbers = ['', '0', '1', '7', '80', '999', '10000', '65536', '2147483647', '99999999999999999999', '-1', '1e9'];
const finals = [...'@ABCDEFGHIJKLMPSTXZ`abcdefghlmnpqrstuvxyz{|}~^'];
const intermediates = ['', '', '', ' ', '!', '"', '$', "'", '*', '+', '#'];
const introducers = ['\x1b[', '\xc2\x9b', '\x1bP', '\xc2\x90'];
const strings = ['\x1b]', '\x1bP', '\x1bX', '\x1b^', '\x1b_', '\xc2\x9d', '\xc2\x98', '\xc2\x9f'];
const ends = ['\x07', '\x1b\\', '\xc2\x9c', '\x18', '\x1b', ''];

const random = seededRandom('terminalFuzz');
const between = (least: number, most: number) => random(least, most + 1);
const pick = <T>(from: readonly T[]) => from[random(0, from.length)] as T;
const times = <T>(most: number, make: () => T) => Array.from({ length: between(0, most) }, make);

/** A sequence with many parameters, some of them larger than any terminal. */
function numbered(): string {
  const parameters = times(5, () => pick(numbers) + (between(0, 5) === 0 ? pick(noise) : ''));
  return pick(introducers) + pick(['', '?', '>', '=', '<']) + parameters.join(pick([';', ':'])) + last();
}
const last = () => pick(intermediates) + (between(0, 9) === 0 ? pick(noise) : pick(finals));

function string(): string {
  const content = pick([
    () => `${pick(numbers)};${'title'.repeat(between(0, 40))}`,
    () => `4;${pick(numbers)};rgb:ff/00/00`,
    () => `8;;http://${'x'.repeat(between(0, 300))}`,
    () => `${pick(numbers)};${pick(numbers)}q"1;1;${pick(numbers)};${pick(numbers)}#0!${pick(numbers)}~-$`,
    () => `$q${pick(['m', 'r', '"p'])}`,
    () => '\xe2\x82'.repeat(between(0, 9)),
  ])();
  return pick(strings) + content + pick(ends);
}

const others = ['\x1bc', '\x1b#8', '\x1bM', '\x1bD', '\x1b7', '\x1b8', '\x1b(0', '\x1bH', '\x1b%G', '\x1b', '\xc2'];
const something = () =>
  pick([numbered, numbered, numbered, string, () => pick(others), () => pick(noise), () => 'text \xe2\x82\xac'])();

describe('a terminal with random output', () => {
  const endsAt = Date.now() + seconds * 1_000;

  it('never gets a number above the limit of the filter, wherever the bytes are cut', async () => {
    const terminal = new xterm.Terminal({ cols: 80, rows: 24, allowProposedApi: true, logLevel: 'off' });
    let largest = 0;
    const see = (parameters: (number | number[])[]) => {
      largest = Math.max(largest, ...parameters.flat());
      return true;
    };
    const prefixes = [undefined, ...'?>=<'];
    const within = [undefined, ...' !"#$%&\'()*+,-./'];
    for (let code = 0x40; code < 0x7f; code++) {
      const final = String.fromCharCode(code);
      for (const prefix of prefixes) {
        for (const intermediate of within) {
          const id = { final, ...(prefix && { prefix }), ...(intermediate && { intermediates: intermediate }) };
          terminal.parser.registerCsiHandler(id, see);
          terminal.parser.registerDcsHandler(id, (_, parameters) => see(parameters));
        }
      }
    }
    const write = (bytes: Uint8Array) => new Promise<void>((resolve) => terminal.write(bytes, resolve));
    const filter = new SequenceFilter(() => 80);
    do {
      const bytes = Buffer.from(times(40, something).join(''), 'latin1');
      const whole = new SequenceFilter(() => 80);
      const atOnce = Buffer.concat([whole.push(bytes), whole.push(Buffer.from('\x1b\\'))]);
      const cut = new SequenceFilter(() => 80);
      const inBytes = [...bytes, 0x1b, 0x5c].map((byte) => cut.push(Buffer.from([byte])));
      expect(Buffer.concat(inBytes).equals(atOnce)).toBe(true);
      for (let at = 0; at < bytes.length; ) {
        const length = between(1, 30);
        await write(filter.push(bytes.subarray(at, at + length)));
        at += length;
      }
      expect(largest).toBeLessThanOrEqual(9_999);
    } while (Date.now() < endsAt - (seconds * 1_000) / 2);
    expect(largest).toBe(9_999);
    terminal.dispose();
  }, 7_200_000);

  it('draws everything in pieces of any length while its size changes', async () => {
    const thread = new ScreenThread(program);
    let screen: DrawnScreen = await thread.open({ cols: 80, rows: 24 });
    let position = 0;
    do {
      const bytes = Buffer.from(times(200, something).join(''), 'latin1');
      for (let at = 0; at < bytes.length; ) {
        const payload = bytes.subarray(at, at + between(1, 200));
        await screen.take([{ kind: 'pty', position, payload }]);
        position += payload.length;
        at += payload.length;
      }
      expect(screen.readTo).toBe(position);
      if (between(0, 3) === 0) {
        const size = { cols: between(1, 300), rows: between(1, 100) };
        await screen.take([{ kind: 'resize', position, payload: Buffer.from(JSON.stringify(size)) }]);
      }
      if (between(0, 9) === 0) {
        // The next holder restores a screen in this way.
        const shown = await screen.show();
        await screen.dispose();
        screen = await thread.open(shown);
        position = shown.position;
      }
    } while (Date.now() < endsAt);
    await screen.take([{ kind: 'pty', position, payload: Buffer.from('\x18\x1bcstill here') }]);
    expect((await screen.show()).data).toContain('still here');
    await screen.dispose();
  }, 7_200_000);
});
