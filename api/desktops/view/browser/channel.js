/** Looks like a WebSocket to noVNC. It passes on the binary messages of a real one, and keeps the texts for the page. */
export class Channel {
  /** `hear` gets the texts, and `closed` gets the reason when the server closes the connection. */
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
