import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { Agent, type ClientRequestArgs } from 'node:http';
import { connect, type Socket } from 'node:net';

/** Opens a path only as a place (O_PATH), and does not follow a link at its end. */
const asPlace = 0o10000000 /* O_PATH, which Node does not name */ | constants.O_NOFOLLOW;

/**
 * Connects to holders. Their sockets lie in folders of the computers' users, and the caller may be root: a link that is
 * followed there could lead to the holder of another computer.
 */
export class HolderAgent extends Agent {
  override createConnection(
    { socketPath }: ClientRequestArgs,
    callback?: (error: Error | null, stream: Socket) => void,
  ): Socket | undefined {
    let place: number;
    try {
      place = openSync(socketPath ?? '', asPlace);
    } catch (error) {
      callback?.(error as Error, undefined as never);
      return undefined;
    }
    if (!fstatSync(place).isSocket()) {
      closeSync(place);
      callback?.(Object.assign(new Error('This is no socket.'), { code: 'ECONNREFUSED' }), undefined as never);
      return undefined;
    }
    const socket = connect({ path: `/proc/self/fd/${place}` });
    let isOpen = true;
    const close = () => {
      if (isOpen) closeSync(place);
      isOpen = false;
    };
    return socket.once('connect', close).once('close', close);
  }
}
