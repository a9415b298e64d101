/** What noVNC takes for a WebSocket: the bytes of a real one, whose texts are ours. */
export class Channel {
  /** `hear` gets our texts, and `closed` why the server has closed it. */
  constructor(socket, { hear, closed }) {
    this.socket = socket;
    this.onopen = null;
    this.onmessage = null;
    this.onerror = null;
    this.onclose = null;
    socket.binaryType = 'arraybuffer';
    socket.onopen = (event) => this.onopen?.(event);
    socket.onerror = (event) => this.onerror?.(event);
    socket.onmessage = (event) =>
      typeof event.data === 'string' ? hear(JSON.parse(event.data)) : this.onmessage?.(event);
    socket.onclose = (event) => {
      this.onclose?.(event);
      closed(event.code, event.reason);
    };
  }
  get binaryType() {
    return this.socket.binaryType;
  }
  set binaryType(type) {
    this.socket.binaryType = type;
  }
  get protocol() {
    return this.socket.protocol;
  }
  get readyState() {
    return this.socket.readyState;
  }
  send(data) {
    this.socket.send(data);
  }
  close(...why) {
    this.socket.close(...why);
  }
}
