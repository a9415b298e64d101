import { ProfileHome } from '../../../integrations/browsers/home/profileHome.ts';
import { buildHost, type Ran, runOn, startComputer, usualLimits } from '../../builders/host.ts';

// Profile folders with contents that a tenant made by hand are packed, and unpacked on another computer.

const maxBytes = 4 * 1_048_576;
const soon = () => AbortSignal.timeout(60_000);
let built: Awaited<ReturnType<typeof buildHost>>;
let from: Awaited<ReturnType<typeof startComputer>>['client'];
let to: typeof from;

beforeAll(async () => {
  built = await buildHost();
  const limits = { ...usualLimits, diskMiB: 64 };
  [{ client: from }, { client: to }] = [
    await startComputer(built.host, { limits }),
    await startComputer(built.host, { limits }),
  ];
});
afterAll(() => built?.[Symbol.asyncDispose]());
beforeEach(() =>
  Promise.all([from, to].map((client) => run(client, 'rm -rf profile profile-* outside; mkdir profile'))),
);

async function run(client: typeof from, script: string): Promise<Ran> {
  return runOn(client, ['sh', '-c', script]);
}

/** Runs a script that fills the profile folder, and moves the folder to the other computer. */
async function move(script: string): Promise<void> {
  await run(from, script);
  const packed = await new ProfileHome(from, 'profile').pack(maxBytes, soon());
  if (packed === undefined) throw new Error('There is nothing of it.');
  await new ProfileHome(to, 'profile').fill(packed.body, 1, soon());
}

test('links, pipes and odd names are moved unchanged, and links are not followed', async () => {
  await run(to, 'echo mine > outside');
  await move(`cd profile; ln -s ../outside symbolic; echo one > a; ln a hard; mkfifo pipe; ln -s / root
    mkdir -p 'Cookies
..' "$(printf '\\377')"; ln -s ../../.. up; touch -- '--checkpoint-action=exec=sh' '-rf'`);
  const { stdout } = await run(
    to,
    'cat outside; cd profile; find . | sort; stat -c %h a; readlink symbolic; [ -p pipe ] && echo pipe',
  );
  expect(stdout).toContain('mine\n.\n');
  for (const name of ['./--checkpoint-action=exec=sh', './-rf', './hard', './up', '2\n../outside\npipe'])
    expect(stdout).toContain(name);
});

test('a sparse file takes no more room after the move', async () => {
  await move('cd profile; truncate -s 8G holes; echo end >> holes');
  const { stdout } = await run(to, 'stat -c %s profile/holes; du -sk profile | cut -f1');
  const [size, kibibytes] = stdout.trim().split('\n').map(Number);
  expect(size).toBe(8 * 1_024 ** 3 + 4);
  expect(kibibytes).toBeLessThan(1_024);
});

test('a profile that does not fit when it is unpacked is refused, and the old profile and the room stay', async () => {
  await run(to, 'echo before > profile/kept');
  const room = await run(to, 'head -c 20M /dev/urandom > outside; du -sk . | cut -f1');
  const moved = move('head -c 30M /dev/zero > profile/zeros; cp profile/zeros profile/more');
  await expect(moved).rejects.toMatchObject({ code: 'PROFILE_BROKEN' });
  const after = await run(to, 'cat profile/kept; du -sk . | cut -f1');
  const [kept, used] = after.stdout.trim().split('\n');
  expect(kept).toBe('before');
  expect(Math.abs(Number(used) - Number(room.stdout))).toBeLessThan(1_024);
});

test("a profile folder that is a link is packed with the contents of the link's target", async () => {
  await move('rm -r profile; mkdir outside; echo here > outside/file; ln -s outside profile');
  expect((await run(to, 'cat profile/file')).stdout).toBe('here\n');
});
