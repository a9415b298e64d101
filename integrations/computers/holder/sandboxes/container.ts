import { type Duplex, PassThrough } from 'node:stream';
import { Engine } from '../../drivers/docker/engine.ts';
import type { ContainerSource } from '../../protocol/holderSpec.ts';
import type { Sandbox } from './sandbox.ts';

const headerBytes = 8;
const maxComplaint = 2_000;

/**
 * Attaches to a container that the host has created and will start. The holder reaches the engine only over this
 * connection. Closing it ends the agent, and the host removes the rest.
 */
export async function attachContainer({ engine, containerId }: ContainerSource): Promise<Sandbox> {
  const connection = await new Engine(engine).attach(containerId);
  const output = new PassThrough();
  let complaint = '';
  split(connection, output, (text) => {
    if (complaint.length < maxComplaint) complaint = `${complaint}${text}`.slice(0, maxComplaint);
  });
  const ended = new Promise<string>((resolve) => {
    connection.on('error', () => undefined);
    // The engine ends its side when the container has ended.
    connection.once('end', () => connection.destroy());
    connection.once('close', () => {
      output.end();
      const said = complaint.trim().split('\n').at(-1) ?? '';
      resolve(`The container has ended${said === '' ? '' : `: ${said}`}.`);
    });
  });
  const input = connection;
  return { output, input, pids: null, release: () => undefined, kill: () => void connection.destroy(), ended };
}

/**
 * Splits the connection into the two outputs. The engine sends frames: one byte for the stream, three zeros, and the
 * length.
 */
function split(connection: Duplex, output: PassThrough, onComplaint: (text: string) => void): void {
  let header: Buffer = Buffer.alloc(0);
  let left = 0;
  let isOutput = true;
  output.on('drain', () => connection.resume());
  connection.on('data', (chunk: Buffer) => {
    let at = 0;
    while (at < chunk.length) {
      if (left === 0) {
        const piece = chunk.subarray(at, at + headerBytes - header.length);
        header = Buffer.concat([header, piece]);
        at += piece.length;
        if (header.length < headerBytes) return;
        isOutput = header[0] === 1;
        left = header.readUInt32BE(4);
        header = Buffer.alloc(0);
        continue;
      }
      const payload = chunk.subarray(at, at + left);
      at += payload.length;
      left -= payload.length;
      if (!isOutput) onComplaint(payload.toString());
      else if (!output.write(payload)) connection.pause();
    }
  });
}
