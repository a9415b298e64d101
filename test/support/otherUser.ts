import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The user `nobody`, on every Linux. */
const otherUser = 65_534;

/** Whether this run can change its user. Only then can a test act as another user of the machine. */
export const canBeOtherUser = process.platform === 'linux' && process.getuid?.() === 0;

/** Runs a shell script, optionally as another user, and returns its output. */
export async function runScript(script: string, { asOther }: { asOther: boolean }): Promise<string> {
  const identity = [`--reuid=${otherUser}`, `--regid=${otherUser}`, '--clear-groups'];
  const shell = ['bash', '-c', script];
  const [command = '', ...args] = asOther ? ['setpriv', ...identity, '--', ...shell] : shell;
  const child = spawn(command, args, { cwd: '/', stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  await once(child, 'close');
  return output.trim();
}

/**
 * The number of bytes with which a gRPC server answers the start of an HTTP/2 connection. 0 if it refuses the
 * connection.
 */
export async function bytesOfServer(address: string, who: { asOther: boolean }): Promise<number> {
  const [host, port] = address.split(':');
  const preface = String.raw`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00`;
  const script = `exec 3<>/dev/tcp/${host}/${port} && printf '${preface}' >&3 && head -c 9 <&3 | wc -c`;
  return Number(await runScript(script, who));
}

/** 1 if the file can be read, otherwise 0. */
export async function bytesOfFile(file: string, who: { asOther: boolean }): Promise<number> {
  return Number(await runScript(`head -c 1 '${file}' | wc -c`, who));
}
