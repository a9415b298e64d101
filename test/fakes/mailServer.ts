import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { waitFor } from '../support/waitFor.ts';

export interface ReceivedMail {
  from: string;
  to: string[];
  text: string;
}

/** A real SMTP server in this process, which stores the received mails. */
export interface TestMailServer {
  /** With user and password. */
  url: string;
  mails: ReceivedMail[];
  /** If set, the status that refuses each mail, such as 450. */
  refuseWith: number | undefined;
  /** How often a mail was offered. */
  offered: number;
  /** The link in the next mail to this address. */
  linkFor(address: string): Promise<string>;
  close(): Promise<void>;
}

const login = { user: 'atrium', pass: 'mail password' };

export function mailServerUrl(port: number): string {
  return `smtp://${login.user}:${encodeURIComponent(login.pass)}@127.0.0.1:${port}`;
}

export async function startMailServer(options: { port?: number } = {}): Promise<TestMailServer> {
  const mails: ReceivedMail[] = [];
  const seen = new Set<ReceivedMail>();
  const server = new SMTPServer({
    authOptional: false,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    onAuth: ({ username, password }, _session, done) => {
      if (username === login.user && password === login.pass) done(null, { user: username });
      else done(new Error('Wrong login'));
    },
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        mailServer.offered += 1;
        if (mailServer.refuseWith !== undefined) {
          return done(Object.assign(new Error('No.'), { responseCode: mailServer.refuseWith }));
        }
        mails.push({
          from: session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address,
          to: session.envelope.rcptTo.map(({ address }) => address),
          text: decode(Buffer.concat(chunks).toString('utf8')),
        });
        done();
      });
    },
  });
  await new Promise<void>((resolve) => {
    server.listen(options.port ?? 0, '127.0.0.1', () => resolve());
  });
  const { port } = server.server.address() as AddressInfo;
  const mailServer: TestMailServer = {
    url: mailServerUrl(port),
    mails,
    refuseWith: undefined,
    offered: 0,
    linkFor: (address) =>
      waitFor(`a mail to ${address}`, () => {
        const mail = mails.find((candidate) => candidate.to.includes(address) && !seen.has(candidate));
        if (mail === undefined) return undefined;
        seen.add(mail);
        return /^http\S+$/m.exec(mail.text)?.[0];
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
      }),
  };
  return mailServer;
}

function decode(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(/=\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
