import { buildHost, runOn, startComputer } from '../../builders/host.ts';
import { drivers } from './drivers.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

/** The files and the logs of a computer that does not run, without waking it. */
describe.each(usable)('$name', ({ options }) => {
  it('gives the files of a stopped computer, and lets no link lead out', async () => {
    await using built = await buildHost(options);
    const { host } = built;
    const { spec, computerId, client } = await startComputer(host);
    await runOn(client, 'echo kept > file; ln -s /etc/shadow out; ln -s /proc/1/root/etc/shadow further', {
      processId: 'prc_said',
    });
    await host.stop(computerId);
    const files = await host.files(computerId);
    const again = await Promise.all(Array.from({ length: 5 }, () => host.files(computerId)));
    expect(again).toHaveLength(5);
    const { body } = await files.readFile('file');
    expect(Buffer.concat(await body.toArray()).toString()).toBe('kept\n');
    for (const name of ['out', 'further']) {
      await expect(files.readFile(name)).rejects.toMatchObject({ code: expect.stringMatching(/^FILE_/) });
    }
    await expect(files.process('prc_said')).resolves.toMatchObject({ state: 'exited' });
    await expect(files.startProcess({ processId: 'prc_no', command: 'true' })).rejects.toMatchObject({
      code: 'COMPUTER_NOT_RUNNING',
    });
    await expect(files.dialPort(8000)).rejects.toMatchObject({ code: 'COMPUTER_NOT_RUNNING' });
    await files.writeFile('more', Buffer.from('written while it slept'));
    await expect(host.inspect(computerId)).resolves.toEqual({ state: 'gone' });
    expect(await host.sweep()).toEqual([]);
    await host.start({ ...spec, generation: 2 });
    expect((await runOn(host.client(computerId), 'cat more')).stdout).toBe('written while it slept');
  });

  it('has nothing of one that is not there', async () => {
    await using built = await buildHost(options);
    await expect(built.host.files('cmp_none')).rejects.toMatchObject({ code: 'COMPUTER_ABSENT' });
  });
});

if (usable.length === 0) {
  it('is not run here, for there is no driver', () => expect(usable).toEqual([]));
}
