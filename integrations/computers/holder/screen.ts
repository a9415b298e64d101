import { SerializeAddon } from '@xterm/addon-serialize';
import xterm from '@xterm/headless';
import type { Screen } from '../hostClient.ts';
import { type ReadableLog, readLog } from '../processes/logReader.ts';
import { noteOf, positionAfter, RecordDecoder, type Size } from '../processes/records.ts';

const scrollback = 1_000;

/**
 * What a terminal shows, as bytes that draw it again. It is drawn from the log: to send that itself would cut escape
 * sequences apart, and ask the client’s terminal again what programs have asked.
 */
export async function drawScreen(log: ReadableLog, size: Size): Promise<Screen> {
  const first = await firstSize(log);
  const terminal = new xterm.Terminal({ ...(first ?? size), scrollback, allowProposedApi: true });
  const serializer = new SerializeAddon();
  terminal.loadAddon(serializer);
  const decoder = new RecordDecoder();
  let position = 0;
  try {
    for await (const bytes of readLog(log, { after: 0, follow: false })) {
      for (const record of decoder.push(bytes)) {
        position = positionAfter(record);
        if (record.kind === 'pty') await new Promise<void>((resolve) => terminal.write(record.payload, resolve));
        else if (record.kind === 'resize') {
          const { cols, rows } = noteOf<Size>(record);
          terminal.resize(cols, rows);
        }
      }
    }
    return { position, cols: terminal.cols, rows: terminal.rows, data: serializer.serialize({ scrollback }) };
  } finally {
    terminal.dispose();
  }
}

/** Its size at the beginning is the first that the log tells. */
async function firstSize(log: ReadableLog): Promise<Size | undefined> {
  const decoder = new RecordDecoder();
  for await (const bytes of readLog(log, { after: 0, follow: false })) {
    for (const record of decoder.push(bytes)) return record.kind === 'resize' ? noteOf<Size>(record) : undefined;
  }
  return undefined;
}
